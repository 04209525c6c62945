#!/usr/bin/env bash
# Fuzzes one target for some seconds, from the checked-in seeds on: fuzz/fuzz.sh eh_frame 3600
# Needs no nightly compiler: coverage is counted by LLVM's own pass, and safe code needs no address sanitizer.
# fuzz/fuzz.sh short: a minute of `whole`, beside it some seconds of each reader; always the same inputs, so that what it says of a
# commit is the same everywhere. What they don't reach is for longer runs, which begin differently each time.
# FUZZ_BINARIES names a folder below fuzz/ of fuzzers that are built already; fuzz/fuzz.sh build FOLDER fills it.
set -euo pipefail
cd "$(dirname "$0")"
target=$1
targets=(whole image eh_frame fdata counter_file recording pprof bolt_yaml address_map eh_frame_hdr lsda debug_info notes program_text)
# Inputs of a short run, by target.
declare -A short_runs=([whole]=6000 [image]=666000 [eh_frame]=1000000 [fdata]=466000 [counter_file]=233000 [recording]=200000
    [pprof]=200000 [bolt_yaml]=66000
    [address_map]=1333000 [eh_frame_hdr]=466000 [lsda]=333000 [debug_info]=100000 [notes]=6000000 [program_text]=166000)

build() {
    export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1"
    host=$(rustc -vV | sed -n 's/host: //p')
    # With a target named, the flags are for the fuzzed code only and not for build scripts.
    nice -n 5 cargo build --quiet --release --target "$host" "${@/#/--bin=}"
    binaries=target/$host/release
}

# build_into FOLDER
build_into() {
    build "${targets[@]}"
    mkdir -p "$1"
    for target in "${targets[@]}"; do
        cp --remove-destination "$binaries/$target" "$1/$target"
    done
}

# shortly TARGET: the short run of a target, from nothing but its seeds; shows what was printed only if something was found.
shortly() {
    rm -rf "target/short/corpus/$1"
    # Without -reload=0 a run takes up what it wrote itself, each second; -use_cmp=1 also sees addresses compared.
    CORPUS=target/short/corpus ./fuzz.sh "$1" 0 -seed=1 -reload=0 -use_cmp=0 "-runs=${short_runs[$1]}" -verbosity=0 \
        >"target/short/$1.log" 2>&1 && return
    cat "target/short/$1.log"
    echo "fuzz: $1 failed; see artifacts/$1" >&2
    return 1
}

case $target in
build)
    build_into "$2"
    exit
    ;;
short)
    build_into target/short
    export FUZZ_BINARIES=target/short
    shortly whole &
    failed=0
    for target in "${targets[@]:1}"; do
        shortly "$target" || failed=1
    done
    wait $! || failed=1
    exit $failed
    ;;
esac

seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
binaries=${FUZZ_BINARIES:-}
[ -n "$binaries" ] || build "$target"
seeds=$target options=()
# Few changes at a time, so that many inputs still are programs.
[ "$target" = whole ] && seeds=image && options=(-mutate_depth=2 -cross_over=0)
corpus=${CORPUS:-corpus}/$target
mkdir -p "$corpus" "artifacts/$target"
# Time: a run of more than ten seconds is a fault. Memory is held to the input's size by the targets themselves; what
# libFuzzer adds is for what they don't see.
exec "$binaries/$target" "$corpus" "../tests/hostile/seeds/$seeds" \
    -artifact_prefix="artifacts/$target/" -max_total_time="$seconds" -max_len=65536 \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10 -print_final_stats=1 "${options[@]}" "$@"
