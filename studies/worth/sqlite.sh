#!/usr/bin/env bash
# What samples and branch stacks are worth by how long and how often they are taken: shares of what exact counts gain, of SQLite's query
# workload (sqlite-bench 8 20), in simulated instruction-cache misses and in taken jumps inside functions; by afterlink and by llvm-bolt 22.
# Then a second round from what was seen of an optimized program, and what recording costs. Some eight minutes on two cores.
#
#   sqlite.sh [shares|second|cost …]     all of them unless some are named; the last two want what the first has made
#
# Samples are `afterlink record`'s. Branch stacks are simulated: the run's last 32 branches, taken at as many moments as so many seconds at such a rate
# have, each as probable for every instruction (stacks.c, below qemu-user). The moments of the longest are some 30,000, the others are chosen of them evenly.
. "$(dirname "$0")/../sqlite/environment.sh"

stacks=$(cd "$(dirname "$0")" && pwd)
results=${RESULTS:-$work/worth}
program=$results/sqlite-bench
arguments=(8 20)
bolt=(-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-strategy=profile2 -split-all-cold)

# first_code PROGRAM: where its first segment of code stands in the file.
first_code() { readelf -lW "$1" | awk '$1 == "LOAD" && / R E / { print $3; exit }'; }

# trace PROGRAM OUT: at least 30,000 branch stacks of one run.
trace() {
    qemu-x86_64 -plugin "$results/stacks.so,code=$(first_code "$1"),every=9500,out=$2" "$1" "${arguments[@]}" > "$2.answers"
    cmp "$2.answers" "$results/answers" || die "$1 answers differently below qemu"
}

# sample RATE SECONDS PROGRAM OUT
sample() {
    local again='end=$((SECONDS + $1)); while [ $SECONDS -lt $end ]; do "$2" 30; done > /dev/null'
    "$AFTERLINK" record -F "$1" -o "$4" --binary "$3" -- bash -c "$again" record "$2" "$3"
}

# simulate BINARY: leaves "MISSES JUMPS" in BINARY.simulated. No jump from one fragment of a function to another is among the jumps.
simulate() {
    valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --collect-jumps=yes --dump-instr=yes \
        "--callgrind-out-file=$1.callgrind" "$1" "${arguments[@]}" > "$1.answers" 2> "$1.log"
    cmp "$1.answers" "$results/answers" || die "$1 answers differently"
    echo "$(awk '/I1  misses:/ { gsub(",", ""); print $4 }' "$1.log")" \
        "$(awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d", taken }' "$1.callgrind")" > "$1.simulated"
    rm "$1.callgrind"
}

# layouts PROFILE: afterlink's and llvm-bolt's by it, simulated.
layouts() {
    local out=$results/layout-$1
    "$AFTERLINK" optimize "$program" --profile "$results/$1.fdata" -o "$out" > "$out.report" 2>&1 || die "optimize: $out.report"
    llvm-bolt-22 "$program" -o "$out-bolt" -data "$results/$1.fdata" "${bolt[@]}" > "$out-bolt.report" 2>&1 || die "llvm-bolt: $out-bolt.report"
    simulate "$out" &
    simulate "$out-bolt"
    wait
    show "$1" "$out"
}

# show NAME LAYOUT
show() {
    awk -v name="$1" -v plain="$(cat "$program.simulated")" -v exact="$(cat "$results/layout-exact.simulated")" \
        -v ours="$(cat "$2.simulated")" -v bolt="$(cat "$2-bolt.simulated" 2> /dev/null)" 'BEGIN {
        split(plain, p); split(exact, e); split(ours, o); n = split(bolt, b)
        printf "%-24s %8d %6.3f %9d %6.3f", name, o[1], (p[1] - o[1]) / (p[1] - e[1]), o[2], (p[2] - o[2]) / (p[2] - e[2])
        if (n) printf " %8d %6.3f", b[1], (p[1] - b[1]) / (p[1] - e[1])
        print "" }'
}

shares() {
    local rate seconds name
    "$AFTERLINK" instrument "$program" -o "$program.counting" --counters "$results/counters" > "$results/log"
    "$program.counting" "${arguments[@]}" > "$results/answers"
    "$AFTERLINK" profile convert "$results/counters" --binary "$program" -o "$results/exact.fdata" > "$results/log"
    trace "$program" "$results/stacks.txt"
    simulate "$program"
    printf '%-24s %8s %6s %9s %6s %8s %6s\n' profile misses share jumps share bolt share
    layouts exact
    for rate in 100 1000; do
        for seconds in 1 5 30; do
            name=stacks-$rate-$seconds
            python3 "$stacks/sum.py" "$results/stacks.txt" $((rate * seconds)) > "$results/$name.txt"
            "$AFTERLINK" profile convert "$results/$name.txt" --binary "$program" -o "$results/$name.fdata" > "$results/log"
            layouts "$name"
        done
    done
    for rate in 100 1000; do
        for seconds in 1 5 30; do
            name=samples-$rate-$seconds
            [ -s "$results/$name.fdata" ] || sample "$rate" "$seconds" "$program" "$results/$name.fdata" > "$results/$name.log" 2>&1 ||
                die "record: $results/$name.log"
            layouts "$name"
        done
    done
}

# What was seen of the layout by exact counts, led back, and the layout of the program as linked by that.
second() {
    local first=$results/layout-exact
    trace "$first" "$results/second.txt"
    python3 "$stacks/sum.py" "$results/second.txt" 30000 > "$results/second-stacks.txt"
    "$AFTERLINK" profile convert "$results/second-stacks.txt" --binary "$first" -o "$results/second-stacks.fdata" > "$results/log"
    [ -s "$results/second-samples.fdata" ] || sample 1000 30 "$first" "$results/second-samples.fdata" > "$results/second.log" 2>&1 ||
        die "record: $results/second.log"
    printf '%-24s %8s %6s %9s %6s %8s %6s\n' 'second round' misses share jumps share bolt share
    layouts second-stacks
    layouts second-samples
}

# What recording costs: CPU seconds of nine runs in turn, the least of each.
cost() {
    "$AFTERLINK" instrument "$program" -o "$program.exactly" --exact --counters "$results/exactly" > "$results/log"
    llvm-bolt-22 "$program" -instrument "--instrumentation-file=$results/bolt.counts" -o "$program.bolt" > "$results/log" 2>&1
    AFTERLINK=$AFTERLINK python3 - "$program" "$results" <<'PYTHON'
import os, resource, subprocess, sys, time
program, results = sys.argv[1:]
record = [os.environ["AFTERLINK"], "record", "-o", results + "/cost.data"]
kinds = {"as linked": [program], "samples, 100 Hz": record + ["-F", "100", "--", program],
         "samples, 1,000 Hz": record + ["-F", "1000", "--", program], "instrument": [program + ".counting"],
         "instrument --exact": [program + ".exactly"], "llvm-bolt -instrument": [program + ".bolt"]}
times = {kind: [] for kind in kinds}
for _ in range(9):
    for kind, command in kinds.items():
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command + ["200"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times[kind].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start))
least = [min(column) for column in zip(*times["as linked"])]
print(f"{'recording':24} {'CPU s':>7} {'ratio':>6} {'elapsed':>8}")
for kind, runs in times.items():
    cpu, wall = (min(column) for column in zip(*runs))
    print(f"{kind:24} {cpu:7.3f} {cpu / least[0]:6.3f} {wall / least[1]:8.3f}")
PYTHON
}

missing=()
for tool in valgrind qemu-x86_64:qemu-user python3 llvm-bolt-22:bolt-22; do command -v "${tool%:*}" > /dev/null || missing+=("${tool#*:}"); done
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
install_compiler
fetch_sqlite
build_afterlink
mkdir -p "$results"
gcc -O2 -shared -fPIC "$stacks/stacks.c" -o "$results/stacks.so"
[ -f "$work/sqlite3.o" ] || "${compile[@]}" -c "$sources/sqlite3.c" -o "$work/sqlite3.o"
[ -f "$program" ] || "${compile[@]}" -I"$sources" "$study/workload.c" "$work/sqlite3.o" -o "$program" -Wl,--emit-relocs -lm
[ $# -gt 0 ] || set -- shares second cost
for part in "$@"; do "$part"; done
