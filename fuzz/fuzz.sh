#!/usr/bin/env bash
# Fuzzes one target for some seconds, from the checked-in seeds on: fuzz/fuzz.sh eh_frame 3600
# Needs no nightly compiler: coverage is counted by LLVM's own pass, and safe code needs no address sanitizer.
# FUZZ_BINARIES names a folder of fuzzers that are built already; fuzz/fuzz.sh build FOLDER fills it.
set -euo pipefail
cd "$(dirname "$0")"
target=$1
targets=(whole image eh_frame fdata counter_file address_map eh_frame_hdr notes)

build() {
    export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1"
    host=$(rustc -vV | sed -n 's/host: //p')
    # With a target named, the flags are for the fuzzed code only and not for build scripts.
    nice -n 5 cargo build --quiet --release --target "$host" "${@/#/--bin=}"
    binaries=target/$host/release
}

if [ "$target" = build ]; then
    build "${targets[@]}"
    mkdir -p "$2"
    for target in "${targets[@]}"; do
        cp --remove-destination "$binaries/$target" "$2/$target"
    done
    exit
fi

seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
binaries=${FUZZ_BINARIES:-}
[ -n "$binaries" ] || build "$target"
seeds=$target options=()
# Few changes at a time, so that many inputs still are programs.
[ "$target" = whole ] && seeds=image && options=(-mutate_depth=2 -cross_over=0)
mkdir -p "corpus/$target" "artifacts/$target"
# Time: a run of more than ten seconds is a fault. Memory is held to the input's size by the targets themselves; what
# libFuzzer adds is for what they don't see.
# One thread: the order of coverage must not depend on the scheduler.
RAYON_NUM_THREADS=1 exec "$binaries/$target" "corpus/$target" "../tests/hostile/seeds/$seeds" \
    -artifact_prefix="artifacts/$target/" -max_total_time="$seconds" -max_len=65536 \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10 -print_final_stats=1 "${options[@]}" "$@"
