#!/usr/bin/env bash
# Builds OpenJDK 17 from Debian's source package, by gcc with its own flags (-O3), and the relocations kept: the virtual machine, and as many modules as its
# tests need.
#
# Gives $STUDY_WORK/plain/libjvm.so, and $STUDY_WORK/build/jdk, which runs.
. "$(dirname "$0")/environment.sh"

modules=(java.base jdk.compiler java.management jdk.management java.instrument jdk.attach jdk.jfr java.logging jdk.zipfs jdk.unsupported jdk.jcmd)

configure() {
    bash "$source/configure" --with-jvm-variants=server --enable-headless-only --disable-warnings-as-errors --with-native-debug-symbols=none \
        "--with-boot-jdk=$boot_jdk" --with-extra-ldflags=-Wl,--emit-relocs "--with-jobs=$(nproc)"
}

compile() {
    rm -rf "$build"
    mkdir -p "$build"
    (cd "$build" && configure && nice -n "${NICE:-0}" make hotspot "${modules[@]}" release-file) > "$logs/build.log" 2>&1 || die "see $logs/build.log"
    mkdir -p "$plain_programs"
    cp "$jdk/lib/server/libjvm.so" "$plain_programs/libjvm.so"
}

install_packages build-essential dpkg-dev pkg-config autoconf zip unzip file openjdk-17-jdk-headless jtreg7 libasound2-dev libcups2-dev libfontconfig-dev \
    libfreetype-dev libx11-dev libxext-dev libxrender-dev libxrandr-dev libxtst-dev libxt-dev
build_once "$plain_programs/libjvm.so" openjdk-17 "$source" "a quarter of an hour" compile
