#!/usr/bin/env bash
# Builds two programs with debug information and relocations: LevelDB's db_bench (C++, g++ -O2 -g) and PostgreSQL 15's server (gcc -O2 -g),
# both from Debian's source packages. Makes of each what afterlink makes of it by the profile of the workload and in random order, and what
# BOLT makes of it by the same profile.
#
#   build.sh        gives $STUDY_WORK/{leveldb,postgres}/{plain,faster,random,bolted}; can be stopped and started again
. "$(dirname "$0")/environment.sh"
. "$study/workloads.sh"
install_packages build-essential dpkg-dev bison flex perl libreadline-dev zlib1g-dev libgmock-dev bolt-22

get_source() { # PACKAGE FOLDER
    [ -d "$STUDY_WORK/$2/build" ] && return 0
    prepare_sources
    unpack_source "$1" "$(download_source "$1")" "$STUDY_WORK/$2/build"
}

build_leveldb() {
    local source object
    get_source leveldb leveldb
    cd "$STUDY_WORK/leveldb/build"
    mkdir -p objects config/port
    sed -E 's/#cmakedefine01 (HAVE_CRC32C|HAVE_SNAPPY|HAVE_FULLFSYNC|HAVE_ZSTD)/#define \1 0/; s/#cmakedefine01 (.*)/#define \1 1/' \
        port/port_config.h.in > config/port/port_config.h
    for source in util/*.cc db/*.cc table/*.cc helpers/memenv/memenv.cc benchmarks/db_bench.cc; do
        case $source in *_test.cc | *windows* | *leveldbutil*) continue ;; esac
        object=objects/${source//\//_}.o
        [ -s "$object" ] || g++ -std=c++17 -O2 -g -I. -Iinclude -Iconfig -DLEVELDB_PLATFORM_POSIX=1 -DNDEBUG -w -c "$source" -o "$object"
    done
    g++ -Wl,--emit-relocs objects/*.o -lpthread -o ../plain
}

build_postgres() {
    get_source postgresql-15 postgres
    cd "$STUDY_WORK/postgres/build"
    [ -f config.status ] || ./configure --prefix="$STUDY_WORK/postgres/install" --without-icu CFLAGS='-O2 -g' LDFLAGS=-Wl,--emit-relocs > configure.log
    make -s -j"$(nproc)" > make.log 2>&1
    make -s install > install.log 2>&1
    cp src/backend/postgres ../plain
}

# derive PROGRAM: counts the workload, and writes the three outputs.
derive() {
    cd "$STUDY_WORK/$1"
    "$AFTERLINK" instrument plain -o counting --counters "$PWD/counters" > instrument.log
    prepare_"$1" plain
    run_"$1" counting > unused 2>&1 || true
    "$AFTERLINK" profile convert counters -o workload.fdata > convert.log
    "$AFTERLINK" optimize plain -p workload.fdata -o faster | tee faster.log | grep 'debug info'
    "$AFTERLINK" optimize plain "${everything_moved[@]}" --seed 1 -o random | tee random.log | grep 'debug info'
    llvm-bolt-22 plain -o bolted -data workload.fdata "${bolt_options[@]}" --enable-bat > bolt.log 2>&1
}

for name in leveldb postgres; do
    [ -x "$STUDY_WORK/$name/plain" ] || "build_$name"
    [ -s "$STUDY_WORK/$name/bolted" ] || derive "$name"
    ls -l "$STUDY_WORK/$name"/{plain,faster,random,bolted}
done
