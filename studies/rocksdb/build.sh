#!/usr/bin/env bash
# Links RocksDB's db_bench and three of its tests with the static library that Debian ships (compiled with -O2, assertions and
# sync points), and the relocations kept. What the library does not hold is compiled from Debian's source package of the same
# version.
#
# Gives $STUDY_WORK/plain with the programs. Each object is compiled once: the script can be stopped and started again.
. "$(dirname "$0")/environment.sh"

package=rocksdb
library=/usr/lib/x86_64-linux-gnu/librocksdb.a
objects=$STUDY_WORK/objects
flags=(-O2 -I"$build" -I"$build/include" -isystem "$build/third-party/gtest-1.8.1/fused-src" -DROCKSDB_PLATFORM_POSIX
    -DROCKSDB_LIB_IO_POSIX -DOS_LINUX -DGFLAGS=1 -DSNAPPY -DLZ4 -DZLIB -DZSTD -DBZIP2 -fno-builtin-memcmp -w)
bench=(tools/db_bench.cc tools/db_bench_tool.cc tools/simulated_hybrid_file_system.cc test_util/testutil.cc)
harness=(db/db_test_util.cc test_util/testharness.cc test_util/testutil.cc test_util/mock_time_env.cc table/mock_table.cc
    third-party/gtest-1.8.1/fused-src/gtest/gtest-all.cc)

# compile SOURCE: prints the object.
compile() {
    local object compiler=(g++ -std=c++17)
    object=$objects/$(basename "$1").o
    [ "${1%.c}" = "$1" ] || compiler=(gcc)
    if [ ! -s "$object" ]; then
        say "compiling $1"
        nice -n "${NICE:-0}" "${compiler[@]}" "${flags[@]}" -c "$build/$1" -o "$object.part"
        mv "$object.part" "$object"
    fi
    echo "$object"
}

# link PROGRAM SOURCE …
link() {
    local program=$plain_programs/$1 list=() source
    shift
    [ ! -x "$program" ] || return 0
    for source in "$@"; do list+=("$(compile "$source")"); done
    g++ -Wl,--emit-relocs "${list[@]}" "$library" -lgflags -lsnappy -llz4 -lzstd -lz -lbz2 -lpthread -ldl -o "$program"
}

install_packages build-essential dpkg-dev librocksdb-dev rocksdb-tools libgflags-dev libsnappy-dev liblz4-dev libzstd-dev zlib1g-dev libbz2-dev
mkdir -p "$objects" "$plain_programs"
if [ ! -f "$STUDY_WORK/version" ]; then
    prepare_sources
    version=$(download_source "$package")
    [ "$version" = "$(dpkg-query -W -f='${Version}' librocksdb-dev)" ] || die "librocksdb-dev is not of version $version"
    unpack_source "$package" "$version" "$build"
    echo "$version" > "$STUDY_WORK/version"
fi
link db_bench "${bench[@]}"
link c_test db/c_test.c
link db_iterator_test db/db_iterator_test.cc "${harness[@]}"
link db_basic_test db/db_basic_test.cc "${harness[@]}"
for name in $program_names; do echo "$plain_programs/$name"; done
