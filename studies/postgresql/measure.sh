#!/usr/bin/env bash
# Measures what afterlink makes of PostgreSQL, beside BOLT 22, from the same profiles.
#
#   measure.sh [EXPERIMENT …]     all of them by default
#     layout         instruction-cache misses of 4,000 SELECTs, simulated
#     branches       taken branches: by each tool's dyno-stats, and counted while it runs
#     taken          taken branches of all kinds, counted while the 4,000 SELECTs run (studies/front-end/taken.sh)
#     tool           wall time and peak memory of `optimize`, two threads
#     instrumented   throughput while counting
#     clients        the same on all CPUs, with 1, 2 and 4 clients: plain, fast counters, exact ones, BOLT's; and how many counts
#                    the fast ones keep
#     speed          throughput of the optimized servers (real time: needs a quiet machine)
#
#   REPEATS=7                       runs of each side in tool
#   ROUNDS=25, SECONDS_PER_RUN=2    of pgbench in instrumented and speed
#   CLIENTS="1 2 4", CLIENT_ROUNDS=5, TRANSACTIONS=20000    of all clients together in a round of clients
#   TOOLS="afterlink bolt-profile2 bolt-cdsplit"                afterlink+PASS+PASS: with passes that are off by default; afterlink~PASS: without one;
#                                                               bolt-extras: with all else of BOLT's that takes branches away
#   PROFILES="bolt-lookups bolt-pgbench afterlink-lookups"      whose instrumentation, and of which workload
#
# Each prints a table and writes $RESULTS/EXPERIMENT.json.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

REPEATS=${REPEATS:-7}
ROUNDS=${ROUNDS:-25}
SECONDS_PER_RUN=${SECONDS_PER_RUN:-2}
CLIENTS=${CLIENTS:-1 2 4}
CLIENT_ROUNDS=${CLIENT_ROUNDS:-5}
TRANSACTIONS=${TRANSACTIONS:-20000}
PROFILES=${PROFILES:-bolt-lookups bolt-pgbench afterlink-lookups}
TOOLS=${TOOLS:-afterlink bolt-profile2 bolt-cdsplit}
cachegrind=(valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64 --cachegrind-out-file=/dev/null)

# set_command TOOL PROFILE OUT: leaves in `command` what makes TOOL's server.
set_command() {
    case $1 in
    afterlink) command=("$AFTERLINK" optimize "$plain_server" --profile "$2" -o "$3" --threads 2 --report "$3.report.json") ;;
    afterlink+*)
        set_command afterlink "$2" "$3"
        local pass
        for pass in $(tr + ' ' <<< "${1#*+}"); do command+=(--pass "$pass"); done
        ;;
    afterlink~*)
        set_command afterlink "$2" "$3"
        command+=(--skip-pass "${1#*~}")
        ;;
    bolt-extras)
        set_bolt_command "$2" profile2 "$3"
        command+=(-icf=1 -plt=all -peepholes=all -inline-small-functions -jump-tables=move -tail-duplication=aggressive)
        ;;
    bolt-*) set_bolt_command "$2" "${1#bolt-}" "$3" ;;
    *) die "no such tool: $1" ;;
    esac
}

# optimized_server TOOL PROFILE: prints the path of the server that TOOL made by PROFILE.
optimized_server() {
    local out
    out=$servers/measured-$1-by-$(basename "$2" .fdata)/postgres
    mkdir -p "$(dirname "$out")"
    rm -f "$out"
    set_command "$1" "$2" "$out"
    "${command[@]}" > "$out.log" 2>&1 || { cat "$out.log" >&2; die "$1 failed"; }
    echo "$out"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }

# Rows of JSON objects, gathered here and written by write_results.
rows=()
add_row() { rows+=("$(jq -cn "$@" '$ARGS.named')"); }
write_results() {
    printf '%s\n' "${rows[@]}" | jq -s --arg experiment "$1" --arg version "$(cat "$STUDY_WORK/version" 2>/dev/null)" \
        '{experiment: $experiment, postgresql: $version, rows: .}' > "$RESULTS/$1.json"
    rows=()
    say "$RESULTS/$1.json"
}

# The profiles by name; each is given to every tool.
list_profiles() {
    local profile
    for profile in $PROFILES; do "${profile%%-*}_profile" "${profile#*-}"; done
}

# simulate_misses BINARY: prints "MISSES REFERENCES"; the answers must be those of the plain server.
simulate_misses() {
    local data=$STUDY_WORK/data-simulated log=$logs/cachegrind.log
    copy_data "$data"
    run_lookups "$1" "$data" "${cachegrind[@]}" > "$logs/lookups.out" 2> "$log" || { cat "$log" >&2; die "cachegrind failed on $1"; }
    [ -f "$logs/lookups.expected" ] || cp "$logs/lookups.out" "$logs/lookups.expected"
    cmp "$logs/lookups.out" "$logs/lookups.expected" >&2 || die "$1 answers differently"
    awk '/I1  misses:/ { gsub(",", ""); misses = $4 } /I   refs:/ { gsub(",", ""); refs = $4 } END { print misses, refs }' "$log"
}

measure_layout() {
    local profile tool misses references plain_misses plain_references server
    rm -f "$logs/lookups.expected"
    read -r plain_misses plain_references < <(simulate_misses "$plain_server")
    printf '\ninstruction-cache misses of 4,000 SELECTs by primary key (cachegrind, 32 KiB, 8-way, 64 B)\n'
    printf '%-20s %-15s %12s %8s %14s\n' profile layout misses of-plain instructions
    printf '%-20s %-15s %12d %8.3f %14d\n' - plain "$plain_misses" 1 "$plain_references"
    add_row --arg profile none --arg tool plain --argjson misses "$plain_misses" --argjson instructions "$plain_references"
    for profile in $(list_profiles); do
        for tool in $TOOLS; do
            server=$(optimized_server "$tool" "$profile")
            read -r misses references < <(simulate_misses "$server")
            printf '%-20s %-15s %12d %8s %14d\n' "$(basename "$profile" .fdata)" "$tool" "$misses" \
                "$(ratio "$misses" "$plain_misses")" "$references"
            add_row --arg profile "$(basename "$profile" .fdata)" --arg tool "$tool" --argjson misses "$misses" \
                --argjson instructions "$references"
        done
    done
    write_results layout
}

# dyno_taken TOOL SERVER: prints "BEFORE AFTER", the taken branches that the tool derives from the profile.
dyno_taken() {
    case $1 in
    afterlink*) jq -r '"\(.dyno_stats.before.taken_branches) \(.dyno_stats.after.taken_branches)"' "$2.report.json" ;;
    bolt-*) awk '/ : taken branches/ { n[++i] = $1 } END { print n[1], n[2] }' "$2.log" ;;
    esac
}

# run_taken BINARY: the jumps inside functions that are taken while the lookups run, counted by callgrind, which knows
# neither tool. It counts the libraries' as well, which nobody moves, and no jump from one fragment to another.
run_taken() {
    local data=$STUDY_WORK/data-simulated counted=$STUDY_WORK/counts/callgrind.out
    make_counts_directory
    copy_data "$data"
    run_lookups "$1" "$data" valgrind --tool=callgrind --collect-jumps=yes --dump-instr=yes \
        "--callgrind-out-file=$counted" > /dev/null 2> "$logs/callgrind.log" || die "callgrind failed on $1"
    awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d\n", taken }' "$counted"
}

# Functions that a tool leaves alone are missing from its counts, before and after. For the comparison they keep what
# the plain server has, so `whole` is AFTER and what afterlink's before has beyond the tool's own.
measure_branches() {
    local profile tool server before after all whole running plain_running
    plain_running=$(run_taken "$plain_server")
    printf '\ntaken branches: dyno-stats (by the profile), and counted while running (callgrind)\n'
    printf '%-20s %-15s %12s %12s %12s %12s\n' profile layout before after whole running
    printf '%-20s %-15s %12s %12s %12s %12d\n' - plain - - - "$plain_running"
    add_row --arg profile none --arg tool plain --argjson running "$plain_running"
    for profile in $(list_profiles); do
        for tool in $TOOLS; do
            server=$(optimized_server "$tool" "$profile")
            read -r before after < <(dyno_taken "$tool" "$server")
            [ "$tool" != afterlink ] || all=$before
            whole=$((after + ${all:-$before} - before))
            running=$(run_taken "$server")
            printf '%-20s %-15s %12s %12s %12s %12d\n' "$(basename "$profile" .fdata)" "$tool" "$before" "$after" "$whole" "$running"
            add_row --arg profile "$(basename "$profile" .fdata)" --arg tool "$tool" --argjson before "${before:-null}" \
                --argjson after "${after:-null}" --argjson whole "${whole:-null}" --argjson running "$running"
        done
    done
    write_results branches
}

# all_taken BINARY: leaves in $STUDY_WORK/taken/counts what taken.sh counts while the lookups run. Under Debian 12's qemu-user some runs end by a signal, of
# the plain server, too; those that end well count the same.
all_taken() {
    local data=$STUDY_WORK/data-taken counted=$STUDY_WORK/taken/counts attempt
    mkdir -p "$STUDY_WORK/taken"
    give_to_user "$STUDY_WORK/taken"
    for attempt in 1 2 3 4 5 6 7 8; do
        copy_data "$data"
        run_lookups "$1" "$data" env "TAKEN=$counted" "TAKEN_WORK=$STUDY_WORK/taken" "$study/../front-end/taken.sh" > "$logs/taken.out" 2> "$logs/taken.log" &&
            return
    done
    cat "$logs/taken.log" >&2
    die "qemu-user failed on $1"
}

measure_taken() {
    local profile tool server kinds
    printf '\ntaken branches of 4,000 SELECTs by primary key, libraries with them (qemu-user), in thousands\n'
    all_taken "$plain_server"
    kinds=$(awk 'NR > 1 { print $1 }' "$STUDY_WORK/taken/counts")
    printf '%-20s %-24s' profile layout
    printf ' %13s' $kinds
    printf '\n'
    print_taken none plain
    for profile in $(list_profiles); do
        for tool in $TOOLS; do
            server=$(optimized_server "$tool" "$profile")
            all_taken "$server"
            print_taken "$(basename "$profile" .fdata)" "$tool"
        done
    done
    write_results taken
}

print_taken() { # PROFILE LAYOUT
    printf '%-20s %-24s' "$1" "$2"
    awk 'NR > 1 { printf " %13d", $3 / 1000 } END { print "" }' "$STUDY_WORK/taken/counts"
    add_row --arg profile "$1" --arg tool "$2" --argjson taken "$(awk 'NR > 1 { printf "%s\"%s\":%s", n++ ? "," : "{", $1, $3 } END { print "}" }' "$STUDY_WORK/taken/counts")"
}

# One run of each tool after the other, again and again, so that a slow minute slows all of them.
measure_tool() {
    local profile round tool out=$STUDY_WORK/timed timings=$STUDY_WORK/timings
    profile=$(bolt_profile lookups)
    rm -rf "$timings" "$out"
    mkdir -p "$timings" "$out"
    for round in $(seq "$REPEATS"); do
        for tool in $TOOLS; do
            rm -f "$out/postgres"
            set_command "$tool" "$profile" "$out/postgres"
            /usr/bin/time -f '%e %M %U %S' -a -o "$timings/$tool" "${command[@]}" \
                > "$logs/timed-$tool.log" 2>&1 || { cat "$logs/timed-$tool.log" >&2; die "$tool failed"; }
        done
    done
    print_tool_table "$timings"
    write_results tool
}

print_tool_table() {
    local tool reference wall memory processor reference_wall reference_memory
    reference=$(printf '%s\n' $TOOLS | grep -m1 '^bolt-') || reference=${TOOLS%% *}
    reference_wall=$(awk '{ print $1 }' "$1/$reference" | median)
    reference_memory=$(awk '{ print $2 }' "$1/$reference" | median)
    printf '\nmaking the optimized server: medians of %d interleaved runs, 2 threads\n' "$REPEATS"
    printf '%-15s %8s %10s %10s %12s %12s\n' tool wall/s cpu/s peak/MB wall-ratio peak-ratio
    for tool in $TOOLS; do
        wall=$(awk '{ print $1 }' "$1/$tool" | median)
        memory=$(awk '{ print $2 }' "$1/$tool" | median)
        processor=$(awk '{ print $3 + $4 }' "$1/$tool" | median)
        printf '%-15s %8.2f %10.2f %10d %12s %12s\n' "$tool" "$wall" "$processor" "$((memory / 1024))" \
            "$(ratio "$wall" "$reference_wall")" "$(ratio "$memory" "$reference_memory")"
        add_row --arg tool "$tool" --argjson wall_seconds "$wall" --argjson cpu_seconds "$processor" \
            --argjson peak_kilobytes "$memory" --argjson wall_ratio "$(ratio "$wall" "$reference_wall")" \
            --argjson peak_ratio "$(ratio "$memory" "$reference_memory")" \
            --argjson walls "$(awk '{ print $1 }' "$1/$tool" | jq -cs .)"
    done
}

# measure_throughput EXPERIMENT TITLE NAME=SERVER …: the first is what the others are compared with, round by round, as
# the machine's speed may change from one round to the next. All servers stand ready at once, each on its own data; pgbench
# visits them in turn, and every round starts with the next one. Servers and pgbench share one CPU: otherwise the time that
# it takes to wake a CPU up counts more than the work.
measure_throughput() {
    local experiment=$1 title=$2 entry name round i count throughput ratio
    shift 2
    local entries=("$@") base=$STUDY_WORK/throughput
    stop_throughput_servers
    rm -rf "$base"
    mkdir -p "$base"
    give_to_user "$base"
    taskset -pc "$(($(nproc) - 1))" $$ > /dev/null
    for entry in "$@"; do start_on_own_socket "$base/${entry%%=*}" "${entry#*=}"; done
    count=${#entries[@]}
    for round in $(seq 0 "$ROUNDS"); do
        for ((i = 0; i < count; i++)); do
            name=${entries[(i + round) % count]%%=*}
            throughput=$(pgbench_once "$base/$name")
            [ "$round" -eq 0 ] || echo "$throughput" >> "$base/$name.tps"    # round 0 warms up
        done
    done
    stop_throughput_servers
    taskset -pc "0-$(($(nproc) - 1))" $$ > /dev/null
    printf '\n%s: pgbench -S -M prepared, 1 client, %d rounds of %d s each; medians, and medians of the rounds\047 ratios\n' \
        "$title" "$ROUNDS" "$SECONDS_PER_RUN"
    printf '%-20s %12s %12s\n' server tps of-plain
    for entry in "$@"; do
        name=${entry%%=*}
        throughput=$(median < "$base/$name.tps")
        ratio=$(paste "$base/$name.tps" "$base/${entries[0]%%=*}.tps" | awk '{ print $1 / $2 }' | median)
        printf '%-20s %12.0f %12.3f\n' "$name" "$throughput" "$ratio"
        add_row --arg server "$name" --argjson tps "$throughput" --argjson of_plain "$ratio" \
            --argjson runs "$(jq -cs . "$base/$name.tps")"
    done
    write_results "$experiment"
}

start_on_own_socket() { # DIRECTORY BINARY
    mkdir -p "$1"
    give_to_user "$1"
    copy_data "$1/data"
    start_server "$2" "$1/data" -c "unix_socket_directories=$1"
}

pgbench_once() {
    as_user "$installation/bin/pgbench" -h "$1" -U study -n -S -M prepared -c 1 -T "$SECONDS_PER_RUN" postgres 2>> "$logs/pgbench.log" |
        sed -n 's/^tps = \([0-9.]*\).*/\1/p'
}

stop_throughput_servers() {
    local data
    for data in "$STUDY_WORK"/throughput/*/data; do
        [ ! -f "$data/postmaster.pid" ] || stop_server "$data" || true
    done
}

measure_instrumented() {
    local list=("plain=$plain_server") tool
    make_counts_directory
    mkdir -p "$servers/measured-instrumented-bolt" "$servers/measured-instrumented-afterlink"
    for tool in $(printf '%s\n' $TOOLS | sed 's/-.*//' | sort -u); do
        "instrument_with_$tool" "$STUDY_WORK/counts/$tool.counts" "$servers/measured-instrumented-$tool/postgres" \
            > "$logs/measured-instrument-$tool.log" 2>&1 || die "see $logs/measured-instrument-$tool.log"
        list+=("$tool=$servers/measured-instrumented-$tool/postgres")
    done
    measure_throughput instrumented 'throughput while counting' "${list[@]}"
}

# Every server does the same work, so that their counts can be compared.
measure_clients() {
    local list=("plain=$plain_server") base=$STUDY_WORK/throughput clients round entry kind plain_tps tps kept
    for kind in fast exact; do
        mkdir -p "$servers/measured-$kind"
        instrument_with_afterlink "$STUDY_WORK/counts/$kind.counters" "$servers/measured-$kind/postgres" \
            $([ "$kind" = fast ] || echo --exact) > "$logs/measured-$kind.log" 2>&1 || die "see $logs/measured-$kind.log"
        list+=("$kind=$servers/measured-$kind/postgres")
    done
    mkdir -p "$servers/measured-instrumented-bolt"
    instrument_with_bolt "$STUDY_WORK/counts/bolt.counts" "$servers/measured-instrumented-bolt/postgres" > "$logs/measured-bolt.log" 2>&1
    list+=("bolt=$servers/measured-instrumented-bolt/postgres")
    printf '\nthroughput while counting, on all CPUs: pgbench -S -M prepared, %d rounds of %d transactions; medians\n' \
        "$CLIENT_ROUNDS" "$TRANSACTIONS"
    printf '%-8s %-8s %12s %12s %12s\n' clients server tps of-plain counts-kept
    for clients in $CLIENTS; do
        make_counts_directory
        rm -rf "$base"
        mkdir -p "$base"
        give_to_user "$base"
        for entry in "${list[@]}"; do start_on_own_socket "$base/${entry%%=*}" "${entry#*=}"; done
        for round in $(seq "$CLIENT_ROUNDS"); do
            for entry in "${list[@]}"; do
                as_user "$installation/bin/pgbench" -h "$base/${entry%%=*}" -U study -n -S -M prepared -c "$clients" -j "$clients" \
                    -t $((TRANSACTIONS / clients)) postgres 2>> "$logs/pgbench.log" |
                    sed -n 's/^tps = \([0-9.]*\).*/\1/p' >> "$base/${entry%%=*}.tps"
            done
        done
        stop_throughput_servers
        plain_tps=$(median < "$base/plain.tps")
        for entry in "${list[@]}"; do
            kind=${entry%%=*} kept=-
            tps=$(median < "$base/$kind.tps")
            [ "$kind" != fast ] || kept=$(ratio "$(all_counts fast)" "$(all_counts exact)")
            printf '%-8s %-8s %12.0f %12s %12s\n' "$clients" "$kind" "$tps" "$(ratio "$tps" "$plain_tps")" "$kept"
            add_row --argjson clients "$clients" --arg server "$kind" --argjson tps "$tps" --argjson of_plain "$(ratio "$tps" "$plain_tps")" \
                --arg kept "$kept"
        done
    done
    write_results clients
}

# all_counts KIND: the sum of all counts of branches.
all_counts() {
    "$AFTERLINK" profile convert "$STUDY_WORK/counts/$1.counters" --binary "$plain_server" -o "$STUDY_WORK/counts/$1.fdata" > "$logs/convert.log" 2>&1 ||
        die "see $logs/convert.log"
    awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$STUDY_WORK/counts/$1.fdata"
}

measure_speed() {
    local list=("plain=$plain_server") tool profile
    profile=$(bolt_profile pgbench)
    for tool in $TOOLS; do list+=("$tool=$(optimized_server "$tool" "$profile")"); done
    measure_throughput speed 'throughput when optimized' "${list[@]}"
}

install_packages valgrind time jq bolt-22
need_build
case " $TOOLS " in *" afterlink "*) need_afterlink ;; esac
prepare_data
trap stop_throughput_servers EXIT
experiments=("$@")
[ "${#experiments[@]}" -gt 0 ] || experiments=(layout branches tool instrumented speed)
for experiment in "${experiments[@]}"; do
    case $experiment in
    layout | branches | taken | tool | instrumented | clients | speed) "measure_$experiment" ;;
    *) die "no such experiment: $experiment" ;;
    esac
done
