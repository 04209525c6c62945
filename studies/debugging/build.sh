#!/usr/bin/env bash
# Builds programs with debug information and relocations: LevelDB's db_bench (C++, g++ -O2 -g), PostgreSQL 15's server (gcc -O2 -g) and
# RocksDB's db_bench with all of the library (C++, g++ -O2 -g), from Debian's source packages. Makes of each what afterlink makes of it by the
# profile of the workload and in random order, and what BOLT makes of it by the same profile.
#
#   build.sh [PROGRAM …]     PROGRAM: leveldb | postgres | rocksdb (half an hour of one processor); by default the first two
#   JOBS=2                   how many compilers run at once           (default: one per processor)
#
# Gives $STUDY_WORK/PROGRAM/{plain,faster,random,bolted}; can be stopped and started again.
. "$(dirname "$0")/environment.sh"
. "$study/workloads.sh"
programs=("$@")
[ "$#" -gt 0 ] || programs=(leveldb postgres)
jobs=${JOBS:-$(nproc)}
install_packages build-essential dpkg-dev bolt-22

get_source() { # PACKAGE FOLDER
    [ -d "$STUDY_WORK/$2/build" ] && return 0
    prepare_sources
    unpack_source "$1" "$(download_source "$1")" "$STUDY_WORK/$2/build"
}

build_leveldb() {
    local source object
    install_packages libgmock-dev
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
    install_packages bison flex perl libreadline-dev zlib1g-dev
    get_source postgresql-15 postgres
    cd "$STUDY_WORK/postgres/build"
    [ -f config.status ] || ./configure --prefix="$STUDY_WORK/postgres/install" --without-icu CFLAGS='-O2 -g' LDFLAGS=-Wl,--emit-relocs > configure.log
    make -s -j"$jobs" > make.log 2>&1
    make -s install > install.log 2>&1
    cp src/backend/postgres ../plain
}

# Its own Makefile names the library's sources in src.mk. What it finds out of the machine is fixed here.
build_rocksdb() {
    install_packages libgflags-dev libsnappy-dev liblz4-dev libzstd-dev zlib1g-dev libbz2-dev
    get_source rocksdb rocksdb
    cd "$STUDY_WORK/rocksdb/build"
    cat > study.mk <<'END'
include src.mk
flags := -std=c++17 -O2 -g -DNDEBUG -I. -Iinclude -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DOS_LINUX -DGFLAGS=1 \
    -DSNAPPY -DLZ4 -DZLIB -DZSTD -DBZIP2 -fno-builtin-memcmp -w
sources := $(filter-out util/build_version.cc, $(LIB_SOURCES)) $(BENCH_LIB_SOURCES) tools/db_bench.cc test_util/testutil.cc
objects := $(patsubst %.cc, objects/%.o, $(sort $(sources))) objects/version.o
../plain: $(objects)
	g++ -Wl,--emit-relocs $^ -lgflags -lsnappy -llz4 -lzstd -lz -lbz2 -lpthread -ldl -o $@
objects/%.o: %.cc
	mkdir -p $(@D)
	g++ $(flags) -c $< -o $@.part
	mv $@.part $@
objects/version.o: util/build_version.cc.in
	mkdir -p objects
	sed 's/@GIT_MOD@/0/; s/@[A-Z_]*@//' $< > objects/version.cc
	g++ $(flags) -c objects/version.cc -o $@
END
    make -s -j"$jobs" -f study.mk ../plain > make.log 2>&1
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

for name in "${programs[@]}"; do
    [ -x "$STUDY_WORK/$name/plain" ] || "build_$name"
    # What an older afterlink wrote is made anew.
    [ "$STUDY_WORK/$name/bolted" -nt "$AFTERLINK" ] || derive "$name"
    ls -l "$STUDY_WORK/$name"/{plain,faster,random,bolted}
done
