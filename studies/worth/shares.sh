# What is measured of a program with a workload: what profiles are worth by kind, rate and length, a second round from what was seen of an optimized program, and what
# recording costs. To be sourced behind an environment.sh; who does so sets program, its arguments (also for longer runs: long_arguments for sampling, longest_arguments for the
# cost), results, and every (how many instructions lie between two branch stacks, so that there are at least 30,000). RATES and
# LENGTHS may name fewer of 100 and 1,000 a second, and of 1, 5 and 30 seconds.
stacks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bolt=(-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-strategy=profile2 -split-all-cold)

# first_code PROGRAM: where its first segment of code stands in the file.
first_code() { readelf -lW "$1" | awk '$1 == "LOAD" && / R E / { print $3; exit }'; }

# trace PROGRAM OUT [SEED]: at least 30,000 branch stacks of one run.
trace() {
    qemu-x86_64 -plugin "$results/stacks.so,code=$(first_code "$1"),every=$every,seed=${3:-1},out=$2" "$1" "${arguments[@]}" > "$2.answers"
    cmp "$2.answers" "$results/answers" || die "$1 answers differently below qemu"
}

# sample RATE SECONDS PROGRAM OUT [FLAG …]: --no-branches for single addresses, without it branch stacks by following threads ahead.
sample() {
    local again='end=$((SECONDS + $1)); shift; while [ $SECONDS -lt $end ]; do "$@"; done > /dev/null'
    "$AFTERLINK" record -F "$1" -o "$4" --binary "$3" "${@:5}" -- bash -c "$again" record "$2" "$3" "${long_arguments[@]}"
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

# The exact counts, and what their layout and the program as linked miss and jump, which all shares are of.
exact() {
    "$AFTERLINK" instrument "$program" -o "$program.counting" --counters "$results/counters" > "$results/log"
    "$program.counting" "${arguments[@]}" > "$results/answers"
    "$AFTERLINK" profile convert "$results/counters" --binary "$program" -o "$results/exact.fdata" > "$results/log"
    simulate "$program"
    printf '%-24s %8s %6s %9s %6s %8s %6s\n' profile misses share jumps share bolt share
    layouts exact
}

shares() {
    local rate seconds name
    exact
    trace "$program" "$results/stacks.txt"
    for rate in ${RATES:-100 1000}; do
        for seconds in ${LENGTHS:-1 5 30}; do
            name=stacks-$rate-$seconds
            python3 "$stacks/sum.py" "$results/stacks.txt" $((rate * seconds)) > "$results/$name.txt"
            "$AFTERLINK" profile convert "$results/$name.txt" --binary "$program" -o "$results/$name.fdata" > "$results/log"
            layouts "$name"
        done
    done
    for rate in ${RATES:-100 1000}; do
        for seconds in ${LENGTHS:-1 5 30}; do
            sampled "followed-$rate-$seconds" "$rate" "$seconds" "$program"
            sampled "samples-$rate-$seconds" "$rate" "$seconds" "$program" --no-branches
        done
    done
}

# sampled NAME RATE SECONDS PROGRAM [FLAG …]: the layouts by what `record` says, once.
sampled() {
    [ -s "$results/$1.fdata" ] || sample "$2" "$3" "$4" "$results/$1.fdata" "${@:5}" > "$results/$1.log" 2>&1 || die "record: $results/$1.log"
    layouts "$1"
}

# 30,000 branch stacks at other moments each time, and the means of all. Behind exact or shares.
seeds() {
    local seed name
    printf '%-24s %8s %6s %9s %6s %8s %6s\n' '30,000 stacks' misses share jumps share bolt share
    for seed in ${SEEDS:-1 2 3 4 5}; do
        name=seed-$seed
        trace "$program" "$results/$name.stacks" "$seed"
        python3 "$stacks/sum.py" "$results/$name.stacks" 30000 > "$results/$name.txt"
        rm "$results/$name.stacks"
        "$AFTERLINK" profile convert "$results/$name.txt" --binary "$program" -o "$results/$name.fdata" > "$results/log"
        layouts "$name"
    done | tee "$results/seeds"
    awk '{ for (i = 2; i <= 7; i++) { sum[i] += $i; squares[i] += $i * $i } } END {
        printf "mean of %d:", NR
        for (i = 3; i <= 7; i += 2) printf "  %.3f, deviation %.3f", sum[i] / NR, sqrt((squares[i] - sum[i] * sum[i] / NR) / (NR - 1))
        print "" }' "$results/seeds"
}

# What was seen of the layout by exact counts, led back, and the layout of the program as linked by that.
second() {
    local first=$results/layout-exact
    trace "$first" "$results/second.txt"
    python3 "$stacks/sum.py" "$results/second.txt" 30000 > "$results/second-stacks.txt"
    "$AFTERLINK" profile convert "$results/second-stacks.txt" --binary "$first" -o "$results/second-stacks.fdata" > "$results/log"
    printf '%-24s %8s %6s %9s %6s %8s %6s\n' 'second round' misses share jumps share bolt share
    layouts second-stacks
    sampled second-followed 250 30 "$first"
    sampled second-samples 1000 30 "$first" --no-branches
}

# What recording costs: CPU seconds of nine runs in turn, the least of each.
cost() {
    "$AFTERLINK" instrument "$program" -o "$program.exactly" --exact --counters "$results/exactly" > "$results/log"
    llvm-bolt-22 "$program" -instrument "--instrumentation-file=$results/bolt.counts" -o "$program.bolt" > "$results/log" 2>&1
    AFTERLINK=$AFTERLINK python3 - "$program" "$results" "${longest_arguments[@]}" <<'PYTHON'
import os, resource, subprocess, sys, time
program, results, *arguments = sys.argv[1:]
record = [os.environ["AFTERLINK"], "record", "-o", results + "/cost.data"]
sample = lambda rate, *flags: record + ["-F", str(rate), *flags, "--", program]
kinds = {"as linked": [program], "samples, 100 Hz": sample(100, "--no-branches"), "samples, 1,000 Hz": sample(1000, "--no-branches"),
         "followed, 100 Hz": sample(100), "followed, 250 Hz": sample(250), "followed, 1,000 Hz": sample(1000), "instrument": [program + ".counting"],
         "instrument --exact": [program + ".exactly"], "llvm-bolt -instrument": [program + ".bolt"]}
times = {kind: [] for kind in kinds}
for _ in range(9):
    for kind, command in kinds.items():
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command + arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times[kind].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start))
least = [min(column) for column in zip(*times["as linked"])]
print(f"{'recording':24} {'CPU s':>7} {'ratio':>6} {'elapsed':>8}")
for kind, runs in times.items():
    cpu, wall = (min(column) for column in zip(*runs))
    print(f"{kind:24} {cpu:7.3f} {cpu / least[0]:6.3f} {wall / least[1]:8.3f}")
PYTHON
}

prepare_shares() {
    local missing=() tool
    for tool in valgrind qemu-x86_64:qemu-user python3 llvm-bolt-22:bolt-22; do command -v "${tool%:*}" > /dev/null || missing+=("${tool#*:}"); done
    [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
    install_compiler
    mkdir -p "$results"
    gcc -O2 -shared -fPIC "$stacks/stacks.c" -o "$results/stacks.so"
}
