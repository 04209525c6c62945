#!/usr/bin/env bash
# What 30,000 branch stacks of PostgreSQL's 4,000 lookups are worth, simulated as stacks.c tells: misses of the lookups, by afterlink and by llvm-bolt 22.
# After matrix.sh, which has the exact counts' misses. A minute for each of SEEDS (1 to 5), which are other moments.
. "$(dirname "$0")/../postgresql/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

stacks=$(cd "$(dirname "$0")" && pwd)
results=$STUDY_WORK/worth
traced=$results/traced
data=$STUDY_WORK/data-stacks
[ -s "$results/afterlink-lookups-lookups.misses" ] || die "run matrix.sh first"
need_afterlink
mkdir -p "$traced" "$servers/worth-afterlink-stacks" "$servers/worth-bolt-stacks"
give_to_user "$traced"

gcc -O2 -shared -fPIC "$stacks/stacks.c" -o "$results/stacks.so"
code=$(readelf -lW "$plain_server" | awk '$1 == "LOAD" && / R E / { print $3; exit }')
for seed in ${SEEDS:-1 2 3 4 5}; do
    copy_data "$data"
    run_lookups "$plain_server" "$data" qemu-x86_64 -plugin "$results/stacks.so,code=$code,every=10000,seed=$seed,out=$traced/stacks.txt" \
        > "$traced/answers" 2> "$traced/log" || die "qemu failed: $traced/log"
    cmp "$traced/answers" "$results/plain-lookups.out" >&2 || die "the server answers differently below qemu"
    python3 "$stacks/sum.py" "$traced/stacks.txt" 30000 > "$results/stacks.txt"
    "$AFTERLINK" profile convert "$results/stacks.txt" --binary "$plain_server" -o "$results/stacks.fdata" > "$logs/worth.log"
    run_optimize worth-afterlink-stacks --profile "$results/stacks.fdata" || die "optimize failed"
    set_bolt_command "$results/stacks.fdata" profile2 "$servers/worth-bolt-stacks/postgres"
    "${command[@]}" > "$logs/worth-bolt-stacks.log" 2>&1 || die "BOLT failed"
    for layout in afterlink bolt; do
        copy_data "$data"
        run_lookups "$servers/worth-$layout-stacks/postgres" "$data" valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64 \
            --cachegrind-out-file=/dev/null > "$traced/$layout.out" 2> "$traced/$layout.log" || die "cachegrind failed"
        cmp "$traced/$layout.out" "$results/plain-lookups.out" >&2 || die "$layout's layout answers differently"
        awk -v layout="$layout" -v seed="$seed" -v plain="$(cat "$results/plain-lookups.misses")" -v exact="$(cat "$results/afterlink-lookups-lookups.misses")" \
            '/I1  misses:/ { gsub(",", ""); printf "%d %-10s %d %.3f\n", seed, layout, $4, (plain - $4) / (plain - exact) }' "$traced/$layout.log"
    done
done
rm -rf "$data"
