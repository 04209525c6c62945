#!/usr/bin/env bash
# Judges a real server by the throughput that pgbench prints: `afterlink compare` starts and stops each layout's server itself.
#
#   compare.sh optimized    the server as linked against itself laid out by a profile of pgbench, each with other gaps
#   compare.sh same         the server against itself in unrelated random layouts: whatever is found is a fault
#
#   MAX_TIME=600            seconds for each; more of them make narrower intervals
#   SECONDS_PER_RUN=2       of pgbench
#
# Reports and records go to $RESULTS/compare-*.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

MAX_TIME=${MAX_TIME:-600}
SECONDS_PER_RUN=${SECONDS_PER_RUN:-2}
data=$STUDY_WORK/data-compare
self=$study/compare.sh

run_pgbench() { # SECONDS
    as_user "$installation/bin/pgbench" -h "$sockets" -U study -n -S -M prepared -c 1 -T "$1" postgres
}

# compare NAME OPTION …
compare() {
    local name=$1
    shift
    need_build
    need_afterlink
    prepare_data
    copy_data "$data"
    "$AFTERLINK" compare "$plain_server" "$@" --max-time "$MAX_TIME" --ignore-output --metric 'tps=higher:pattern:tps = ([0-9.]+)' \
        --set-up "exec '$self' start {}" --warm-up "exec '$self' bench 1" --tear-down "exec '$self' stop" \
        --report "$RESULTS/compare-$name.html" --record "$RESULTS/compare-$name.json" -- "$self" bench "$SECONDS_PER_RUN"
}

case ${1:-} in
start) start_server "$2" "$data" ;;
stop) stop_server "$data" ;;
bench) run_pgbench "$2" ;;
optimized)
    profile=$(afterlink_profile pgbench)
    compare optimized --profile-b "$profile"
    ;;
same) compare same --self ;;
*) die "optimized or same?" ;;
esac
