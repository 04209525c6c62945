# Sourced after environment.sh and server.sh: makes profiles and rewritten servers, each once.

servers=$STUDY_WORK/servers    # one folder each, so that every server is called `postgres`
profiles=$STUDY_WORK/profiles
logs=$STUDY_WORK/logs
mkdir -p "$servers" "$profiles" "$logs"
chmod 755 "$servers"

# set_bolt_command PROFILE STRATEGY OUT: leaves in `command` BOLT with its best published block and function orders.
set_bolt_command() {
    command=(llvm-bolt-22 "$plain_server" -o "$3" -data "$1" -reorder-blocks=ext-tsp -reorder-functions=cdsort
        -split-functions "-split-strategy=$2" -split-all-cold -thread-count=2 -dyno-stats)
}

instrument_with_bolt() { # FDATA OUT
    llvm-bolt-22 "$plain_server" -instrument "--instrumentation-file=$1" -o "$2"
}

# instrument_with_afterlink COUNTERS OUT [FLAG …]
instrument_with_afterlink() { "$AFTERLINK" instrument "$plain_server" -o "$2" --counters "$1" "${@:3}"; }

# run_training BINARY WORKLOAD: what the profile is taken from.
#   lookups   the 4,000 SELECTs of run_lookups
#   pgbench   pgbench -S -M prepared, 20,000 transactions of one client
run_training() {
    local data=$STUDY_WORK/data-training
    copy_data "$data"
    case $2 in
    lookups) run_lookups "$1" "$data" > "$logs/training-lookups.out" ;;
    pgbench)
        start_server "$1" "$data"
        as_user "$installation/bin/pgbench" -h "$sockets" -U study -n -S -M prepared -c 1 -t 20000 postgres \
            > "$logs/training-pgbench.out" 2>&1
        stop_server "$data"
        ;;
    *) die "no such workload: $2" ;;
    esac
    rm -rf "$data"
}

# bolt_profile WORKLOAD: prints the path of the fdata that BOLT's instrumentation makes.
bolt_profile() {
    local fdata=$profiles/bolt-$1.fdata raw=$STUDY_WORK/counts/bolt.fdata
    if [ ! -s "$fdata" ]; then
        say "profile of $1, by BOLT's instrumentation"
        make_counts_directory
        mkdir -p "$servers/bolt-instrumented"
        instrument_with_bolt "$raw" "$servers/bolt-instrumented/postgres" > "$logs/bolt-instrument.log" 2>&1
        run_training "$servers/bolt-instrumented/postgres" "$1"
        cat "$raw" > "$fdata"
    fi
    echo "$fdata"
}

# afterlink_profile WORKLOAD: prints the path of the fdata that afterlink's counters make.
afterlink_profile() {
    local fdata=$profiles/afterlink-$1.fdata raw=$STUDY_WORK/counts/afterlink.counters
    if [ ! -s "$fdata" ]; then
        say "profile of $1, by afterlink's instrumentation"
        make_counts_directory
        mkdir -p "$servers/instrumented"
        instrument_with_afterlink "$raw" "$servers/instrumented/postgres" > "$logs/instrument.log" 2>&1 ||
            { cat "$logs/instrument.log" >&2; die "instrument failed"; }
        run_training "$servers/instrumented/postgres" "$1"
        "$AFTERLINK" profile convert "$raw" --binary "$plain_server" -o "$fdata" > "$logs/convert.log" 2>&1 ||
            { cat "$logs/convert.log" >&2; die "profile convert failed"; }
    fi
    echo "$fdata"
}

# Where an instrumented server, which runs without privileges, may write its counts.
make_counts_directory() {
    rm -rf "$STUDY_WORK/counts"
    mkdir -p "$STUDY_WORK/counts"
    give_to_user "$STUDY_WORK/counts"
}

# make_server MODE [SEED]: writes $servers/NAME/postgres and its report, and prints NAME.
#   plain          the linker's own output
#   input          every function moved, order kept; here and in the next two, the old code is overwritten with traps
#   reverse        every function moved, blocks and functions reversed
#   random         every function moved, blocks and functions in the random order of SEED, a random half of each split off
#   instrumented   counting
#   optimized      by the profile of both workloads
# Returns non-zero, having shown why, if a tool fails.
make_server() {
    local mode=$1 seed=${2:-} name=$1${2:+-$2} split=none out lookups_profile pgbench_profile report
    out=$servers/$name/postgres
    report=$servers/$name/report.json
    mkdir -p "$servers/$name"
    rm -f "$out"
    case $mode in
    plain) cp "$plain_server" "$out" ;;
    instrumented)
        make_counts_directory
        instrument_with_afterlink "$STUDY_WORK/counts/check.counters" "$out" > "$logs/$name.log" 2>&1 ||
            { cat "$logs/$name.log" >&2; return 1; }
        ;;
    input | reverse | random)
        [ "$mode" != random ] || split=random
        run_optimize "$name" --scope all --split "$split" --trap-old-code --report "$report" \
            "--order-blocks=$mode" "--order-functions=$mode" ${seed:+--seed "$seed"} || return 1
        ;;
    optimized)
        lookups_profile=$(afterlink_profile lookups) || return 1
        pgbench_profile=$(afterlink_profile pgbench) || return 1
        run_optimize "$name" --profile "$lookups_profile" --profile "$pgbench_profile" --report "$report" || return 1
        ;;
    *) die "no such mode: $mode" ;;
    esac
    echo "$name"
}

# run_optimize NAME FLAG …
run_optimize() {
    local name=$1
    shift
    rm -f "$servers/$name/postgres"
    "$AFTERLINK" optimize "$plain_server" -o "$servers/$name/postgres" "$@" > "$logs/$name.log" 2>&1 ||
        { cat "$logs/$name.log" >&2; return 1; }
}

# count_executed: leaves in $logs/executed "INSTRUCTIONS FUNCTION" of the plain server's own functions during the lookups,
# counted by callgrind, which knows nothing of what any tool could read.
count_executed() {
    local data=$STUDY_WORK/data-simulated counted=$STUDY_WORK/counts/callgrind.out
    [ ! -s "$logs/executed" ] || return 0
    make_counts_directory
    copy_data "$data"
    run_lookups "$plain_server" "$data" valgrind --tool=callgrind "--callgrind-out-file=$counted" \
        > /dev/null 2> "$logs/callgrind.log" || die "callgrind failed"
    callgrind_annotate --threshold=100 "$counted" |
        sed -n "s#^ *\\([0-9,]*\\) (.*) *[^ ]*:\\([^ ]*\\) \\[$plain_server\\].*#\\1 \\2#p" | tr -d , | sed "s/'[0-9]*\$//" > "$logs/executed"
}

# moved_share REPORT: prints "MOVED ALL SHARE": functions moved, functions in all, and the percentage of the executed
# instructions that the moved ones hold. A refused name shared by several static functions counts against all of them.
moved_share() {
    jq -r '.refused[].functions[].name' "$1" | sort -u > "$logs/refused"
    awk -v list="$logs/refused" 'BEGIN { while ((getline name < list) > 0) refused[name] }
        { name = $2; sub(/\.cold$/, "", name); all += $1; if (!(name in refused) && !($2 in refused)) moved += $1 }
        END { printf "%.3f\n", all ? 100 * moved / all : 0 }' "$logs/executed" > "$logs/share"
    echo "$(jq -r '"\(.moved_functions) \(.functions)"' "$1") $(cat "$logs/share")"
}
