#!/usr/bin/env bash
# Builds PostgreSQL 15 from Debian's source package, by gcc with plain -O2 and the relocations kept.
#
# Gives $STUDY_WORK/install (the server and its tools), $STUDY_WORK/build (the tree that `make check` runs in), and
# $STUDY_WORK/build/tmp_install (a second installation, whose server check.sh replaces).
# The package lists live in the work directory: the machine's own apt sources stay as they are.
. "$(dirname "$0")/environment.sh"

package=postgresql-15
lists=$STUDY_WORK/apt

prepare_sources() {
    mkdir -p "$lists/sources" "$lists/lists/partial" "$lists/cache/archives/partial"
    local file
    for file in /etc/apt/sources.list.d/*.sources; do
        grep -qi 'suites:.*\(bookworm\|security\|updates\)' "$file" 2>/dev/null || continue
        sed 's/^Types:.*/Types: deb-src/' "$file" > "$lists/sources/$(basename "$file")"
    done
    if [ -s /etc/apt/sources.list ]; then
        sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > "$lists/sources/machine.list"
    fi
    apt_sources apt-get update -qq
}

# The command with apt pointed at the private lists.
apt_sources() {
    "$1" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$lists/sources" \
        -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root "${@:2}"
}

# The newest version is not always there to download: an archive may list what it no longer, or not yet, holds.
download_source() {
    local version
    for version in $(apt_sources apt-cache showsrc "$package" | sed -n 's/^Version: //p' | sort -rVu); do
        if (cd "$lists" && apt_sources apt-get source -qq --download-only "$package=$version" >/dev/null 2>&1); then
            echo "$version"
            return
        fi
        say "$package $version is listed but does not download; trying the next"
    done
    die "no version of $package downloads"
}

unpack() {
    local archives=("$lists/postgresql-15_${1%%-*}.orig.tar."*)
    rm -rf "$build" "$installation"
    mkdir -p "$build"
    tar -xf "${archives[0]}" --strip-components=1 -C "$build"
}

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
    version=$(download_source)
    say "building $package $version (about five minutes on two cores)"
    unpack "$version"
    compile
    echo "$version" > "$STUDY_WORK/version"
fi
echo "$plain_server"
