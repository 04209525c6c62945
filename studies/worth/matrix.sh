#!/usr/bin/env bash
# What a profile of another workload is worth: PostgreSQL with three workloads, each layout by the exact counts of one of them, all three run
# on each, by afterlink and by llvm-bolt 22. Misses of an instruction cache of 32 KiB, simulated by cachegrind. Some ten minutes on two cores.
#
#   lookups   4,000 SELECTs by primary key
#   writes    600 transactions of pgbench's kind: three UPDATEs, a SELECT and an INSERT each
#   reports   120 queries that join, aggregate, sort and use windows over parts of the tables
#
# With PLACES=24 the misses are the means of so many caches in which other lines share a set, by cache.c below qemu-user, so that no layout wins by which do.
#
# The server is that of ../postgresql (build.sh and one measure.sh before); AFTERLINK and STUDY_WORK are as there.
. "$(dirname "$0")/../postgresql/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

workloads="lookups writes reports"
results=$STUDY_WORK/worth${PLACES:+-places}
simulated=(valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64 --cachegrind-out-file=/dev/null)
need_build
need_afterlink
prepare_data
mkdir -p "$results"
chmod 755 "$results"

make_workloads() {
    cp "$lookups" "$results/lookups.sql"
    awk 'BEGIN {
        for (i = 0; i < 600; i++) {
            key = (key * 1103515245 % 2147483648 + 12345) % 2147483648
            aid = int(key / 2147483648 * 100000) + 1; tid = i % 10 + 1; delta = i % 997 - 500
            print "BEGIN;"
            printf "UPDATE pgbench_accounts SET abalance = abalance + %d WHERE aid = %d;\n", delta, aid
            printf "SELECT abalance FROM pgbench_accounts WHERE aid = %d;\n", aid
            printf "UPDATE pgbench_tellers SET tbalance = tbalance + %d WHERE tid = %d;\n", delta, tid
            printf "UPDATE pgbench_branches SET bbalance = bbalance + %d WHERE bid = 1;\n", delta
            printf "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (%d, 1, %d, %d, TIMESTAMP %c2024-01-01%c);\n", tid, aid, delta, 39, 39
            print "END;"
        }
    }' > "$results/writes.sql"
    awk 'BEGIN {
        for (i = 0; i < 30; i++) {
            a = i * 3000 + 1; b = a + 149
            printf "SELECT a.aid %% 7 AS part, count(*), sum(a.abalance + a.aid), max(t.tid) FROM pgbench_accounts a JOIN pgbench_tellers t ON t.tid = a.aid %% 10 + 1 WHERE a.aid BETWEEN %d AND %d GROUP BY part HAVING count(*) > 2 ORDER BY 3 DESC;\n", a, b
            printf "SELECT aid, rank() OVER (PARTITION BY aid %% 5 ORDER BY aid DESC), sum(aid) OVER (ORDER BY aid ROWS 3 PRECEDING) FROM pgbench_accounts WHERE aid BETWEEN %d AND %d;\n", a, a + 39
            printf "WITH named AS (SELECT aid, md5(aid::text) AS name FROM pgbench_accounts WHERE aid BETWEEN %d AND %d) SELECT upper(substr(name, 1, 4)), count(*) FROM named WHERE name ~ %c^[a-f].*[0-9]$%c GROUP BY 1 ORDER BY 1 LIMIT 5;\n", a, b, 39, 39
            printf "SELECT b.bid, (SELECT max(tid) FROM pgbench_tellers WHERE bid = b.bid), array_agg(DISTINCT t.tid %% 3), to_char(DATE %c2024-01-01%c + %d, %cYYYY-Mon%c) FROM pgbench_branches b LEFT JOIN pgbench_tellers t USING (bid) GROUP BY b.bid;\n", 39, 39, i, 39, 39
        }
    }' > "$results/reports.sql"
}

# run_workload WORKLOAD BINARY DATA [PREFIX …]: through a single-user backend.
run_workload() {
    lookups=$results/$1.sql run_lookups "${@:2}"
}

# exact_profile WORKLOAD: makes its fdata.
exact_profile() {
    local data=$STUDY_WORK/data-worth raw=$STUDY_WORK/counts/worth.counters
    [ ! -s "$results/$1.fdata" ] || return 0
    make_counts_directory
    mkdir -p "$servers/worth-counting"
    instrument_with_afterlink "$raw" "$servers/worth-counting/postgres" > "$logs/worth.log" 2>&1 || die "instrument failed"
    copy_data "$data"
    run_workload "$1" "$servers/worth-counting/postgres" "$data" > "$logs/worth-$1.out" 2>&1
    rm -rf "$data"
    "$AFTERLINK" profile convert "$raw" --binary "$plain_server" -o "$results/$1.fdata" > "$logs/worth.log" 2>&1
}

# misses WORKLOAD NAME BINARY: the answers must be the plain server's.
misses() {
    local data=$STUDY_WORK/data-worth-$2-$1 tries=1
    copy_data "$data"
    until run_workload "$1" "$3" "$data" "${simulated[@]}" > "$results/$2-$1.out" 2> "$results/$2-$1.log"; do
        # qemu itself crashes now and then, whichever server it runs.
        [ -n "${PLACES:-}" ] && [ $((tries++)) -lt 5 ] || die "failed: $results/$2-$1.log"
        copy_data "$data"
    done
    rm -rf "$data"
    ! grep -q 'ERROR:' "$results/$2-$1.log" || die "a statement of $1 fails: $results/$2-$1.log"
    [ "$2" = plain ] || cmp "$results/plain-$1.out" "$results/$2-$1.out" >&2 || die "$2 answers differently"
    awk '/I1  misses:/ { gsub(",", ""); print $4 } /^[0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9]+$/ { print $4 }' "$results/$2-$1.log" > "$results/$2-$1.misses"
}

if [ -n "${PLACES:-}" ]; then
    gcc -O2 -shared -fPIC "$(dirname "${BASH_SOURCE[0]}")/cache.c" -o "$results/cache.so"
    simulated=(qemu-x86_64 -plugin "$results/cache.so,places=$PLACES")
fi
make_workloads
for workload in $workloads; do exact_profile "$workload"; done
for workload in $workloads; do misses "$workload" plain "$plain_server"; done
for profile in $workloads; do
    mkdir -p "$servers/worth-afterlink-$profile" "$servers/worth-bolt-$profile"
    run_optimize "worth-afterlink-$profile" --profile "$results/$profile.fdata" || die "optimize failed"
    set_bolt_command "$results/$profile.fdata" profile2 "$servers/worth-bolt-$profile/postgres"
    "${command[@]}" > "$logs/worth-bolt-$profile.log" 2>&1 || die "BOLT failed"
    for workload in $workloads; do
        misses "$workload" "afterlink-$profile" "$servers/worth-afterlink-$profile/postgres" &
        misses "$workload" "bolt-$profile" "$servers/worth-bolt-$profile/postgres" &
        wait
    done
done
printf '%-10s %-10s %11s %11s %6s %11s %6s\n' workload profile as-linked afterlink share llvm-bolt share
for workload in $workloads; do
    for profile in $workloads; do
        awk -v workload="$workload" -v profile="$profile" -v plain="$(cat "$results/plain-$workload.misses")" \
            -v best="$(cat "$results/afterlink-$workload-$workload.misses")" -v ours="$(cat "$results/afterlink-$profile-$workload.misses")" \
            -v bolt="$(cat "$results/bolt-$profile-$workload.misses")" 'BEGIN {
            printf "%-10s %-10s %11d %11d %6.3f %11d %6.3f\n", workload, profile, plain, ours, (plain - ours) / (plain - best), bolt,
                (plain - bolt) / (plain - best) }'
    done
done
