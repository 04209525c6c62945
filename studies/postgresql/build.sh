#!/usr/bin/env bash
# Builds PostgreSQL 15 from Debian's source package, by gcc with plain -O2 and the relocations kept.
#
# Gives $STUDY_WORK/install (the server and its tools), $STUDY_WORK/build (the tree that `make check` runs in), and
# $STUDY_WORK/build/tmp_install (a second installation, whose server check.sh replaces).
. "$(dirname "$0")/environment.sh"

compile() {
    rm -rf "$installation"
    cd "$build"
    ./configure --prefix="$installation" --without-icu CFLAGS=-O2 LDFLAGS=-Wl,--emit-relocs > configure.log
    make -s -j"$(nproc)" > make.log 2>&1
    make -s install > install.log 2>&1
    make -s temp-install > temp-install.log 2>&1
    make -s -C src/test/regress all >> temp-install.log 2>&1
    make -s -C src/test/isolation all >> temp-install.log 2>&1
    give_to_user "$build" "$installation"
}

install_packages build-essential dpkg-dev bison flex perl libreadline-dev zlib1g-dev
build_once "$plain_server" postgresql-15 "$build" "about five minutes" compile
