# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=redis-server
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain

# Its files stay in one folder for each run.
run_folder=$STUDY_WORK/run

# run_workload PROGRAM [WRAPPER …]: 40,000 commands, one after the other, and the answers.
run_workload() {
    local program=$1 socket=$run_folder/socket server
    shift
    [ -s "$STUDY_WORK/commands" ] || awk -f "$study/commands.awk" > "$STUDY_WORK/commands"
    rm -rf "$run_folder"
    mkdir -p "$run_folder"
    (cd "$run_folder" && exec "$@" "$program" --port 0 --unixsocket "$socket" --save '' --hz 1 --dynamic-hz no > server.log 2>&1) &
    server=$!
    await_socket "$server" "$socket" "$run_folder/server.log" || return 1
    "$build/src/redis-cli" -s "$socket" < "$STUDY_WORK/commands"
    "$build/src/redis-cli" -s "$socket" shutdown nosave
    wait "$server"
}

# Redis's own tests run the server of the tree.
UNITS=${UNITS:-unit/dump unit/auth unit/protocol unit/keyspace unit/info unit/type/string unit/type/incr unit/type/list unit/type/hash
    unit/type/stream-cgroups unit/sort unit/expire unit/other unit/multi unit/acl unit/acl-v2 unit/pubsub unit/slowlog unit/scripting
    unit/functions unit/introspection unit/bitops unit/bitfield unit/lazyfree unit/tracking unit/querybuf
    integration/aof integration/rdb integration/convert-zipmap-hash-on-load integration/convert-ziplist-hash-on-load
    integration/logging integration/redis-cli}

run_tests() { # NAME FOLDER
    local units=() unit
    for unit in $UNITS; do units+=(--single "$unit"); done
    cp --remove-destination "$2/redis-server" "$build/src/redis-server"
    (cd "$build" && env -i PATH="$PATH" HOME=/tmp LC_ALL=C.UTF-8 TZ=UTC timeout --kill-after=30 1200 ./runtest --clients 2 "${units[@]}") \
        > "$RESULTS/check/$1.log" 2>&1 || true
    cp --remove-destination "$plain_programs/redis-server" "$build/src/redis-server"
    sed -n 's/\x1b\[[0-9;]*m//g; s/ ([0-9]* ms)$//; s/^\[\(ok\|err\|exception\|skip\|ignore\|timeout\)\]: \(.*\)/\1 \2/p' \
        "$RESULTS/check/$1.log" | sort > "$RESULTS/check/$1.outcomes"
}
