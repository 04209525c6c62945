# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=${PROGRAMS:-repl duckdb_tests}
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain

# Databases and exported files; in memory, so that no disk is waited for.
database_folder=${DATABASES:-/dev/shm/afterlink-duckdb}

# run_workload PROGRAM [WRAPPER …]: the statements of workload.sql by one thread, with their answers and errors.
run_workload() {
    local program=$1 folder=$database_folder/workload
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    (cd "$folder" && "$@" "$program" database.db < "$study/workload.sql" 2>&1)
}

# run_tests NAME FOLDER
run_tests() {
    local log=$RESULTS/check/$1.log
    (cd "$build" && TMPDIR=$database_folder timeout --kill-after=30 1200 "$2/duckdb_tests" --test-threads 2) > "$log" 2>&1 || true
    rm -rf "$database_folder"
    sed -n 's/^test \(.*\) \.\.\. \([a-z]*\).*$/\1 \2/p' "$log" | sort > "$RESULTS/check/$1.outcomes"
}
