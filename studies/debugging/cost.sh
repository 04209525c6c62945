#!/usr/bin/env bash
# What it costs to lead debug information: time and memory, in turns, beside BOLT with the same profile.
#
#   cost.sh [PROGRAM [TIMES]]       default: postgres 3
. "$(dirname "$0")/environment.sh"
. "$study/workloads.sh"
cd "$STUDY_WORK/${1:-postgres}"
timed() { /usr/bin/time -f '%e s, %U s of processors, %M KB' -o time.log "${@:2}" > unused 2>&1; printf '%-28s %s\n' "$1" "$(cat time.log)"; }
for _ in $(seq "${2:-3}"); do
    timed 'afterlink' "$AFTERLINK" optimize plain -p workload.fdata -o cost.out
    timed 'afterlink, left as it was' "$AFTERLINK" optimize plain -p workload.fdata --keep-debug-info -o cost.out
    timed 'llvm-bolt' llvm-bolt-22 plain -o cost.out -data workload.fdata "${bolt_options[@]}"
done
