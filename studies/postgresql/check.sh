#!/usr/bin/env bash
# PostgreSQL's own `make check` with the server replaced by a rewritten one.
#
#   check.sh [MODE …]      modes: plain input reverse random:SEED instrumented optimized, or `all` (the default)
#                          all = plain input reverse random:1 random:2 random:3 instrumented optimized
#   SUITES="regress isolation" check.sh …      more than `make check` runs (default: regress)
#
# Prints one line for each mode and suite, writes $RESULTS/check.json, keeps the diffs of a failure, and exits non-zero
# unless every suite is whole: every test that its schedule lists has passed. In the rewritten servers of scope `all`, 99 % of
# the functions, with 99.9 % of the instructions that the lookups execute, must have moved.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

suites=${SUITES:-regress}
tested_server=$build/tmp_install$installation/bin/postgres
failures=0
rows=()

# run_suite SUITE NAME: prints "PASSED TOTAL"; the log and the diffs stay in $RESULTS/check/NAME.
run_suite() {
    local suite=$1 directory=$build/src/test/$1 keep=$RESULTS/check/$2 log total failed
    log=$keep/$suite.log
    mkdir -p "$keep"
    rm -f "$keep/$suite."*
    as_user timeout --kill-after=30 1200 make -C "$directory" check NO_TEMP_INSTALL=yes > "$log" 2>&1 ||
        stop_left_over "$directory"
    if [ -f "$directory/regression.diffs" ]; then cp "$directory/regression.diffs" "$keep/$suite.diffs"; fi
    total=$(sed -n 's/^ *All \([0-9]*\) tests passed\..*/\1/p' "$log")
    if [ -n "$total" ]; then
        echo "$total $total"
        return
    fi
    total=$(sed -n 's/^ *[0-9]* of \([0-9]*\) tests failed.*/\1/p' "$log")
    failed=$(sed -n 's/^ *\([0-9]*\) of [0-9]* tests failed.*/\1/p' "$log")
    echo "$((${total:-0} - ${failed:-0})) ${total:-0}"
}

# A server that hangs outlives the timeout; its own pid file names it.
stop_left_over() {
    local pid_file=$1/tmp_check/data/postmaster.pid
    [ ! -f "$pid_file" ] || as_user kill -QUIT "$(head -1 "$pid_file")" 2>/dev/null || true
}

install_server() {
    cp --remove-destination "$1" "$tested_server"
    chmod 755 "$tested_server"
    give_to_user "$tested_server"
}

# check_mode MODE[:SEED]
check_mode() {
    local mode=${1%%:*} seed='' name suite passed total verdict
    [ "$mode" = "$1" ] || seed=${1#*:}
    name=$mode${seed:+-$seed}
    if ! make_server "$mode" "$seed" > /dev/null; then
        report_row "$name" - 0 0 'not written'
        return
    fi
    case $mode in input | reverse | random) check_moved "$name" ;; esac
    install_server "$servers/$name/postgres"
    for suite in $suites; do
        read -r passed total < <(run_suite "$suite" "$name")
        verdict=whole
        [ "$total" -gt 0 ] && [ "$passed" -eq "$total" ] && [ "$total" -eq "$(expected_tests "$suite")" ] ||
            verdict="see $RESULTS/check/$name"
        report_row "$name" "$suite" "$passed" "$total" "$verdict"
    done
}

# check_moved NAME: a server in which little moved would prove little.
check_moved() {
    local moved all share verdict=whole
    read -r moved all share < <(moved_share "$servers/$1/report.json")
    awk -v m="$moved" -v a="$all" -v s="$share" 'BEGIN { exit !(a > 0 && m >= 0.99 * a && s >= 99.9) }' || verdict='too few moved'
    report_row "$1" moved "$moved" "$all" "$verdict, with $share % of the executed instructions"
}

# How many tests the suite's schedule lists.
expected_tests() {
    case $1 in
    regress) sed -n 's/^test: //p' "$build/src/test/regress/parallel_schedule" | wc -w ;;
    *) sed -n 's/^test: //p' "$build/src/test/$1/${1}_schedule" | wc -w ;;
    esac
}

report_row() { # NAME SUITE PASSED TOTAL VERDICT
    local whole=true
    case $5 in whole*) ;; *) whole=false; failures=$((failures + 1)) ;; esac
    printf '%-14s %-10s %6s of %-6s %s\n' "$1" "$2" "$3" "$4" "$5"
    rows+=("{\"server\":\"$1\",\"suite\":\"$2\",\"passed\":$3,\"total\":$4,\"whole\":$whole,\"remark\":\"$5\"}")
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
[ "${modes[*]}" = plain ] || need_afterlink
trap 'install_server "$plain_server"; write_json' EXIT
prepare_data
[ "${modes[*]}" = plain ] || count_executed
printf '%-14s %-10s %6s    %-6s %s\n' server suite passed total ''
for mode in "${modes[@]}"; do check_mode "$mode"; done
[ "$failures" -eq 0 ] || die "$failures of ${#rows[@]} lines are not whole"
