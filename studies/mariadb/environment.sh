# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=mariadbd
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain
source=$STUDY_WORK/source

# Its files stay in one folder for each run.
run_folder=$STUDY_WORK/run

# serving PROGRAM WRAPPER… : a server of that folder, without a network and without rights to ask for.
serving() {
    local user=()
    [ "$(id -u)" -ne 0 ] || user=(--user=root)
    exec "${@:2}" "$1" --no-defaults "${user[@]}" --datadir="$run_folder/data" --socket="$run_folder/socket" --pid-file="$run_folder/pid" \
        --lc-messages-dir="$build/sql/share" --skip-networking --skip-grant-tables --innodb-buffer-pool-size=64M \
        --innodb-buffer-pool-size-max=64M --innodb-use-native-aio=0
}

# run_workload PROGRAM [WRAPPER …]: the statements of workload.awk, one after the other, and the answers.
run_workload() {
    local program=$1 server
    shift
    [ -s "$STUDY_WORK/workload.sql" ] || awk -f "$study/workload.awk" > "$STUDY_WORK/workload.sql"
    rm -rf "$run_folder"
    mkdir -p "$run_folder/data/lookups"
    (serving "$program" "$@" > "$run_folder/server.log" 2>&1) &
    server=$!
    await_socket "$server" "$run_folder/socket" "$run_folder/server.log" || return 1
    "$build/client/mariadb" --no-defaults -S "$run_folder/socket" --skip-column-names lookups < "$STUDY_WORK/workload.sql"
    "$build/client/mariadb" --no-defaults -S "$run_folder/socket" -e shutdown
    wait "$server"
}

# MariaDB's own tests run the server of the tree. These suites give the same outcomes each time.
SUITES=${SUITES:-gcol,vcol,versioning,json,heap,csv,innodb_gis,innodb_i_s,sql_sequence,period,handler}

run_tests() { # NAME FOLDER
    cp --remove-destination "$2/mariadbd" "$build/sql/mariadbd"
    (cd "$build/mysql-test" && perl mysql-test-run.pl --parallel=2 --force --retry=0 --max-test-fail=0 --testcase-timeout=5 --suite-timeout=60 \
        "--vardir=$STUDY_WORK/var" "--suite=$SUITES") > "$RESULTS/check/$1.log" 2>&1 || true
    cp --remove-destination "$plain_programs/mariadbd" "$build/sql/mariadbd"
    sed -nE 's/^([a-z0-9_]+\.[^ ]+)( .*)? +w[0-9]+ \[ (pass|fail|skipped|disabled) \].*/\3 \1\2/p' "$RESULTS/check/$1.log" |
        sed -E 's/ +/ /g; s/ $//' | sort > "$RESULTS/check/$1.outcomes"
}
