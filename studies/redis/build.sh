#!/usr/bin/env bash
# Builds Redis from Debian's source package, by gcc with -O2 as its Makefile has it, with its own jemalloc, Lua and hiredis, and the
# relocations kept.
#
# Gives $STUDY_WORK/plain/redis-server, and $STUDY_WORK/build, the tree that the tests run in.
. "$(dirname "$0")/environment.sh"

compile() {
    nice -n "${NICE:-0}" make -s -C "$build" -j"$(nproc)" USE_SYSTEMD=no REDIS_LDFLAGS=-Wl,--emit-relocs > "$logs/make.log" 2>&1 ||
        die "see $logs/make.log"
    mkdir -p "$plain_programs"
    cp "$build/src/redis-server" "$plain_programs/redis-server"
}

install_packages build-essential dpkg-dev pkg-config tcl
build_once "$plain_programs/redis-server" redis "$build" "about three minutes" compile
