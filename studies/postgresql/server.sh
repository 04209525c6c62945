# Sourced after environment.sh: data directories, and servers on them that listen on a private socket only.

data_seed=$STUDY_WORK/data        # filled and warm; never run on directly
sockets=$STUDY_WORK/sockets
lookups=$STUDY_WORK/lookups.sql   # 4,000 SELECTs by primary key, one a line

server_settings=(
    -c listen_addresses= -c "unix_socket_directories=$sockets" -c shared_buffers=256MB
    -c fsync=off -c autovacuum=off -c jit=off -c max_wal_size=2GB -c track_activities=off
)

# make_lookups FILE: the keys 1 to 100,000 in the order of a fixed linear congruence, the same on every machine.
make_lookups() {
    awk 'BEGIN {
        key = 12345
        for (i = 0; i < 4000; i++) {
            key = (key * 1103515245 % 2147483648 + 12345) % 2147483648
            printf "SELECT abalance FROM pgbench_accounts WHERE aid = %d;\n", int(key / 2147483648 * 100000) + 1
        }
    }' > "$1"
}

# prepare_data: one cluster with pgbench's tables at scale 1 (100,000 accounts), vacuumed, shut down cleanly.
# Every hint bit is set before it is copied, so that no later run pays for what an earlier one did not.
prepare_data() {
    [ ! -f "$data_seed/ready" ] || return 0
    say "preparing the data directory"
    rm -rf "$data_seed" "$sockets"
    mkdir -p "$data_seed" "$sockets"
    chmod 700 "$data_seed"
    give_to_user "$data_seed" "$sockets"
    as_user "$installation/bin/initdb" -D "$data_seed" -U study --no-locale -E UTF8 -A trust > "$STUDY_WORK/initdb.log"
    start_server "$plain_server" "$data_seed"
    as_user "$installation/bin/pgbench" -h "$sockets" -U study -i -s 1 -q postgres > "$STUDY_WORK/pgbench-init.log" 2>&1
    as_user "$installation/bin/psql" -h "$sockets" -U study -q postgres \
        -c 'VACUUM (FREEZE, ANALYZE)' -c 'CHECKPOINT'
    stop_server "$data_seed"
    make_lookups "$lookups"
    as_user touch "$data_seed/ready"
}

# copy_data DIRECTORY: a fresh copy of the prepared cluster.
copy_data() {
    rm -rf "$1"
    cp -a "$data_seed" "$1"
}

# start_server BINARY DATA [SETTING …]: returns when it accepts connections; log in DATA/server.log.
start_server() {
    local binary=$1 data=$2
    shift 2
    as_user "$installation/bin/pg_ctl" start -s -w -t 60 -D "$data" -l "$data/server.log" -p "$binary" \
        -o "${server_settings[*]} $*"
}

# stop_server DATA: returns when the process is gone, which is later than what pg_ctl waits for: a server that BOLT
# instrumented writes its counts as its very last act.
stop_server() {
    local process
    process=$(head -1 "$1/postmaster.pid")
    as_user "$installation/bin/pg_ctl" stop -s -w -m fast -D "$1"
    while grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$process/status"; do sleep 0.05; done
}

# run_lookups BINARY DATA [PREFIX …]: the 4,000 lookups through a single-user backend; PREFIX is a tool to run it under.
run_lookups() {
    local binary=$1 data=$2
    shift 2
    as_user "$@" "$binary" --single -D "$data" "${server_settings[@]}" -c log_checkpoints=off postgres < "$lookups"
}
