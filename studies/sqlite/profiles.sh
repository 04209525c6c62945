#!/usr/bin/env bash
# What each kind of profile is worth: the share of the gain of exact counts, in instruction-cache misses and in taken jumps inside
# functions, both simulated. About three minutes on two cores.
#
#   profiles.sh               AFTERLINK=/path/to/afterlink profiles.sh uses that command instead of building one
#
#   SECONDS_SAMPLED=30        of `afterlink record`, at 1,000 samples a second
#   KEPT="54 2000"            also exact counts of which one of so many was kept, by chance: what branch stacks would be at best
#
# Profiles and layouts stay below studies/sqlite/work/profiles; the table is printed. llvm-bolt-22 stands beside it if it is installed.
. "$(dirname "$0")/environment.sh"

SECONDS_SAMPLED=${SECONDS_SAMPLED:-30}
KEPT=${KEPT:-54 2000}
results=$work/profiles
program=$results/sqlite-bench
bolt=(-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-strategy=profile2 -split-all-cold)

sample_again_and_again() {
    local end=$((SECONDS + SECONDS_SAMPLED))
    while [ "$SECONDS" -lt "$end" ]; do "$program" 30 > /dev/null; done
}

make_profiles() {
    [ -s "$results/exact.fdata" ] || {
        "$AFTERLINK" instrument "$program" -o "$program.counting" --counters "$results/counters"
        "$program.counting" 8 20 > /dev/null
        "$AFTERLINK" profile convert "$results/counters" --binary "$program" -o "$results/exact.fdata"
    } > "$results/log"
    export -f sample_again_and_again
    export program SECONDS_SAMPLED
    [ -s "$results/samples.fdata" ] || "$AFTERLINK" record -o "$results/samples.fdata" --binary "$program" -- bash -c sample_again_and_again
    local kept
    for kept in $KEPT; do
        # Park and Miller's generator; as many as a Poisson variable, above 30 by the normal distribution.
        awk -v kept="$kept" '
            function random() { state = state * 48271 % 2147483647; return state / 2147483647 }
            function drawn(mean,    n, product, i, sum) {
                if (mean > 30) {
                    for (i = 0; i < 12; i++) sum += random()
                    n = int(mean + (sum - 6) * sqrt(mean) + 0.5)
                    return n < 0 ? 0 : n
                }
                for (product = random(); product > exp(-mean); product *= random()) n++
                return n + 0
            }
            BEGIN { state = 20261123 }
            NF == 8 { $8 = drawn($8 / kept); if ($8 > 0) print }' "$results/exact.fdata" > "$results/kept-$kept.fdata"
    done
}

# simulate BINARY: prints "MISSES JUMPS". No jump from one fragment of a function to another is among the jumps.
simulate() {
    local counted=$results/callgrind.out misses
    misses=$(valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --collect-jumps=yes --dump-instr=yes \
        "--callgrind-out-file=$counted" "$1" 8 20 2>&1 > /dev/null | awk '/I1  misses:/ { gsub(",", ""); print $4 }')
    echo "$misses $(awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d", taken }' "$counted")"
}

# row NAME MISSES JUMPS
row() {
    awk -v name="$1" -v misses="$2" -v jumps="$3" -v plain="$plain" -v exact="$exact" 'BEGIN {
        split(plain, p); split(exact, e)
        printf "%-22s %10d %6.3f %12d %6.3f\n", name, misses, (p[1] - misses) / (p[1] - e[1]), jumps, (p[2] - jumps) / (p[2] - e[2]) }'
}

missing=()
for tool in jq valgrind; do command -v "$tool" > /dev/null || missing+=("$tool"); done
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
install_compiler
fetch_sqlite
build_afterlink
mkdir -p "$results"
[ -f "$work/sqlite3.o" ] || "${compile[@]}" -c "$sources/sqlite3.c" -o "$work/sqlite3.o"
[ -f "$program" ] || "${compile[@]}" -I"$sources" "$study/workload.c" "$work/sqlite3.o" -o "$program" -Wl,--emit-relocs -lm
make_profiles
plain=$(simulate "$program")
printf '%-22s %10s %6s %12s %6s\n' profile misses share jumps share
for profile in exact samples $(printf 'kept-%s ' $KEPT); do
    "$AFTERLINK" optimize "$program" --profile "$results/$profile.fdata" -o "$program.$profile" > "$results/log"
    read -r misses jumps < <(simulate "$program.$profile")
    [ "$profile" != exact ] || exact="$misses $jumps"
    row "$profile" "$misses" "$jumps"
    if command -v llvm-bolt-22 > /dev/null; then
        llvm-bolt-22 "$program" -o "$program.bolt" -data "$results/$profile.fdata" "${bolt[@]}" > "$results/bolt.log" 2>&1 || die 'llvm-bolt failed'
        read -r misses jumps < <(simulate "$program.bolt")
        row "$profile, llvm-bolt" "$misses" "$jumps"
    fi
done
