#!/usr/bin/env bash
# Has a rewritten compiler compile everything, and holds each object file against the plain compiler's.
#
#   check.sh [MODE …]      modes: plain input reverse random:SEED instrumented optimized, or `all` (the default)
#                          all = plain input reverse random:1 random:2 random:3 instrumented optimized
#   LEVELS="0 2 s g"       of optimization; g is -O0 with debug information
#
# Prints one line for each mode, writes $RESULTS/check.tsv, and exits non-zero unless every object file is the same, and 99.5 % of
# the functions have moved where all were to.
. "$(dirname "$0")/environment.sh"

LEVELS=${LEVELS:-0 2 s g}
made=$STUDY_WORK/made
failures=0

# make_compiler MODE SEED OUT
make_compiler() {
    local split=none
    rm -f "$3"
    case $1 in
    plain) cp "$plain" "$3" ;;
    instrumented) "$AFTERLINK" instrument "$plain" -o "$3" --counters "$STUDY_WORK/check.counters" ;;
    optimized)
        "$AFTERLINK" optimize "$plain" -o "$3" --profile "$STUDY_WORK/check.counters" --trap-old-code --report "$3.json"
        ;;
    *)
        [ "$1" != random ] || split=random
        "$AFTERLINK" optimize "$plain" -o "$3" --scope all --split "$split" "--order-blocks=$1" "--order-functions=$1" \
            ${2:+--seed "$2"} --trap-old-code --report "$3.json"
        ;;
    esac > "$logs/$1${2:+-$2}.log" 2>&1
}

# compile_all PROGRAM FOLDER: prints how many object files there are.
compile_all() {
    local input level out
    rm -rf "$2"
    mkdir -p "$2"
    for input in "$inputs"/*; do
        for level in $LEVELS; do
            out=$2/$(basename "$input").$level.o
            set_arguments "$input" "$out" "$level"
            echo "${arguments[*]@Q}"
        done
    done | xargs -P "$(nproc)" -L 1 "$1" 2> "$2/errors" || true
    # Two at a time complain in any order.
    sort -o "$2/errors" "$2/errors"
    find "$2" -name '*.o' | wc -l
}

check_mode() {
    local mode=${1%%:*} seed='' name program=$STUDY_WORK/rewritten count differing moved=- verdict=same
    [ "$mode" = "$1" ] || seed=${1#*:}
    name=$mode${seed:+-$seed}
    [ "$mode" != instrumented ] || rm -f "$STUDY_WORK/check.counters"
    make_compiler "$mode" "$seed" "$program" || { cat "$logs/$name.log" >&2; die "$name could not be made"; }
    count=$(compile_all "$program" "$made/$name")
    differing=$(diff -rq "$made/plain" "$made/$name" | wc -l) || true
    [ "$count" -gt 100 ] && [ "$differing" -eq 0 ] || verdict="see diff -rq $made/plain $made/$name"
    case $mode in
    input | reverse | random)
        moved=$(jq -r '"\(.moved_functions) of \(.functions)"' "$program.json")
        jq -e '.moved_functions >= 0.995 * .functions' "$program.json" > /dev/null || verdict='too few moved'
        ;;
    esac
    ! grep -q 'fault of afterlink' "$logs/$name.log" || verdict="a fault, see $logs/$name.log"
    [ "$verdict" = same ] || failures=$((failures + 1))
    printf '%-14s %6s %6s %18s  %s\n' "$name" "$count" "$differing" "$moved" "$verdict" | tee -a "$RESULTS/check.tsv"
    [ "$mode" = plain ] || [ "$differing" -ne 0 ] || rm -rf "$made/$name"
}

install_packages jq
need_build
need_afterlink
modes=("$@")
if [ "${#modes[@]}" -eq 0 ] || [ "${modes[*]}" = all ]; then
    modes=(plain input reverse random:1 random:2 random:3 instrumented optimized)
fi
[ -d "$made/plain" ] || [ "${modes[0]}" = plain ] || die 'check the mode plain first'
: > "$RESULTS/check.tsv"
printf '%-14s %6s %6s %18s\n' compiler files differ moved
for mode in "${modes[@]}"; do check_mode "$mode"; done
[ "$failures" -eq 0 ] || die "$failures of ${#modes[@]} compilers are not as the plain one"
