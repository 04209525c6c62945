#!/usr/bin/env bash
# Breaks outputs of afterlink in ways that nobody planned (tests/mutants) until MUTANTS have been judged, at the lowest priority,
# and writes fuzz/mutants.tsv: how many were caught, and what was changed in those that `verify` accepts and that do the same.
#   fuzz/mutants.sh [MUTANTS [SEED]]      20,000 mutants of seed 1; it goes on where it was ended
# Stop it with: touch fuzz/target/mutants/stop. What `verify` accepts and does something else is in fuzz/target/mutants/hole-*.
set -euo pipefail
cd "$(dirname "$0")"
mutants=${1:-20000} seed=${2:-1} folder=$PWD/target/mutants
mkdir -p "$folder"
rm -f "$folder/stop"
status=0
cargo build --quiet --release --manifest-path ../Cargo.toml -p afterlink-cli
cargo build --quiet --release --manifest-path ../Cargo.toml -p afterlink-mutants --example campaign
commit=$(git rev-parse --short HEAD)
# A copy each, so that a build meanwhile does no harm.
cp --remove-destination ../target/release/examples/campaign "$folder/campaign"
cp --remove-destination ../target/release/afterlink "$folder/afterlink"
# One thread: mutants are small, and threads that wait for each other only lose on a busy machine.
RAYON_NUM_THREADS=1 AFTERLINK="$folder/afterlink" nice -n 19 "$folder/campaign" "$folder" "$seed" "$mutants" >"$folder/log" 2>&1 || status=$?
earlier=$folder/earlier.tsv
cp mutants.tsv "$earlier"
{
    printf 'seed\tmutants\tcaught\taccepted, the same\tholes\tcommit\n'
    # What other seeds gave, some in folders that are gone.
    awk -F'\t' -v seed="$seed" 'NF == 0 { exit } NR > 1 && $1 != seed' "$earlier"
    for state in "$folder"/state-"$seed"-*; do
        name=${state##*/state-}
        read -r next caught same holes <"$state" || [ -n "$holes" ]
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${name%-*}" $((next - ${name#*-})) "$caught" "$same" "$holes" "$commit"
    done
    printf '\naccepted, the same\twhat was changed\n'
    awk -F'\t' '$6 == "same" { count[$4]++ } END { for (class in count) print count[class] "\t" class }' \
        "$folder/survivors.tsv" | sort -k1,1nr -k2
    printf '\nholes: seed\tmutant\tsubject\twhat was changed\twhere\twhat differs\n'
    { sed '1,/^holes: /d' "$earlier"; grep -P '\tHOLE ' "$folder/survivors.tsv" || true; } | sort -n -u
} >mutants.tsv
exit "$status"
