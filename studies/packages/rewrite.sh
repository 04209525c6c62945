#!/usr/bin/env bash
# Rewrites one program in its place; when afterlink does not, the program stays as it was and the log says why.
#
#   rewrite.sh PROGRAM
#   AFTERLINK          the command
#   RELINK_MODE        reverse; random-SEED: all orders and splits by that seed; instrumented; optimized: by what the
#                      instrumented program counted; a program that did not run is left out
#   RELINK_LOG         rows are added: program, mode, functions moved, of how many, refusals by reason, error
#   RELINK_ORIGINALS   keeps the program as it was, under its full path, and counter files
set -euo pipefail
program=$(readlink -f "$1")
new=$program.afterlink-new
report=$RELINK_ORIGINALS$program.report
mkdir -p "$(dirname "$report")"

by_orders() {
    "$AFTERLINK" optimize "$program" -o "$new" --json --threads 1 --trap-old-code --scope all \
        --order-blocks "$1" --order-functions "$1" --split "$2" --seed "$3"
}

by_profile() {
    local counters=$RELINK_ORIGINALS$program.counters
    "$AFTERLINK" profile convert "$counters" -o "$counters.fdata" >/dev/null
    "$AFTERLINK" optimize "$program" --profile "$counters.fdata" -o "$new" --json --threads 1 --trap-old-code
}

run_afterlink() {
    case $RELINK_MODE in
    reverse) by_orders reverse none 1 ;;
    random-*) by_orders random random "${RELINK_MODE#random-}" ;;
    instrumented) "$AFTERLINK" instrument "$program" -o "$new" --json --counters "$RELINK_ORIGINALS$program.counters" ;;
    optimized) by_profile ;;
    *) echo "no such mode: $RELINK_MODE" >&2 && exit 2 ;;
    esac
}

# figures: functions moved, functions, and refusals as reason:count, of a report.
figures() {
    awk '
        /^  "functions":/ { functions = $2 + 0 }
        /^  "(moved|counted|instrumented)_functions":/ { moved = $2 + 0 }
        /"reason":/ { gsub(/[",]/, "", $2); reason = $2 }
        /^          "name":/ && reason { refused[reason]++ }
        END {
            printf "%d\t%d\t", moved, functions
            for (reason in refused) printf "%s:%d ", reason, refused[reason]
        }' "$report"
}

# What the tests never run has no counts: it stays as it is, and is no row.
[ "$RELINK_MODE" != optimized ] || [ -s "$RELINK_ORIGINALS$program.counters" ] || exit 0
status=0
error=$(run_afterlink 2>&1 >"$report") || status=$?
if [ $status -eq 0 ]; then
    chmod --reference="$program" "$new"
    touch --reference="$program" "$new"
    cp -p "$program" "$RELINK_ORIGINALS$program"
    mv "$new" "$program"
    # What it says of itself though it succeeded: functions that it could not prove, and left alone.
    faults=$(grep "fault of afterlink" <<<"$error" | tr '\t\n' '  ') || faults=
    printf '%s\t%s\t%s\t%s\n' "$program" "$RELINK_MODE" "$(figures)" "$faults" >>"$RELINK_LOG"
else
    printf '%s\t%s\t0\t0\t\texit code %d: %s\n' "$program" "$RELINK_MODE" $status "$(tr '\t\n' '  ' <<<"$error")" >>"$RELINK_LOG"
fi
