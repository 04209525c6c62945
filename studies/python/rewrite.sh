# Sourced after environment.sh: makes rewritten libraries and profiles, each once.

libraries=$STUDY_WORK/libraries    # one folder each, so that every library has the soname that the program asks for
profiles=$STUDY_WORK/profiles
mkdir -p "$libraries" "$profiles"

# run_benchmark FOLDER [WRAPPER …]: the pure-Python benchmark with the library in FOLDER.
run_benchmark() {
    local folder=$1
    shift
    (cd "$build" && env -i PATH="$PATH" HOME=/tmp LC_ALL=C.UTF-8 TZ=UTC LD_LIBRARY_PATH="$folder" PYTHONHASHSEED=1 \
        "$@" ./python -S "$study/benchmark.py")
}

# make_library MODE [SEED]: writes $libraries/NAME/$library and its report, and prints NAME.
#   plain          the linker's own output
#   input          every function moved, order kept; here and in all that follow but one, the old code is overwritten with traps
#   reverse        every function moved, blocks and functions reversed
#   random         every function moved, blocks and functions in the random order of SEED, a random half of each split off
#   instrumented   counting
#   optimized      by the profile that the tests made with `instrumented`, and the benchmark's
# Returns non-zero, having shown why, if the tool fails.
make_library() {
    local mode=$1 seed=${2:-} name=$1${2:+-$2} split=none out
    out=$libraries/$name/$library
    mkdir -p "$libraries/$name"
    rm -f "$out"
    case $mode in
    plain) cp "$plain_library" "$out" ;;
    instrumented)
        rm -f "$STUDY_WORK/tests.counters"
        "$AFTERLINK" instrument "$plain_library" -o "$out" --counters "$STUDY_WORK/tests.counters" > "$logs/$name.log" 2>&1 ||
            { cat "$logs/$name.log" >&2; return 1; }
        ;;
    input | reverse | random)
        [ "$mode" != random ] || split=random
        run_optimize "$name" --scope all --split "$split" "--order-blocks=$mode" "--order-functions=$mode" ${seed:+--seed "$seed"} ||
            return 1
        ;;
    optimized)
        [ -s "$STUDY_WORK/tests.counters" ] || { say 'no counts of the tests: check the mode `instrumented` first'; return 1; }
        run_optimize "$name" --profile "$STUDY_WORK/tests.counters" --profile "$(afterlink_profile)" || return 1
        ;;
    *) die "no such mode: $mode" ;;
    esac
    echo "$name"
}

# run_optimize NAME FLAG …
run_optimize() {
    local name=$1
    shift
    "$AFTERLINK" optimize "$plain_library" -o "$libraries/$name/$library" --trap-old-code --report "$libraries/$name/report.json" "$@" \
        > "$logs/$name.log" 2>&1 || { cat "$logs/$name.log" >&2; return 1; }
}

# afterlink_profile: prints the path of the fdata that afterlink's counters make of the benchmark.
afterlink_profile() {
    local fdata=$profiles/afterlink.fdata counters=$STUDY_WORK/benchmark.counters folder=$libraries/counting
    if [ ! -s "$fdata" ]; then
        mkdir -p "$folder"
        rm -f "$counters"
        "$AFTERLINK" instrument "$plain_library" -o "$folder/$library" --counters "$counters" > "$logs/instrument.log" 2>&1 ||
            die "see $logs/instrument.log"
        run_benchmark "$folder" > "$logs/counting.out"
        "$AFTERLINK" profile convert "$counters" -o "$fdata" > "$logs/convert.log"
    fi
    echo "$fdata"
}

# bolt_profile: the same by BOLT's instrumentation.
bolt_profile() {
    local fdata=$profiles/bolt.fdata raw=$STUDY_WORK/bolt.fdata folder=$libraries/bolt-counting
    if [ ! -s "$fdata" ]; then
        mkdir -p "$folder"
        llvm-bolt-22 "$plain_library" -instrument "--instrumentation-file=$raw" -o "$folder/$library" > "$logs/bolt-instrument.log" 2>&1 ||
            die "see $logs/bolt-instrument.log"
        run_benchmark "$folder" > "$logs/bolt-counting.out"
        cp "$raw" "$fdata"
    fi
    echo "$fdata"
}

# count_executed: leaves in $logs/executed "INSTRUCTIONS FUNCTION" of the plain library's own functions during the benchmark,
# counted by callgrind, which knows nothing of what any tool could read.
count_executed() {
    local counted=$STUDY_WORK/callgrind.out
    [ ! -s "$logs/executed" ] || return 0
    run_benchmark "$build" valgrind --tool=callgrind "--callgrind-out-file=$counted" > "$logs/callgrind.stdout" 2> "$logs/callgrind.log" ||
        die "see $logs/callgrind.log"
    callgrind_annotate --threshold=100 "$counted" |
        sed -n "s#^ *\\([0-9,]*\\) (.*) *[^ ]*:\\([^ ]*\\) \\[.*/$library\\].*#\\1 \\2#p" | tr -d , | sed "s/'[0-9]*\$//" > "$logs/executed"
}

# moved_share REPORT: prints "MOVED ALL SHARE": functions moved, functions in all, and the percentage of the executed
# instructions that the moved ones hold. A refused name shared by several static functions counts against all of them.
moved_share() {
    jq -r '.refused[].functions[].name' "$1" | sort -u > "$logs/refused"
    awk -v list="$logs/refused" 'BEGIN { while ((getline name < list) > 0) refused[name] }
        { all += $1; if (!($2 in refused)) moved += $1 }
        END { printf "%.3f\n", all ? 100 * moved / all : 0 }' "$logs/executed" > "$logs/share"
    echo "$(jq -r '"\(.moved_functions) \(.functions)"' "$1") $(cat "$logs/share")"
}
