#!/usr/bin/env bash
# Hunts for programs that behave differently once afterlink has rewritten them, for HOURS of processor time (default 1), in slices
# for each writer in turn, at the lowest priority. It goes on where it was ended; fuzz/programs.tsv adds up what was done.
#   fuzz/programs.sh                          -- stop it with: touch fuzz/artifacts/programs/stop
#   fuzz/programs.sh --without trap-fault     options go to tests/generated/examples/hunt.rs
# Programs that behave differently stay in fuzz/artifacts/programs, with what differs in the file `findings`.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release -p afterlink-cli
cargo build --quiet --release -p afterlink-generated --example hunt
# A copy each, so that a build meanwhile does no harm.
work=fuzz/artifacts/programs
mkdir -p $work
rm -f $work/stop
cp --remove-destination target/release/examples/hunt "$work/hunt"
cp --remove-destination "${AFTERLINK:-target/release/afterlink}" "$work/afterlink"
slices=$((${HOURS:-1} * 3600 / 180))
for ((slice = 0; slice < slices; slice++)); do
    for writer in pieces exceptions csmith; do
        [ ! -e $work/stop ] || exit 0
        AFTERLINK="$work/afterlink" nice -n 19 "$work/hunt" $writer --seconds 60 "$@" | tee -a "$work/log" | grep -A3 FOUND || true
    done
done
