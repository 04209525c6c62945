# Sourced by measure.sh: what is measured, and its workload.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=afterlink
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/target/release

# run_workload PROGRAM [WRAPPER …]: lays out the tests of one of its crates, by one thread; prints what it wrote as a hash.
run_workload() {
    local program=$1 tests
    shift
    tests=$(find "$plain_programs/deps" -maxdepth 1 -name 'afterlink_elf-*' -executable -type f | sort | head -1)
    [ -n "$tests" ] || { say 'no tests are built; run run.sh tests first'; return 1; }
    "$@" "$program" optimize --scope all --threads 1 --order-functions reverse "$tests" -o "$STUDY_WORK/measured.out" > /dev/null
    sha256sum < "$STUDY_WORK/measured.out"
}
