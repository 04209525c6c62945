# Sourced by a study's check.sh after its environment.sh: the programs' own tests, with the programs rewritten.
#
#   check.sh [MODE …]      modes: plain input reverse random:SEED instrumented optimized, or `all` (the default)
#                          all = plain input reverse random:1 random:2 random:3 instrumented optimized
#
# Prints one line for each mode, writes $RESULTS/check.json, and exits non-zero unless every test has the outcome that it has with
# the plain programs, and the workload's answers are the same. In the programs of scope `all`, 99.5 % of the functions (least_moved), with 99.9 %
# of the instructions that the workload executes, must have moved.
. "$study/../rewrite.sh"

keep=$RESULTS/check
failures=0
rows=()

# check_mode MODE[:SEED]
check_mode() {
    local mode=${1%%:*} seed='' name tests differing verdict=same
    [ "$mode" = "$1" ] || seed=${1#*:}
    name=$mode${seed:+-$seed}
    if ! make_programs "$mode" "$seed" > /dev/null; then
        report_row "$name" 0 0 'not written'
        return
    fi
    case $mode in input | reverse | random) check_moved "$name" ;; esac
    observe "$name"
    tests=$(wc -l < "$keep/$name.outcomes")
    differing=$(diff "$keep/plain.outcomes" "$keep/$name.outcomes" | grep -c '^[<>]') || true
    [ "$tests" -ge "$least_tests" ] && [ "$differing" -eq 0 ] || verdict="see diff $keep/plain.outcomes $keep/$name.outcomes"
    cmp -s "$keep/plain.answers" "$keep/$name.answers" || verdict="see cmp $keep/plain.answers $keep/$name.answers"
    report_row "$name" "$tests" "$differing" "$verdict"
}

# observe NAME: runs tests and workload.
observe() {
    rm -f "$keep/$1".*
    run_tests "$1" "$rewritten/$1"
    run_workload "$rewritten/$1/$measured" > "$keep/$1.answers" 2> "$keep/$1.workload.log" || say "the workload failed with $1"
}

# check_moved NAME: a program in which little moved would prove little.
check_moved() {
    local moved all share program verdict
    for program in $program_names; do
        read -r moved all < <(jq -r '"\(.moved_functions) \(.functions)"' "$rewritten/$1/$program.report.json")
        verdict='moved'
        awk -v m="$moved" -v a="$all" -v least="$least_moved" 'BEGIN { exit !(a > 0 && m >= least * a) }' || verdict='too few moved'
        if [ "$program" = "$measured" ]; then
            share=$(moved_share "$rewritten/$1/$program.report.json")
            awk -v s="$share" 'BEGIN { exit !(s >= 99.9) }' || verdict='too little moved'
            verdict+=", with $share % of the executed instructions"
        fi
        report_row "$1" "$moved" "$((all - moved))" "$verdict: $program"
    done
}

report_row() { # NAME COUNT DIFFERING VERDICT
    local whole=true
    case $4 in same | moved*) ;; *) whole=false; failures=$((failures + 1)) ;; esac
    printf '%-14s %6s %6s  %s\n' "$1" "$2" "$3" "$4"
    rows+=("{\"program\":\"$1\",\"count\":$2,\"differing\":$3,\"whole\":$whole,\"remark\":\"$4\"}")
}

write_json() {
    local IFS=,
    printf '{"version":"%s","runs":[%s]}\n' "$(cat "$STUDY_WORK/version" 2>/dev/null)" "${rows[*]}" > "$RESULTS/check.json"
}

install_packages jq valgrind binutils
need_build
modes=("$@")
if [ "${#modes[@]}" -eq 0 ] || [ "${modes[*]}" = all ]; then
    modes=(plain input reverse random:1 random:2 random:3 instrumented optimized)
fi
[ "${modes[*]}" = plain ] || { need_afterlink; count_executed; }
trap write_json EXIT
printf '%-14s %6s %6s\n' program tests differ
[ -s "$keep/plain.outcomes" ] || [ "${modes[0]}" = plain ] || die 'check the mode plain first'
for mode in "${modes[@]}"; do
    if [ "$mode" = plain ]; then
        make_programs plain > /dev/null
        observe plain
        report_row plain "$(wc -l < "$keep/plain.outcomes")" 0 same
    else
        check_mode "$mode"
    fi
done
[ "$failures" -eq 0 ] || die "$failures of ${#rows[@]} lines are not as with the plain programs"
