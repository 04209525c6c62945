#!/usr/bin/env bash
# What thin profiles of PostgreSQL's 4,000 lookups are worth, in misses and in jumps taken inside functions, as shares of what exact counts gain: 30,000 branch
# stacks, simulated as stacks.c tells, for each of SEEDS (1 to 5), which are other moments; 30 s of `afterlink record`, which follows threads ahead where the machine has no branch stacks; and 30 s of single addresses. By
# afterlink and by llvm-bolt 22.
#
#   postgresql.sh [stacks|followed|samples …]     all of them unless some are named; five minutes
#
# After ../postgresql/build.sh; AFTERLINK and STUDY_WORK are as there. A recording is made once: remove it (STUDY_WORK/thin/NAME.fdata) for another.
. "$(dirname "$0")/../postgresql/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

stacks=$(cd "$(dirname "$0")" && pwd)
results=$STUDY_WORK/thin
data=$STUDY_WORK/data-thin
need_build
need_afterlink
prepare_data
mkdir -p "$results/out"
chmod 755 "$results"
give_to_user "$results/out"

# simulate NAME SERVER: leaves "MISSES JUMPS" in NAME.simulated.
simulate() {
    [ ! -s "$results/$1.simulated" ] || return 0
    local out=$results/out/$1
    copy_data "$data-$1"
    run_lookups "$2" "$data-$1" valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --collect-jumps=yes --dump-instr=yes \
        "--callgrind-out-file=$out.callgrind" > "$out.answers" 2> "$out.log" || die "callgrind failed: $out.log"
    [ "$1" = plain ] || cmp "$out.answers" "$results/out/plain.answers" >&2 || die "$1 answers differently"
    echo "$(awk '/I1  misses:/ { gsub(",", ""); print $4 }' "$out.log")" \
        "$(awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d", taken }' "$out.callgrind")" > "$results/$1.simulated"
    rm -rf "$data-$1" "$out.callgrind"
}

# layouts NAME: both tools' by NAME.fdata, and what they are worth.
layouts() {
    local tool
    mkdir -p "$servers/thin-$1" "$servers/thin-bolt-$1"
    run_optimize "thin-$1" --profile "$results/$1.fdata" || die "optimize failed"
    set_bolt_command "$results/$1.fdata" profile2 "$servers/thin-bolt-$1/postgres"
    "${command[@]}" > "$logs/thin-bolt.log" 2>&1 || die "BOLT failed: $logs/thin-bolt.log"
    for tool in "" bolt-; do
        rm -f "$results/$tool$1.simulated"
        simulate "$tool$1" "$servers/thin-$tool$1/postgres"
        awk -v name="$tool$1" -v plain="$(cat "$results/plain.simulated")" -v exact="$(cat "$results/exact.simulated" 2> /dev/null || cat "$results/plain.simulated")" '{
            split(plain, p); split(exact, e)
            printf "%-18s %9d", name, $1; if (e[1] != p[1]) printf " %6.3f", (p[1] - $1) / (p[1] - e[1]); printf " %9d", $2
            if (e[2] != p[2]) printf " %6.3f", (p[2] - $2) / (p[2] - e[2]); print "" }' "$results/$tool$1.simulated"
    done
}

exact() {
    [ -s "$results/exact.fdata" ] || cp "$(afterlink_profile lookups)" "$results/exact.fdata"
    layouts exact
}

stacks() {
    local code seed name
    gcc -O2 -shared -fPIC "$stacks/stacks.c" -o "$results/stacks.so"
    code=$(readelf -lW "$plain_server" | awk '$1 == "LOAD" && / R E / { print $3; exit }')
    for seed in ${SEEDS:-1 2 3 4 5}; do
        name=stacks-$seed
        if [ ! -s "$results/$name.fdata" ]; then
            copy_data "$data"
            run_lookups "$plain_server" "$data" qemu-x86_64 -plugin "$results/stacks.so,code=$code,every=10000,seed=$seed,out=$results/out/stacks.txt" \
                > "$results/out/traced.answers" 2> "$results/out/traced.log" || die "qemu failed: $results/out/traced.log"
            cmp "$results/out/traced.answers" "$results/out/plain.answers" >&2 || die "the server answers differently below qemu"
            python3 "$stacks/sum.py" "$results/out/stacks.txt" 30000 > "$results/stacks.txt"
            "$AFTERLINK" profile convert "$results/stacks.txt" --binary "$plain_server" -o "$results/$name.fdata" > "$logs/thin.log"
            rm -rf "$data"
        fi
        layouts "$name"
    done
}

# recorded NAME [FLAG …]: 30 s of lookups, again and again.
recorded() {
    local name=$1
    shift
    if [ ! -s "$results/$name.fdata" ]; then
        copy_data "$data"
        cat > "$results/again.sh" << END
end=\$((SECONDS + 30))
while [ \$SECONDS -lt \$end ]; do
    "$plain_server" --single -D "$data" ${server_settings[@]} -c log_checkpoints=off postgres < "$lookups" > /dev/null 2>&1
done
END
        declare -f as_user > "$results/as.sh"
        server_user=$server_user "$AFTERLINK" record "$@" -o "$results/$name.fdata" --binary "$plain_server" -- \
            bash -c '. "$1"; as_user bash "$2"' record "$results/as.sh" "$results/again.sh" > "$results/$name.log" 2>&1 || die "record: $results/$name.log"
        rm -rf "$data"
    fi
    layouts "$name"
}

followed() { recorded followed; }
samples() { recorded samples --no-branches; }

simulate plain "$plain_server"
exact
[ $# -gt 0 ] || set -- stacks followed samples
for part in "$@"; do "$part"; done
