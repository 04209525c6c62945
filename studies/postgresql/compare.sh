#!/usr/bin/env bash
# Judges a real server by the CPU time that its processes take for one of pgbench's transactions, with the throughput beside it:
# `afterlink compare` starts and stops each layout's server itself, and chooses that metric where there are no counters of cycles.
#
#   compare.sh optimized    the server as linked against itself laid out by a profile of pgbench, each with other gaps
#   compare.sh bolt         the server as linked against what llvm-bolt-22 makes of it by its own profile (cdsort), as the files are
#   compare.sh bolt-cdsplit the same with its other strategy to split
#   compare.sh same         the server against itself in unrelated random layouts: whatever is found is a fault
#
#   MAX_TIME=900            seconds for each, at most
#   PRECISION=1.5%          ends as soon as the interval reaches no further than so much to either side
#   SECONDS_PER_RUN=2       of pgbench
#   CPUS=0,1                client and server share one of them, a block each: where the scheduler puts them apart and together by turns,
#                           a transaction costs twice as much in one run as in the next
#
# Reports and records go to $RESULTS/compare-*.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

MAX_TIME=${MAX_TIME:-900}
PRECISION=${PRECISION:-1.5%}
SECONDS_PER_RUN=${SECONDS_PER_RUN:-2}
CPUS=${CPUS:-0,1}
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
    "$AFTERLINK" compare "$plain_server" "$@" --max-time "$MAX_TIME" --precision "$PRECISION" --ignore-output --cpus "$CPUS" \
        --set-up "exec '$self' start {}" --warm-up "exec '$self' bench 1" --tear-down "exec '$self' stop" \
        --report "$RESULTS/compare-$name.html" --record "$RESULTS/compare-$name.json" -- "$self" bench "$SECONDS_PER_RUN"
}

# bolted_server NAME STRATEGY: prints the path of the server that BOLT laid out by its own profile of pgbench.
bolted_server() {
    local out=$servers/bolt-$1/postgres
    mkdir -p "$servers/bolt-$1"
    set_bolt_command "$(bolt_profile pgbench)" "$2" "$out"
    "${command[@]}" > "$logs/bolt-$1.log" 2>&1 || { cat "$logs/bolt-$1.log" >&2; die "BOLT failed"; }
    echo "$out"
}

case ${1:-} in
start) start_server "$2" "$data" ;;
stop) stop_server "$data" ;;
bench) run_pgbench "$2" ;;
optimized)
    profile=$(afterlink_profile pgbench)
    compare optimized --profile-b "$profile"
    ;;
bolt) compare bolt "$(bolted_server cdsort profile2)" --layout as-is ;;
bolt-cdsplit) compare bolt-cdsplit "$(bolted_server cdsplit cdsplit)" --layout as-is ;;
same) compare same --self ;;
*) die "optimized, bolt, bolt-cdsplit or same?" ;;
esac
