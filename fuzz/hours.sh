#!/usr/bin/env bash
# Fuzzes every target for an hour of processor time (HOURS=3: three hours), AT_ONCE=2 of them side by side, at the lowest
# priority. It goes on where it was ended: fuzz/hours.tsv adds up, over any number of starts, the time and the executions of
# each target, and docs/fuzzing.md shows them.
#   fuzz/hours.sh [TARGETS]   fuzzes until all, or these, have their time; -- stop it with: touch fuzz/target/hours/stop
#   fuzz/hours.sh table       only writes the table into docs/fuzzing.md
# What fails is left in fuzz/artifacts/TARGET, and the target is passed over until the next start.
set -euo pipefail
cd "$(dirname "$0")"
targets=(whole image eh_frame fdata counter_file recording pprof bolt_yaml address_map eh_frame_hdr lsda debug_info notes program_text)
state=hours.tsv
[ -s $state ] || printf 'target\tcpu seconds\texecutions\tcorpus\tfeatures\tcommit\n' >$state

# of TARGET COLUMN
of() {
    awk -F'\t' -v target="$1" -v column="$2" '$1 == target { print $column; found = 1 } END { if (!found) print 0 }' $state
}

# record TARGET SECONDS EXECUTIONS CORPUS FEATURES: adds a slice. One at a time: run it in a shell of its own.
record() {
    local seconds executions
    exec 9>$work/state.lock
    flock 9
    seconds=$(awk "BEGIN { print int($(of "$1" 2) + $2 + 0.5) }")
    executions=$(($(of "$1" 3) + $3))
    {
        awk -F'\t' -v target="$1" '$1 != target' $state
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$seconds" "$executions" "$4" "$5" "$commit"
    } >$state.new
    mv $state.new $state
}

table() {
    {
        sed '/<!-- hours -->/q' ../docs/fuzzing.md
        echo '| target | processor time | executions | inputs kept | features | last commit |'
        echo '|---|---|---|---|---|---|'
        for target in "${targets[@]}"; do
            awk -F'\t' -v target="$target" '$1 == target {
                time = $2 < 600 ? $2 " s" : int($2 / 60) " min"
                executions = $3 < 1e6 ? int($3 / 1e3) " thousand" : sprintf("%.1f million", $3 / 1e6)
                printf "| `%s` | %s | %s | %d | %d | %s |\n", $1, time, executions, $4, $5, $6
            }' $state
        done
        sed -n '/<!-- end -->/,$p' ../docs/fuzzing.md
    } >../docs/fuzzing.md.new
    mv ../docs/fuzzing.md.new ../docs/fuzzing.md
}

if [ "${1:-}" = table ]; then
    table
    exit
fi

[ $# -eq 0 ] || targets=("$@")
work=target/hours
mkdir -p $work
rm -f $work/stop
./fuzz.sh build $work
export FUZZ_BINARIES=$work
commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- ../crates ../tests/hostile fuzz_targets src || commit+=+
goal=$(awk "BEGIN { print int(${HOURS:-1} * 3600) }")
TIMEFORMAT='%U %S'

# slice TARGET: fuzzes it for some minutes, or for what is left, and records them; fails if it found something.
slice() {
    local target=$1 at=$work/$1 seconds=${SLICE:-300} left statistics executions failed user system
    left=$((goal - $(of "$1" 2) + 1))
    touch "$at.start"
    { time nice -n 19 ./fuzz.sh "$target" $((left < seconds ? left : seconds)) >"$at.log" 2>&1 || true; } 2>"$at.time"
    failed=$(find "artifacts/$target" -newer "$at.start" -type f)
    read -r user system < <(tail -n 1 "$at.time")
    statistics=$(grep -a 'cov: ' "$at.log" | tail -n 1)
    figure() { sed -n "s/.*$1\([0-9]*\).*/\1/p" <<<"$statistics"; }
    executions=$(sed -n 's/stat::number_of_executed_units: *//p' "$at.log")
    (record "$target" "$(awk "BEGIN { print $user + $system }")" "${executions:-0}" "$(figure 'corp: ')" "$(figure 'ft: ')")
    echo "$(date '+%F %T') $target ${executions:-0} executions, $user s ${failed:+FAILED: $failed}"
    grep -a -A12 'outcomes of' "$at.log" | tail -n 13 >"$at.outcomes" || true
    [ -z "$failed" ] || cp "$at.log" "$at.failed.log"
    [ -z "$failed" ]
}

# Takes the targets that nobody else has taken, one after the other.
work_through() {
    local target
    for target in "${targets[@]}"; do
        exec 8>"$work/$target.lock"
        flock -n 8 || continue
        while [ "$(of "$target" 2)" -lt $goal ] && [ ! -e $work/stop ]; do
            slice "$target" 8>&- || break
        done
    done
}

for _ in $(seq "${AT_ONCE:-1}"); do
    work_through &
done
wait
