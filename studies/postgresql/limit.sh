#!/usr/bin/env bash
# How many cache lines the 4,000 lookups need, how many the code of each server stands in, and how far the misses are from the least
# (../front-end/limit.py). Servers: plain, optimized, bolt-profile2 and bolt-cdsplit by default; all but the first are laid out by afterlink's counters of
# the lookups. Or any file.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

data=$STUDY_WORK/data-limit
need_build
need_afterlink
prepare_data
make_counts_directory
mkdir -p "$servers/limit"
[ $# -gt 0 ] || set -- plain optimized bolt-profile2 bolt-cdsplit
for server in "$@"; do
    case $server in
    plain) binary=$plain_server ;;
    optimized)
        run_optimize limit --profile "$(afterlink_profile lookups)"
        binary=$servers/limit/postgres
        ;;
    bolt-*)
        binary=$servers/limit/postgres
        set_bolt_command "$(afterlink_profile lookups)" "${server#bolt-}" "$binary"
        "${command[@]}" > "$logs/limit-bolt.log" 2>&1 || { cat "$logs/limit-bolt.log" >&2; die "BOLT failed"; }
        ;;
    *) binary=$server ;;
    esac
    copy_data "$data"
    counted=$STUDY_WORK/counts/limit.out
    rm -f "$counted"
    run_lookups "$binary" "$data" valgrind --tool=callgrind --dump-instr=yes --cache-sim=yes --I1=32768,8,64 \
        "--callgrind-out-file=$counted" > /dev/null 2> "$logs/limit-callgrind.log" || die "callgrind failed"
    echo "== $server"
    # An instruction that every lookup executes ran 4,000 times: with the start left out, what ran half as often and more.
    python3 "$study/../front-end/limit.py" "$counted" --times 4000 --often 2000 --program "$binary"
done
