#!/usr/bin/env bash
# What a profile of an older release is worth: SQLite's query workload (sqlite-bench 8 20) counted exactly with older releases, each laid onto the newest one. Shares of
# what its own exact counts gain, in simulated instruction-cache misses and in taken jumps inside functions:
#
#   by names           as optimize takes a profile of another build: functions by name, branches by offset
#   matched            with --profile-binary OLD
#   llvm-bolt          its YAML of the old release, with --infer-stale-profile
#
#   releases.sh [VERSION …]     versions of the crate libsqlite3-sys that bundle the older releases; some three minutes each on two cores
. "$(dirname "$0")/../sqlite/environment.sh"

results=${RESULTS:-$work/releases}
arguments=(8 20)
bolt=(-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-strategy=profile2 -split-all-cold)

# fetch VERSION: the sources of an older release, below $results/VERSION.
fetch() {
    [ ! -f "$results/$1/vendor/libsqlite3-sys/sqlite3/sqlite3.c" ] || return 0
    mkdir -p "$results/$1"
    sed "s/version = \"=[^\"]*\"/version = \"=$1\"/" "$study/Cargo.toml" > "$results/$1/Cargo.toml"
    cp "$study/source.rs" "$results/$1"
    (cd "$results/$1" && cargo vendor --quiet vendor > vendor.log 2>&1) || { cat "$results/$1/vendor.log" >&2; die 'cargo vendor failed'; }
}

# build FOLDER SOURCES: its program.
build() {
    [ -f "$1/sqlite3.o" ] || "${compile[@]}" -c "$2/sqlite3.c" -o "$1/sqlite3.o"
    [ -f "$1/sqlite-bench" ] || "${compile[@]}" -I"$2" "$study/workload.c" "$1/sqlite3.o" -o "$1/sqlite-bench" -Wl,--emit-relocs -lm
}

# count FOLDER: exact counts of its program.
count() {
    [ ! -s "$1/exact.fdata" ] || return 0
    "$AFTERLINK" instrument "$1/sqlite-bench" -o "$1/counting" --counters "$1/counters" > "$1/log"
    "$1/counting" "${arguments[@]}" > "$1/answers"
    "$AFTERLINK" profile convert "$1/counters" --binary "$1/sqlite-bench" -o "$1/exact.fdata" > "$1/log"
}

# simulate BINARY: leaves "MISSES JUMPS" in BINARY.simulated. No jump from one fragment of a function to another is among the jumps.
simulate() {
    valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --collect-jumps=yes --dump-instr=yes \
        "--callgrind-out-file=$1.callgrind" "$1" "${arguments[@]}" > "$1.answers" 2> "$1.log"
    cmp "$1.answers" "$results/new/answers" || die "$1 answers differently"
    echo "$(awk '/I1  misses:/ { gsub(",", ""); print $4 }' "$1.log")" \
        "$(awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d", taken }' "$1.callgrind")" > "$1.simulated"
    rm "$1.callgrind"
}

# row RELEASE WAY LAYOUT
row() {
    awk -v release="$1" -v way="$2" -v plain="$(cat "$program.simulated")" -v exact="$(cat "$results/new/layout.simulated")" -v ours="$(cat "$3.simulated")" 'BEGIN {
        split(plain, p); split(exact, e); split(ours, o)
        printf "%-8s %-11s %8d %6.3f %9d %6.3f\n", release, way, o[1], (p[1] - o[1]) / (p[1] - e[1]), o[2], (p[2] - o[2]) / (p[2] - e[2]) }'
}

release() {
    local old=$results/$1 name
    name=$(sed -n 's/^#define SQLITE_VERSION *"\(.*\)"/\1/p' "$old/vendor/libsqlite3-sys/sqlite3/sqlite3.h")
    "$AFTERLINK" optimize "$program" --profile "$old/exact.fdata" -o "$old/named" > "$old/named.report"
    "$AFTERLINK" optimize "$program" --profile "$old/exact.fdata" --profile-binary "$old/sqlite-bench" -o "$old/matched" > "$old/matched.report" 2>&1
    simulate "$old/named"
    row "$name" 'by names' "$old/named"
    simulate "$old/matched"
    row "$name" matched "$old/matched"
    command -v llvm-bolt-22 > /dev/null || return 0
    llvm-bolt-22 "$old/sqlite-bench" -data "$old/exact.fdata" -w "$old/exact.yaml" -o /dev/null > "$old/log" 2>&1
    llvm-bolt-22 "$program" -o "$old/bolt" -data "$old/exact.yaml" --infer-stale-profile "${bolt[@]}" > "$old/bolt.report" 2>&1
    simulate "$old/bolt"
    row "$name" llvm-bolt "$old/bolt"
}

command -v valgrind > /dev/null || install_packages valgrind
install_compiler
fetch_sqlite
build_afterlink
[ $# -gt 0 ] || set -- 0.38.1 0.37.0 0.33.0 0.30.1
mkdir -p "$results/new"
build "$results/new" "$sources"
count "$results/new"
program=$results/new/sqlite-bench
"$AFTERLINK" optimize "$program" --profile "$results/new/exact.fdata" -o "$results/new/layout" > "$results/new/log"
for name in "$program" "$results/new/layout"; do [ -s "$name.simulated" ] || simulate "$name"; done
printf '%-8s %-11s %8s %6s %9s %6s\n' release layout misses share jumps share
for version in "$@"; do
    fetch "$version"
    build "$results/$version" "$results/$version/vendor/libsqlite3-sys/sqlite3"
    count "$results/$version"
    release "$version"
done
