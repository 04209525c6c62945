#!/usr/bin/env bash
# CPython's own tests with its library replaced by a rewritten one.
#
#   check.sh [MODE …]      modes: plain input reverse random:SEED instrumented optimized, or `all` (the default)
#                          all = plain input reverse random:1 random:2 random:3 instrumented optimized
#   TESTS="test_re test_json" check.sh …       other tests than the ones below
#
# Prints one line for each mode, writes $RESULTS/check.json, and exits non-zero unless every test has the outcome that it has with
# the plain library. In the libraries of scope `all`, 99.5 % of the functions, with 99.9 % of the instructions that the benchmark
# executes, must have moved.
. "$(dirname "$0")/environment.sh"
. "$study/rewrite.sh"

TESTS=${TESTS:-test_exceptions test_generators test_asyncio test_ctypes test_re test_json test_threading test_grammar test_descr
    test_functools test_coroutines test_contextlib test_dict test_list test_set test_unicode test_long test_float test_struct
    test_pickle test_decimal test_datetime test_itertools test_collections test_traceback test_gc test_weakref test_typing
    test_dataclasses test_enum test_compile test_ast test_capi test_sqlite3 test_zlib test_hashlib test_subprocess}
failures=0
rows=()

# run_tests NAME: leaves "OUTCOME TEST" of every test in $RESULTS/check/NAME.outcomes.
run_tests() {
    local keep=$RESULTS/check
    mkdir -p "$keep"
    rm -f "$keep/$1.xml" "$keep/$1.outcomes"
    # Some tests leave their processes behind if a library is broken.
    python "$libraries/$1" -m test -j3 --timeout 900 --junit-xml "$keep/$1.xml" $TESTS > "$keep/$1.log" 2>&1 || true
    [ -s "$keep/$1.xml" ] || { : > "$keep/$1.outcomes"; return; }
    python "$build" "$study/outcomes.py" "$keep/$1.xml" > "$keep/$1.outcomes"
}

# check_mode MODE[:SEED]
check_mode() {
    local mode=${1%%:*} seed='' name tests differing verdict=same keep=$RESULTS/check
    [ "$mode" = "$1" ] || seed=${1#*:}
    name=$mode${seed:+-$seed}
    if ! make_library "$mode" "$seed" > /dev/null; then
        report_row "$name" 0 0 'not written'
        return
    fi
    case $mode in input | reverse | random) check_moved "$name" ;; esac
    run_tests "$name"
    tests=$(wc -l < "$keep/$name.outcomes")
    differing=$(diff "$keep/plain.outcomes" "$keep/$name.outcomes" | grep -c '^[<>]') || true
    [ "$tests" -gt 1000 ] && [ "$differing" -eq 0 ] || verdict="see diff $keep/plain.outcomes $keep/$name.outcomes"
    report_row "$name" "$tests" "$differing" "$verdict"
}

# check_moved NAME: a library in which little moved would prove little.
check_moved() {
    local moved all share verdict=moved
    read -r moved all share < <(moved_share "$libraries/$1/report.json")
    awk -v m="$moved" -v a="$all" -v s="$share" 'BEGIN { exit !(a > 0 && m >= 0.995 * a && s >= 99.9) }' || verdict='too few moved'
    report_row "$1" "$moved" "$((all - moved))" "$verdict, with $share % of the executed instructions"
}

report_row() { # NAME COUNT DIFFERING VERDICT
    local whole=true
    case $4 in same | moved*) ;; *) whole=false; failures=$((failures + 1)) ;; esac
    printf '%-14s %6s %6s  %s\n' "$1" "$2" "$3" "$4"
    rows+=("{\"library\":\"$1\",\"count\":$2,\"differing\":$3,\"whole\":$whole,\"remark\":\"$4\"}")
}

write_json() {
    local IFS=,
    printf '{"version":"%s","runs":[%s]}\n' "$(cat "$STUDY_WORK/version" 2>/dev/null)" "${rows[*]}" > "$RESULTS/check.json"
}

install_packages jq valgrind
need_build
modes=("$@")
if [ "${#modes[@]}" -eq 0 ] || [ "${modes[*]}" = all ]; then
    modes=(plain input reverse random:1 random:2 random:3 instrumented optimized)
fi
[ "${modes[*]}" = plain ] || { need_afterlink; count_executed; }
trap write_json EXIT
printf '%-14s %6s %6s\n' library tests differ
[ -s "$RESULTS/check/plain.outcomes" ] || [ "${modes[0]}" = plain ] || die "check the mode plain first"
for mode in "${modes[@]}"; do
    if [ "$mode" = plain ]; then
        make_library plain > /dev/null
        run_tests plain
        report_row plain "$(wc -l < "$RESULTS/check/plain.outcomes")" 0 same
    else
        check_mode "$mode"
    fi
done
[ "$failures" -eq 0 ] || die "$failures of ${#rows[@]} lines are not as with the plain library"
