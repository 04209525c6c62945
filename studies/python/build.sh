#!/usr/bin/env bash
# Builds CPython 3.11 from Debian's source package as a shared library and the program that loads it, by gcc with plain -O2 and
# the relocations kept.
#
# Gives $STUDY_WORK/plain/libpython3.11.so.1.0, and $STUDY_WORK/build, the tree with ./python and the tests.
. "$(dirname "$0")/environment.sh"

package=python3.11
library=$plain_programs/$program_names

compile() {
    cd "$build"
    ./configure --enable-shared OPT='-DNDEBUG -fwrapv -O2 -Wall' LDFLAGS=-Wl,--emit-relocs > configure.log
    nice -n "${NICE:-0}" make -s -j"$(nproc)" > make.log 2>&1
}

install_packages build-essential dpkg-dev pkg-config zlib1g-dev libffi-dev libssl-dev libbz2-dev liblzma-dev libsqlite3-dev \
    libreadline-dev uuid-dev libexpat1-dev
if [ -x "$library" ] && [ -f "$STUDY_WORK/version" ]; then
    say "already built: $package $(cat "$STUDY_WORK/version"); remove $STUDY_WORK to build afresh"
else
    prepare_sources
    version=$(download_source "$package")
    say "building $package $version (about five minutes on two cores)"
    unpack_source "$package" "$version" "$build"
    compile
    mkdir -p "$plain_programs"
    cp "$build/$program_names" "$library"
    echo "$version" > "$STUDY_WORK/version"
fi
echo "$library"
