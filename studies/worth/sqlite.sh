#!/usr/bin/env bash
# What samples and branch stacks are worth by how long and how often they are taken: shares of what exact counts gain, of SQLite's query
# workload (sqlite-bench 8 20), in simulated instruction-cache misses and in taken jumps inside functions; by afterlink and by llvm-bolt 22.
# Then a second round from what was seen of an optimized program, and what recording costs. Some eight minutes on two cores.
#
#   sqlite.sh [exact|shares|seeds|second|cost …]     all of them unless some are named; the last three want what exact, which shares begins with, has made
#
# Samples are `afterlink record`'s. Branch stacks are simulated: the run's last 32 branches, taken at as many moments as so many seconds at such a rate
# have, each as probable for every instruction (stacks.c, below qemu-user). The moments of the longest are some 30,000, the others are chosen of them evenly.
. "$(dirname "$0")/../sqlite/environment.sh"

. "$(dirname "$0")/shares.sh"

results=${RESULTS:-$work/worth}
program=$results/sqlite-bench
arguments=(8 20)
long_arguments=(30)
longest_arguments=(200)
every=${EVERY:-9500}

prepare_shares
fetch_sqlite
build_afterlink
[ -f "$work/sqlite3.o" ] || "${compile[@]}" -c "$sources/sqlite3.c" -o "$work/sqlite3.o"
[ -f "$program" ] || "${compile[@]}" -I"$sources" "$study/workload.c" "$work/sqlite3.o" -o "$program" -Wl,--emit-relocs -lm
[ $# -gt 0 ] || set -- shares seeds second cost
for part in "$@"; do "$part"; done
