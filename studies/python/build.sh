#!/usr/bin/env bash
# Builds CPython 3.11 from Debian's source package as a shared library and the program that loads it, by gcc with plain -O2 and
# the relocations kept.
#
# Gives $STUDY_WORK/plain/libpython3.11.so.1.0, and $STUDY_WORK/build, the tree with ./python and the tests.
. "$(dirname "$0")/environment.sh"

library=$plain_programs/$program_names

compile() {
    cd "$build"
    ./configure --enable-shared OPT='-DNDEBUG -fwrapv -O2 -Wall' LDFLAGS=-Wl,--emit-relocs > configure.log
    nice -n "${NICE:-0}" make -s -j"$(nproc)" > make.log 2>&1
    mkdir -p "$plain_programs"
    cp "$program_names" "$library"
}

install_packages build-essential dpkg-dev pkg-config zlib1g-dev libffi-dev libssl-dev libbz2-dev liblzma-dev libsqlite3-dev \
    libreadline-dev uuid-dev libexpat1-dev
build_once "$library" python3.11 "$build" "about five minutes" compile
