# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names='cc1plus cc1'
# 245 functions in tables whose order some code that names these may ask for stay.
least_moved=0.99
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain
source=$STUDY_WORK/source
inputs=$STUDY_WORK/inputs

# Of the compiler's levels; g is -O1 with debug information.
LEVELS=${LEVELS:-0 2 g}

# run_workload PROGRAM [WRAPPER …]: one of GCC's own files that no profile of the tests knows.
run_workload() {
    local program=$1
    shift
    "$@" "$program" -quiet -fpreprocessed -O2 "$inputs/workload/ipa-icf.ii" -o - | sha256sum
}

# run_tests NAME FOLDER: everything at each level, and the sum of what comes out.
run_tests() {
    local input level
    for input in "$inputs"/*.i*; do
        for level in $LEVELS; do echo "$2 $input $level"; done
    done | xargs -P "$(nproc)" -L 1 "$study/compile.sh" 2> "$logs/$1.compiled" | sort -k2 > "$RESULTS/check/$1.outcomes"
}
