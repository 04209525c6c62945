#!/usr/bin/env bash
# Checks `afterlink compare` on real programs whose true difference is known. About an hour on one CPU.
#
#   compare.sh [STEP …]       all by default
#     build       SQLite, and the slowdowns: how much more they do, counted in instructions and timed from within
#     same        20 pairs of builds of the same code, each linked in a random order of its own
#     planted     10 such pairs in which B does 1, 2 and 5 % more work
#     apart       like same, but laid out with --independent: nothing cancels between the sides
#     table       the tables, from whatever is there; also work/compare/results.json
#
#   AFTERLINK=/path/to/afterlink   uses that command instead of building one
#   SECONDS_PER_PAIR=75            limit for each comparison
#   ROUNDS=40                      length of a run: about a tenth of a second
#
# Every comparison keeps its record in work/compare; one that is there is not made again, so the script can be stopped at
# any time and goes on where it was.
. "$(dirname "$0")/environment.sh"

SECONDS_PER_PAIR=${SECONDS_PER_PAIR:-75}
ROUNDS=${ROUNDS:-40}
SIZE=20
SAME_PAIRS=20
PLANTED_PAIRS=10
SHARES=${SHARES:-1 2 5}
TIMINGS=15 # runs of each slowdown that is timed from within
objects=$work/compare

# ---- the programs ---------------------------------------------------------------------------------------------------------

# Each function in a section of its own, so that the linker can put them in any order.
compile_objects() {
    [ -f "$objects/workload.o" ] && return
    mkdir -p "$objects"
    "${compile[@]}" -ffunction-sections -c "$sources/sqlite3.c" -o "$objects/sqlite3.o"
    "${compile[@]}" -ffunction-sections -I"$sources" -c "$study/workload.c" -o "$objects/workload.o"
}

# link SEED OUT [SHARE [FLAG …]]: the program with SQLite's functions in random order; with a slowdown if SHARE is given.
# GNU ld sorts the sections .text.sorted.* by name. Park and Miller's generator gives the same order everywhere.
link() {
    local seed=$1 out=$2 share=${3:-}
    local -a plant=()
    [ -z "$share" ] || plant=(-Wl,--wrap=sqlite3_prepare_v2 "-DPLANT_SHARE=$share" -I"$sources" "$study/plant.c" "${@:4}")
    readelf -SW "$objects/sqlite3.o" | grep -o ' \.text\.[^ ]*' | grep -v '^ \.text\.unlikely' | awk -v seed="$seed" '
        BEGIN { state = seed; for (i = 0; i < 9; i++) state = state * 48271 % 2147483647 }
        { state = state * 48271 % 2147483647; printf "--rename-section %s=.text.sorted.%010d\n", $1, state }' > "$out.renames"
    objcopy @"$out.renames" "$objects/sqlite3.o" "$out.o"
    gcc -O2 "${plant[@]}" "$out.o" "$objects/workload.o" -o "$out" -Wl,--emit-relocs -lm
    rm "$out.o" "$out.renames"
}

# ---- the truth ------------------------------------------------------------------------------------------------------------

instructions() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$1" "$ROUNDS" "$SIZE" 2>&1 > /dev/null |
        sed -n 's/.*I *refs: *//p' | tr -d ,
}

more_percent() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.4f", 100 * (b / a - 1) }'; }

# The median, over runs in layouts of their own, of the time spent in what is planted over all other time.
timed_percent() {
    local share=$1 run
    for ((run = 1; run <= TIMINGS; run++)); do
        link "$((500 + run))" "$objects/clock" "$share" -DPLANT_CLOCK
        "$objects/clock" "$ROUNDS" "$SIZE" 2>&1 > /dev/null
    done | sort -n | awk '{ v[NR] = $1 } END { printf "%.4f", 100 * (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2 }'
}

# Finds the share of repeated queries for each wanted share of instructions, and says what it came to.
calibrate() {
    [ -f "$objects/truth.json" ] && return
    say 'Counting instructions'
    local base wanted share counted timed step remembering
    link 1 "$objects/trial"
    base=$(instructions "$objects/trial")
    link 1 "$objects/trial" 0
    remembering=$(more_percent "$base" "$(instructions "$objects/trial")")
    for wanted in $SHARES; do
        # What is repeated differs from query to query, so the count does not grow evenly: the closest of some trials.
        for step in 0.80 0.85 0.90 0.95 1.00 1.05 1.10; do
            share=$(awk -v w="$wanted" -v s="$step" 'BEGIN { printf "%.5f", s * w / 45 }')
            link 1 "$objects/trial" "$share"
            counted=$(more_percent "$base" "$(instructions "$objects/trial")")
            awk -v c="$counted" -v w="$wanted" -v s="$share" 'BEGIN { d = c - w; print (d < 0 ? -d : d), s, c }'
        done | sort -g | head -n 1 > "$objects/closest"
        read -r _ share counted < "$objects/closest"
        # The repeats are timed; for remembering what to repeat, its instructions have to stand.
        timed=$(awk -v t="$(timed_percent "$share")" -v r="$remembering" 'BEGIN { print t + r }')
        echo "wanted $wanted %: one query in $(awk -v s="$share" 'BEGIN { printf "%.1f", 1 / s }') repeated," \
            "$counted % more instructions, $timed % more time" >&2
        jq -n --argjson wanted "$wanted" --argjson share "$share" --argjson instructions "$counted" --argjson time "$timed" \
            '$ARGS.named'
    done | jq -s . > "$objects/truth.json.new"
    mv "$objects/truth.json.new" "$objects/truth.json"
    rm -f "$objects/trial" "$objects/clock" "$objects/closest"
}

# ---- the comparisons ------------------------------------------------------------------------------------------------------

# compare NAME SEED [SHARE [OPTION …]]: builds the pair and keeps the verdict in NAME.json. Both programs of a pair run at
# once on one CPU, so that other jobs on the machine meet both alike; CPU time is judged.
compare() {
    local name=$1 seed=$2 share=${3:-} record=$objects/$1.json
    [ -f "$record" ] && return
    link "$((2 * seed))" "$objects/a"
    link "$((2 * seed + 1))" "$objects/b" "$share"
    # 0 to 3 are verdicts.
    "$AFTERLINK" compare "$objects/a" "$objects/b" --seed "$seed" --together --runs 4 --max-time "$SECONDS_PER_PAIR" \
        --record "$record.new" "${@:4}" -- {} "$ROUNDS" "$SIZE" > "$objects/$name.txt" || [ $? -le 3 ] || die "$name: no verdict"
    jq -e '.experiments[0].stop != "interrupted"' "$record.new" > /dev/null || die "$name: interrupted"
    mv "$record.new" "$record"
    printf '%-12s %s   (load %s)\n' "$name" "$(sed -n '/^VERDICT/ { N; s/\n             */ /; s/\n.*//; s/^VERDICT *//p; }' "$objects/$name.txt")" "$(cut -d' ' -f1 /proc/loadavg)"
}

same() {
    say 'Pairs of the same code'
    for ((pair = 1; pair <= SAME_PAIRS; pair++)); do compare "same-$pair" "$((1000 + pair))"; done
}

apart() {
    say 'Pairs of the same code, laid out independently'
    for ((pair = 1; pair <= SAME_PAIRS; pair++)); do compare "apart-$pair" "$((2000 + pair))" '' --independent; done
}

planted() {
    local wanted share
    for wanted in $SHARES; do
        say "Pairs in which B does $wanted % more"
        share=$(jq ".[] | select(.wanted == $wanted).share" "$objects/truth.json")
        for ((pair = 1; pair <= PLANTED_PAIRS; pair++)); do
            compare "planted-$wanted-$pair" "$((3000 + 100 * wanted + pair))" "$share"
        done
    done
}

# ---- the tables -----------------------------------------------------------------------------------------------------------

# What counts of each record, as one list.
collect() {
    local record
    for record in "$objects"/{same,apart,planted-*}-[0-9]*.json; do
        [ -f "$record" ] || continue
        jq -c --arg name "$(basename "$record" .json)" '.analysis.benchmarks[0] as $a | {
            name: $name, group: ($name | sub("-[0-9]+$"; "")), verdict: $a.verdict.outcome,
            percent: $a.change.percent, low: $a.change.low, high: $a.change.high,
            naive_percent: $a.naive.percent, naive_p: $a.naive.p,
            layouts: $a.counts.layouts, runs: $a.counts.runs_per_layout, seconds: $a.seconds,
            seconds_per_run: $a.a.typical, layout_sd_percent: $a.a.layout_sd_percent, cpu_pressure: $a.machine.cpu_pressure }' "$record"
    done | jq -s --slurpfile truth "$objects/truth.json" '{ truth: $truth[0], pairs: . }' > "$objects/results.json"
}

table() {
    collect
    say 'Verdicts of compare; beside them, the t test at 5 % on ten pairs of runs of the two files as they are'
    jq -r '
        def share(f): map(select(f)) | length;
        def mean(f): (map(f) | add / length * 100 | round / 100);
        (["pairs", "of", "slower", "faster", "no diff.", "undecided", "untrusted", "naive: slower", "faster"]),
        (.pairs | group_by(.group)[] | [ .[0].group, length,
            share(.verdict == "slower"), share(.verdict == "faster"), share(.verdict == "no-difference"),
            share(.verdict == "undecided"), share(.verdict == "untrusted"),
            share(.naive_p < 0.05 and .naive_percent > 0), share(.naive_p < 0.05 and .naive_percent < 0) ]) | @tsv' \
        "$objects/results.json" | column -t -s $'\t'
    say 'What was planted in B, and how many of the intervals cover it'
    jq -r '
        def share(f): map(select(f)) | length;
        def round2: . * 100 | round / 100;
        (["wanted", "instructions", "time", "pairs", "found", "cover the time", "cover the instructions", "mean estimate", "mean half-width"]),
        (.truth as $truth | .pairs | group_by(.group)[] | select(.[0].group | startswith("planted")) |
            (.[0].group | sub("planted-"; "") | tonumber) as $wanted | ($truth[] | select(.wanted == $wanted)) as $t |
            [ "\($wanted) %", "\($t.instructions | round2) %", "\($t.time | round2) %", length, share(.verdict == "slower"),
              share(.low <= $t.time and $t.time <= .high), share(.low <= $t.instructions and $t.instructions <= .high),
              "\(map(.percent) | add / length | round2) %", "\(map((.high - .low) / 2) | add / length | round2) %" ]) | @tsv' \
        "$objects/results.json" | column -t -s $'\t'
    say 'What it took'
    jq -r '
        def mean(f): map(f) | add / length;
        def round2: . * 100 | round / 100;
        (["pairs", "s a pair", "layouts", "runs of each", "s a run", "sd of layouts", "CPU pressure", "worst"]),
        (.pairs | group_by(.group)[] | [ .[0].group, (mean(.seconds) | round), (mean(.layouts) | round2), (mean(.runs) | round2),
            (mean(.seconds_per_run) | round2), "\(mean(.layout_sd_percent) | round2) %",
            "\(mean(.cpu_pressure // 0) * 100 | round) %", "\(map(.cpu_pressure // 0) | max * 100 | round) %" ]) | @tsv' \
        "$objects/results.json" | column -t -s $'\t'
    echo "(CPU pressure: share of the time in which some task had to wait for a CPU; the machine has $(nproc))"
}

missing=()
for tool in jq valgrind; do command -v "$tool" > /dev/null || missing+=("$tool"); done
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
[ $# -gt 0 ] || set -- build same planted apart table
for step; do
    case $step in
    build | same | planted | apart)
        install_compiler
        fetch_sqlite
        build_afterlink
        compile_objects
        calibrate
        ;;
    esac
    case $step in
    build) ;;
    same | planted | apart | table) "$step" ;;
    *) die "no such step: $step" ;;
    esac
done
