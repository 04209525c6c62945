#!/usr/bin/env bash
# afterlink lays itself out: builds the command with its relocations kept, makes it faster with one command, and holds what both write
# against each other, byte by byte. Then it runs its own test programs, Rust's panics and threads among them, in other orders.
#
#   run.sh [tune] [faster] [tests]      all by default
#   STUDY_WORK                  everything that is written                (default: studies/self/work)
#   WORKLOAD                    the program that it optimizes meanwhile   (default: itself)
#   PAIRS                       how often `tune` times itself old and new (default: 7)
#   SECONDS_TO_COMPARE          for `faster`, at most                     (default: 600)
#   CRATES                      whose tests are run
#   ORDERS="reverse random:1 random:2 random:3"
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
STUDY_WORK=${STUDY_WORK:-$study/work}
PAIRS=${PAIRS:-7}
SECONDS_TO_COMPARE=${SECONDS_TO_COMPARE:-600}
CRATES=${CRATES:-core isa unwind image profile ingest program recover weigh analyze layout passes elf emit instrument bench report record}
ORDERS=${ORDERS:-reverse random:1 random:2 random:3}
plain=$STUDY_WORK/target/release/afterlink
WORKLOAD=${WORKLOAD:-$plain}
mkdir -p "$STUDY_WORK"

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }
build() { RUSTFLAGS='-Clink-args=-Wl,--emit-relocs' cargo "$1" --manifest-path "$repository/Cargo.toml" --release --target-dir "$STUDY_WORK/target" "${@:2}"; }

# same_bytes JOB PROGRAM ARGUMENT …: what the plain and the fast command write.
same_bytes() {
    local command
    for command in "$plain" "$STUDY_WORK/fast"; do
        "$command" "${@:1}" -o "$STUDY_WORK/written.$(basename "$command")" > "$STUDY_WORK/written.log"
    done
    cmp "$STUDY_WORK/written.afterlink" "$STUDY_WORK/written.fast" || die "the two write different files: $*"
    say "same bytes: afterlink $*"
}

tune() {
    say 'building afterlink'
    build build --quiet -p afterlink-cli
    "$plain" tune "$plain" -o "$STUDY_WORK/fast" --pairs "$PAIRS" --keep-profile "$STUDY_WORK/self.fdata" -- {} optimize --scope all "$WORKLOAD" -o "$STUDY_WORK/unused"
    same_bytes optimize --scope all "$WORKLOAD"
    same_bytes optimize --scope all --order-functions random --order-blocks random --split random --seed 7 "$WORKLOAD"
    same_bytes instrument --counters unused "$WORKLOAD"
}

# How much faster: both at once on one CPU, with one thread each, so that whatever else goes on meets both alike.
faster() {
    RAYON_NUM_THREADS=1 "$plain" compare "$plain" --profile-b "$STUDY_WORK/self.fdata" --together --runs 4 --metric cpu --ignore-output \
        --max-time "$SECONDS_TO_COMPARE" --record "$STUDY_WORK/faster.json" -- {} optimize --scope all "$WORKLOAD" -o {}.out
}

# run_tests PROGRAM: "NAME OUTCOME" of each of its tests.
run_tests() { (cd "$repository" && "$1" --test-threads 2 2> /dev/null || true) | sed -n 's/^test \(.*\) \.\.\. \(.*\)$/\1 \2/p' | sort; }

tests() {
    local crates=() crate programs program order out count=0 failures=0 moved functions
    for crate in $CRATES; do crates+=(-p "afterlink-$crate"); done
    say 'building the tests'
    programs=$(build test --no-run --lib "${crates[@]}" 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
    [ -n "$programs" ] || die 'no test programs'
    for program in $programs; do
        program=$(realpath "$program")
        run_tests "$program" > "$STUDY_WORK/outcomes.plain"
        for order in $ORDERS counting; do
            out=$STUDY_WORK/rewritten
            rewrite "$program" "$order" "$out"
            run_tests "$out" > "$STUDY_WORK/outcomes"
            diff "$STUDY_WORK/outcomes.plain" "$STUDY_WORK/outcomes" > "$STUDY_WORK/differences" ||
                { failures=$((failures + 1)); say "$(basename "$program") in $order:"; cat "$STUDY_WORK/differences" >&2; }
            count=$((count + $(wc -l < "$STUDY_WORK/outcomes")))
        done
        read -r moved functions < <(jq -r '"\(.moved_functions) \(.functions)"' "$STUDY_WORK/report.json")
        printf '%-45s %5d tests, %6d of %6d functions moved\n' "$(basename "$program")" "$(wc -l < "$STUDY_WORK/outcomes.plain")" "$moved" "$functions"
    done
    [ "$failures" -eq 0 ] || die "$failures programs are not as before"
    say "$count outcomes, all as before"
}

rewrite() { # PROGRAM ORDER OUT
    local order=${2%%:*} seed=0 split=none
    [ "$order" = "$2" ] || seed=${2#*:}
    [ "$order" != random ] || split=random
    if [ "$order" = counting ]; then
        "$plain" instrument "$1" -o "$3" --counters "$STUDY_WORK/tests.counters" > "$STUDY_WORK/log"
    else
        "$plain" optimize "$1" -o "$3" --scope all --split "$split" "--order-blocks=$order" "--order-functions=$order" --seed "$seed" \
            --trap-old-code --report "$STUDY_WORK/report.json" > "$STUDY_WORK/log"
    fi
    ! grep 'fault of afterlink' "$STUDY_WORK/log" || die "see $STUDY_WORK/log"
}

parts=("$@")
[ "$#" -gt 0 ] || parts=(tune faster tests)
for part in "${parts[@]}"; do
    case $part in
    tune | faster | tests) "$part" ;;
    *) die "no such part: $part" ;;
    esac
done
