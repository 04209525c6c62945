# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=${PROGRAMS:-db_bench c_test db_iterator_test db_basic_test}
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain

# Databases; on a file system in memory tests take a third of the time.
database_folder=${DATABASES:-/dev/shm/afterlink-rocksdb}

# run_workload PROGRAM [WRAPPER …]: db_bench with fixed seeds, one thread and no compaction but the one that is asked for; how much it
# found, and what is in the database at last, read by Debian's own tool.
run_workload() {
    local program=$1 database=$database_folder/bench
    shift
    rm -rf "$database"
    mkdir -p "$database"
    "$@" "$program" --db="$database" --seed=7 --threads=1 --num=20000 --reads=10000 --value_size=100 --compression_type=snappy \
        --bloom_bits=10 --cache_size=524288 --write_buffer_size=524288 --target_file_size_base=524288 --seek_nexts=5 \
        --disable_auto_compactions=1 --level0_slowdown_writes_trigger=1000 --level0_stop_writes_trigger=1000 --stats_interval=100000 \
        --benchmarks=fillrandom,flush,compact,readrandom,seekrandom,readseq,readreverse,updaterandom,readmissing,flush,verifychecksum \
        2> "$logs/workload.err" | sed -n 's/^\([a-z]*\) *: .*operations;[^(]*\(.*\)/\1 \2/p'
    ldb --db="$database" scan --hex | sha256sum
}

# Without those that take a fourth of the time alone, and one of the two settings of each test that has settings.
FILTER=${FILTER:--*Randomized*:*/1}

# run_tests NAME FOLDER
run_tests() {
    local log=$RESULTS/check/$1.log program
    : > "$log"
    for program in $program_names; do
        [ "$program" != db_bench ] || continue
        rm -rf "$database_folder/tests"
        mkdir -p "$database_folder/tests"
        echo "[ RUN ] $program" >> "$log"
        (cd "$database_folder/tests" && TEST_TMPDIR=$database_folder/tests timeout --kill-after=30 900 "$2/$program" --gtest_filter="$FILTER") >> "$log" 2>&1 &&
            echo "=== PASS $program" >> "$log" || echo "=== FAIL $program" >> "$log"
    done
    rm -rf "$database_folder"
    sed -n 's/^=== Test /reached c_test./p; s/^=== /whole /p; s/^\[ *\(OK\|FAILED\|SKIPPED\) *\] \([^ ]*\).*(.*ms)$/\1 \2/p' "$log" | sort > "$RESULTS/check/$1.outcomes"
}
