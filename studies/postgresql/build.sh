#!/usr/bin/env bash
# Builds PostgreSQL 15 from Debian's source package, by gcc with plain -O2 and the relocations kept.
#
# Gives $STUDY_WORK/install (the server and its tools), $STUDY_WORK/build (the tree that `make check` runs in), and
# $STUDY_WORK/build/tmp_install (a second installation, whose server check.sh replaces).
. "$(dirname "$0")/environment.sh"

package=postgresql-15

compile() {
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
if [ -x "$plain_server" ] && [ -f "$STUDY_WORK/version" ]; then
    say "already built: $package $(cat "$STUDY_WORK/version"); remove $STUDY_WORK to build afresh"
else
    prepare_sources
    version=$(download_source "$package")
    say "building $package $version (about five minutes on two cores)"
    rm -rf "$installation"
    unpack_source "$package" "$version" "$build"
    compile
    echo "$version" > "$STUDY_WORK/version"
fi
echo "$plain_server"
