#!/usr/bin/env bash
# Fuzzes one target for some seconds, from the checked-in seeds on: fuzz/fuzz.sh eh_frame 3600
# Needs no nightly compiler: coverage is counted by LLVM's own pass, and safe code needs no address sanitizer.
set -euo pipefail
cd "$(dirname "$0")"
target=$1
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))

export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1"
host=$(rustc -vV | sed -n 's/host: //p')
# With a target named, the flags are for the fuzzed code only and not for build scripts.
cargo build --quiet --release --target "$host" --bin "$target"
seeds=$target
[ "$target" = whole ] && seeds=image
mkdir -p "corpus/$target" "artifacts/$target"
# Memory: libFuzzer ends a run that takes more than a gigabyte in all, or 256 MiB at once, or half a minute.
# One thread: the order of coverage must not depend on the scheduler.
RAYON_NUM_THREADS=1 exec "target/$host/release/$target" "corpus/$target" "../tests/hostile/seeds/$seeds" \
    -artifact_prefix="artifacts/$target/" -max_total_time="$seconds" -max_len=65536 \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=30 -print_final_stats=1 "$@"
