# Sourced by a study's measure.sh after its environment.sh: what afterlink makes of the measured program, beside BOLT 22, from the
# same profiles.
#
#   measure.sh [EXPERIMENT …]     both by default
#     layout         instruction-cache misses of the workload, simulated: with 8 ways as machines have them, and with any line in any
#                    place (512 ways), where it does not matter which lines happen to share a set
#     branches       taken branches: by each tool's dyno-stats, and counted while it runs
#
#   TOOLS="afterlink bolt-cdsort bolt-cdsplit"
#   PROFILES="bolt afterlink"      whose instrumentation
#   WAYS="8 512"                   of the cache in layout
#
# Each prints a table and writes $RESULTS/EXPERIMENT.tsv.
. "$study/../rewrite.sh"

PROFILES=${PROFILES:-bolt afterlink}
TOOLS=${TOOLS:-afterlink bolt-cdsort bolt-cdsplit}
WAYS=${WAYS:-8 512}
answers=$RESULTS/answers
plain=$plain_programs/$measured

# optimized_program TOOL PROFILE: prints the path of the program that TOOL made by PROFILE. BOLT has its best published orders of
# blocks and functions; its strategy of splitting is profile2 in bolt-cdsort, cdsplit in bolt-cdsplit.
optimized_program() {
    local fdata folder=$rewritten/$1-by-$2 command strategy=cdsplit
    fdata=$("${2}_profile")
    mkdir -p "$folder"
    [ "$1" != bolt-cdsort ] || strategy=profile2
    case $1 in
    afterlink) command=("$AFTERLINK" optimize "$plain" --profile "$fdata" -o "$folder/$measured" --report "$folder/report.json") ;;
    bolt-*)
        command=(llvm-bolt-22 "$plain" -o "$folder/$measured" -data "$fdata" -reorder-blocks=ext-tsp -reorder-functions=cdsort
            -split-functions "-split-strategy=$strategy" -split-all-cold -dyno-stats)
        ;;
    *) die "no such tool: $1" ;;
    esac
    [ -s "$folder/$measured" ] || "${command[@]}" > "$folder/log" 2>&1 || { cat "$folder/log" >&2; die "$1 failed"; }
    echo "$folder/$measured"
}

# checked PROGRAM WRAPPER …: runs the workload; its answers must be the plain program's.
checked() {
    run_workload "$@" > "$answers" 2> "$logs/simulated.err" || { tail -20 "$logs/simulated.err" >&2; die "the workload failed with $1"; }
    [ -s "$answers.plain" ] || run_workload "$plain" > "$answers.plain"
    cmp "$answers" "$answers.plain" >&2 || die "$1 answers differently"
}

# simulate_misses PROGRAM: prints the misses with each number of ways, and the instructions.
simulate_misses() {
    local ways log=$logs/simulated.log
    for ways in $WAYS; do
        checked "$1" valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null "--I1=32768,$ways,64" "--log-file=$log"
        awk '/I1  misses:/ { gsub(",", ""); printf "%d\t", $4 }' "$log"
    done
    awk '/I   refs:/ { gsub(",", ""); print $4 }' "$log"
}

# run_taken PROGRAM: the jumps inside functions that are taken, counted by callgrind, which knows neither tool. It counts the
# libraries' as well, which nobody moves, and no jump from one fragment to another.
run_taken() {
    local counted=$STUDY_WORK/callgrind.jumps
    checked "$1" valgrind --tool=callgrind --collect-jumps=yes --dump-instr=yes "--callgrind-out-file=$counted" \
        "--log-file=$logs/callgrind.log"
    awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d\n", taken }' "$counted"
}

# dyno_taken TOOL PROGRAM: prints "BEFORE AFTER", the taken branches that the tool derives from the profile.
dyno_taken() {
    local folder
    folder=$(dirname "$2")
    case $1 in
    afterlink) jq -r '"\(.dyno_stats.before.taken_branches)\t\(.dyno_stats.after.taken_branches)"' "$folder/report.json" ;;
    bolt-*) awk '/ : taken branches/ { n[++i] = $1 } END { print n[1] "\t" n[2] }' "$folder/log" ;;
    esac
}

measure_layout() {
    printf 'profile\tlayout%s\tinstructions\n' "$(printf '\t%s ways' $WAYS)"
    printf 'none\tplain\t%s\n' "$(simulate_misses "$plain")"
    local profile tool program
    for profile in $PROFILES; do
        for tool in $TOOLS; do
            program=$(optimized_program "$tool" "$profile")
            printf '%s\t%s\t%s\n' "$profile" "$tool" "$(simulate_misses "$program")"
        done
    done
}

measure_branches() {
    printf 'profile\tlayout\tbefore\tafter\trunning\n'
    printf 'none\tplain\t-\t-\t%s\n' "$(run_taken "$plain")"
    local profile tool program
    for profile in $PROFILES; do
        for tool in $TOOLS; do
            program=$(optimized_program "$tool" "$profile")
            printf '%s\t%s\t%s\t%s\n' "$profile" "$tool" "$(dyno_taken "$tool" "$program")" "$(run_taken "$program")"
        done
    done
}

install_packages valgrind jq bolt-22
need_build
need_afterlink
rm -f "$answers.plain"
experiments=("$@")
[ "${#experiments[@]}" -gt 0 ] || experiments=(layout branches)
for experiment in "${experiments[@]}"; do
    case $experiment in
    layout | branches) "measure_$experiment" | tee "$RESULTS/$experiment.tsv" ;;
    *) die "no such experiment: $experiment" ;;
    esac
done
