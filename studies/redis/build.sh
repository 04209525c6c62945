#!/usr/bin/env bash
# Builds Redis from Debian's source package, by gcc with -O2 as its Makefile has it, with its own jemalloc, Lua and hiredis, and the
# relocations kept.
#
# Gives $STUDY_WORK/plain/redis-server, and $STUDY_WORK/build, the tree that the tests run in.
. "$(dirname "$0")/environment.sh"

package=redis

install_packages build-essential dpkg-dev pkg-config tcl
if [ -x "$plain_programs/redis-server" ] && [ -f "$STUDY_WORK/version" ]; then
    say "already built: $package $(cat "$STUDY_WORK/version"); remove $STUDY_WORK to build afresh"
else
    prepare_sources
    version=$(download_source "$package")
    say "building $package $version (about three minutes on two cores)"
    unpack_source "$package" "$version" "$build"
    nice -n "${NICE:-0}" make -s -C "$build" -j"$(nproc)" USE_SYSTEMD=no REDIS_LDFLAGS=-Wl,--emit-relocs > "$logs/make.log" 2>&1 ||
        die "see $logs/make.log"
    mkdir -p "$plain_programs"
    cp "$build/src/redis-server" "$plain_programs/redis-server"
    echo "$version" > "$STUDY_WORK/version"
fi
echo "$plain_programs/redis-server"
