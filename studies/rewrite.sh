# Sourced after a study's environment.sh: makes rewritten programs and profiles of the workload.

rewritten=$STUDY_WORK/programs    # one folder for each way to write them, so that every program keeps its name
counters=$STUDY_WORK/counters     # what the tests leave, a file for each program
profiles=$STUDY_WORK/profiles
measured=${program_names%% *}
mkdir -p "$rewritten" "$counters" "$profiles"

# make_programs MODE [SEED]: writes $rewritten/NAME/PROGRAM and its report for each program, and prints NAME.
#   plain          the linker's own output
#   input          every function moved, order kept; here and in all that follow but one, the old code is overwritten with traps
#   reverse        every function moved, blocks and functions reversed
#   random         every function moved, blocks and functions in the random order of SEED, a random half of each split off
#   instrumented   counting
#   optimized      by the profile that the tests made with `instrumented`, and for the measured program the workload's
# Returns non-zero, having shown why, if the tool fails.
make_programs() {
    local mode=$1 seed=${2:-} name=$1${2:+-$2} program
    rm -rf "${rewritten:?}/$name"
    mkdir -p "$rewritten/$name"
    for program in $program_names; do make_program || return 1; done
    echo "$name"
}

# Uses `mode`, `seed`, `name` and `program` of make_programs.
make_program() {
    local out=$rewritten/$name/$program split=none given
    case $mode in
    plain) cp "$plain_programs/$program" "$out" ;;
    instrumented)
        rm -f "$counters/$program"
        logged "instrument-$program" "$AFTERLINK" instrument "$plain_programs/$program" -o "$out" --counters "$counters/$program"
        ;;
    input | reverse | random)
        [ "$mode" != random ] || split=random
        run_optimize --scope all --split "$split" "--order-blocks=$mode" "--order-functions=$mode" ${seed:+--seed "$seed"}
        ;;
    optimized)
        [ -s "$counters/$program" ] || { say "no counts of the tests of $program: check the mode instrumented first"; return 1; }
        given=(--profile "$counters/$program")
        [ "$program" != "$measured" ] || given+=(--profile "$(afterlink_profile)")
        run_optimize "${given[@]}"
        ;;
    *) die "no such mode: $mode" ;;
    esac
}

run_optimize() { # FLAG …
    logged "$name-$program" "$AFTERLINK" optimize "$plain_programs/$program" -o "$out" --trap-old-code --report "$out.report.json" "$@"
}

# logged LOG COMMAND …
logged() {
    "${@:2}" > "$logs/$1.log" 2>&1 || { cat "$logs/$1.log" >&2; return 1; }
}

# afterlink_profile: prints the path of the fdata that afterlink's counters make of the workload.
afterlink_profile() {
    local fdata=$profiles/afterlink.fdata counts=$STUDY_WORK/workload.counters program=$rewritten/counting/$measured
    if [ ! -s "$fdata" ]; then
        mkdir -p "$rewritten/counting"
        rm -f "$counts"
        logged instrument "$AFTERLINK" instrument "$plain_programs/$measured" -o "$program" --counters "$counts" || die 'not instrumented'
        run_workload "$program" > "$logs/counting.out"
        logged convert "$AFTERLINK" profile convert "$counts" -o "$fdata" || die 'not converted'
    fi
    echo "$fdata"
}

# bolt_profile: the same by BOLT's instrumentation.
bolt_profile() {
    local fdata=$profiles/bolt.fdata raw=$STUDY_WORK/bolt.fdata program=$rewritten/bolt-counting/$measured
    if [ ! -s "$fdata" ]; then
        mkdir -p "$rewritten/bolt-counting"
        rm -f "$raw"
        logged bolt-instrument llvm-bolt-22 "$plain_programs/$measured" -instrument "--instrumentation-file=$raw" -o "$program" ||
            die 'BOLT does not instrument it'
        run_workload "$program" > "$logs/bolt-counting.out"
        cp "$raw" "$fdata"
    fi
    echo "$fdata"
}

# count_executed: leaves in $logs/executed "INSTRUCTIONS FUNCTION" of the plain program's own functions under the workload, counted
# by callgrind, which knows nothing of what any tool could read. Instructions come last in a line of its file, after the place.
count_executed() {
    local counted=$STUDY_WORK/callgrind.out
    [ ! -s "$logs/executed" ] || return 0
    run_workload "$plain_programs/$measured" valgrind --tool=callgrind "--callgrind-out-file=$counted" "--log-file=$logs/callgrind.log" \
        > "$logs/callgrind.stdout" || die "see $logs/callgrind.log"
    callgrind_annotate --threshold=100 "$counted" |
        sed -n "s#^ *\\([0-9,]*\\) (.*) *[^ ]*:\\(.*\\) \\[.*/$measured\\].*#\\1 \\2#p" | sed ':again; s/^\([0-9]*\),/\1/; t again' |
        sed "s/'[0-9]*\$//" > "$logs/executed"
}

# moved_share REPORT: prints the percentage of the executed instructions that are in functions that moved. A refused name that
# several static functions share counts against all of them.
moved_share() {
    jq -r '.refused[].functions[].name' "$1" | sort -u | c++filt > "$logs/refused"
    awk -v list="$logs/refused" 'BEGIN { while ((getline name < list) > 0) refused[name] }
        { count = $1; sub(/^[0-9]* /, ""); all += count; if (!($0 in refused)) moved += count }
        END { printf "%.3f\n", all ? 100 * moved / all : 0 }' "$logs/executed"
}
