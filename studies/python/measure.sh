#!/usr/bin/env bash
# Measures what afterlink makes of libpython, beside BOLT 22, from the same profiles.
#
#   measure.sh [EXPERIMENT …]     both by default
#     layout         instruction-cache misses of the benchmark, simulated: with 8 ways as machines have them, and with any line in any place
#                    (512 ways), where it does not matter which lines happen to share a set
#     branches       taken branches: by each tool's dyno-stats, and counted while it runs
#
#   TOOLS="afterlink bolt-profile2 bolt-cdsplit"
#   PROFILES="bolt afterlink"      whose instrumentation
#
# Each prints a table and writes $RESULTS/EXPERIMENT.tsv.
. "$(dirname "$0")/environment.sh"
. "$study/rewrite.sh"

PROFILES=${PROFILES:-bolt afterlink}
TOOLS=${TOOLS:-afterlink bolt-profile2 bolt-cdsplit}
cachegrind=(valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null)

# optimized_library TOOL PROFILE: prints the folder of the library that TOOL made by PROFILE.
optimized_library() {
    local fdata folder=$libraries/$1-by-$2 command
    fdata=$("$2_profile")
    mkdir -p "$folder"
    case $1 in
    afterlink) command=("$AFTERLINK" optimize "$plain_library" --profile "$fdata" -o "$folder/$library" --report "$folder/report.json") ;;
    bolt-*)
        command=(llvm-bolt-22 "$plain_library" -o "$folder/$library" -data "$fdata" -reorder-blocks=ext-tsp -reorder-functions=cdsort
            -split-functions "-split-strategy=${1#bolt-}" -split-all-cold -dyno-stats)
        ;;
    *) die "no such tool: $1" ;;
    esac
    [ -s "$folder/$library" ] || "${command[@]}" > "$folder/log" 2>&1 || { cat "$folder/log" >&2; die "$1 failed"; }
    echo "$folder"
}

# checked COMMAND …: runs the benchmark; its answer must be the plain library's.
checked() {
    run_benchmark "$@" > "$logs/answer" 2> "$logs/simulated.log" || { tail -20 "$logs/simulated.log" >&2; die "the benchmark failed with $1"; }
    [ -s "$logs/answer.plain" ] || run_benchmark "$build" > "$logs/answer.plain"
    cmp "$logs/answer" "$logs/answer.plain" >&2 || die "$1 answers differently"
}

# simulate_misses FOLDER: prints "MISSES MISSES-OF-512-WAYS INSTRUCTIONS".
simulate_misses() {
    local ways
    for ways in 8 512; do
        checked "$1" "${cachegrind[@]}" "--I1=32768,$ways,64"
        awk '/I1  misses:/ { gsub(",", ""); printf "%d ", $4 }' "$logs/simulated.log"
    done
    awk '/I   refs:/ { gsub(",", ""); print $4 }' "$logs/simulated.log"
}

# run_taken FOLDER: the jumps inside functions that are taken, counted by callgrind, which knows neither tool. It counts the other
# libraries' as well, which nobody moves, and no jump from one fragment to another.
run_taken() {
    local counted=$STUDY_WORK/callgrind.jumps
    checked "$1" valgrind --tool=callgrind --collect-jumps=yes --dump-instr=yes "--callgrind-out-file=$counted"
    awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d\n", taken }' "$counted"
}

# dyno_taken TOOL FOLDER: prints "BEFORE AFTER", the taken branches that the tool derives from the profile.
dyno_taken() {
    case $1 in
    afterlink) jq -r '"\(.dyno_stats.before.taken_branches)\t\(.dyno_stats.after.taken_branches)"' "$2/report.json" ;;
    bolt-*) awk '/ : taken branches/ { n[++i] = $1 } END { print n[1] "\t" n[2] }' "$2/log" ;;
    esac
}

measure_layout() {
    printf 'profile\tlayout\t8 ways\t512 ways\tinstructions\n'
    printf 'none\tplain\t%s\t%s\t%s\n' $(simulate_misses "$build")
    local profile tool folder
    for profile in $PROFILES; do
        for tool in $TOOLS; do
            folder=$(optimized_library "$tool" "$profile")
            printf '%s\t%s\t%s\t%s\t%s\n' "$profile" "$tool" $(simulate_misses "$folder")
        done
    done
}

measure_branches() {
    printf 'profile\tlayout\tbefore\tafter\trunning\n'
    printf 'none\tplain\t-\t-\t%s\n' "$(run_taken "$build")"
    local profile tool folder
    for profile in $PROFILES; do
        for tool in $TOOLS; do
            folder=$(optimized_library "$tool" "$profile")
            printf '%s\t%s\t%s\t%s\n' "$profile" "$tool" "$(dyno_taken "$tool" "$folder")" "$(run_taken "$folder")"
        done
    done
}

install_packages valgrind jq bolt-22
need_build
need_afterlink
rm -f "$logs/answer.plain"
experiments=("$@")
[ "${#experiments[@]}" -gt 0 ] || experiments=(layout branches)
for experiment in "${experiments[@]}"; do
    case $experiment in
    layout | branches) "measure_$experiment" | tee "$RESULTS/$experiment.tsv" ;;
    *) die "no such experiment: $experiment" ;;
    esac
done
