# Sourced: how the programs are run, always doing the same; with a wrapper in WRAPPER, as gdb has it the arguments alone.
#
# The server does not run as root: then it runs as `afterlink-study`, as in the study of PostgreSQL.

bolt_options=(-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-strategy=profile2 -split-all-cold -thread-count=2
    -update-debug-sections)
database=/dev/shm/afterlink-debugging

arguments_leveldb="--db=$database/db --num=20000 --reads=5000 --threads=1 --benchmarks=fillseq,fillrandom,overwrite,compact,readrandom,readseq,readreverse,seekrandom,deleterandom,readmissing,crc32c"
prepare_leveldb() { rm -rf "$database"; mkdir -p "$database"; }
run_leveldb() { prepare_leveldb; "./$1" $arguments_leveldb; }

arguments_rocksdb="--db=$database/db --seed=7 --threads=1 --num=20000 --reads=10000 --value_size=100 --compression_type=snappy --bloom_bits=10
    --cache_size=524288 --write_buffer_size=524288 --target_file_size_base=524288 --seek_nexts=5 --disable_auto_compactions=1
    --level0_slowdown_writes_trigger=1000 --level0_stop_writes_trigger=1000 --stats_interval=100000
    --benchmarks=fillrandom,flush,compact,readrandom,seekrandom,readseq,readreverse,updaterandom,readmissing,flush,verifychecksum"
arguments_rocksdb=$(echo $arguments_rocksdb)
prepare_rocksdb() { rm -rf "$database"; mkdir -p "$database"; }
run_rocksdb() { prepare_rocksdb; "./$1" $arguments_rocksdb; }

# The server's own user can't reach a closed home directory: set STUDY_WORK to one that it can.
arguments_postgres="--single -D $STUDY_WORK/postgres/data -c fsync=off -c autovacuum=off -c jit=off -c track_activities=off -c log_checkpoints=off postgres"
as_server() {
    local drop=()
    [ "$(id -u)" -ne 0 ] || drop=(setpriv --reuid=afterlink-study --regid=afterlink-study --clear-groups)
    "${drop[@]}" env -i PATH="$PATH" HOME=/tmp LC_ALL=C TZ=UTC SHELL=/bin/sh "$@"
}
prepare_postgres() { # PROGRAM
    local folder=$STUDY_WORK/postgres
    [ ! -d "$folder/data" ] || return 0
    if [ "$(id -u)" -eq 0 ]; then
        id afterlink-study > /dev/null 2>&1 || useradd --system --no-create-home --home-dir /nonexistent --shell /bin/sh afterlink-study
        mkdir "$folder/data" && chown afterlink-study: "$folder/data"
        chmod a+rwX "$folder"
    fi
    as_server "$folder/install/bin/initdb" -D "$folder/data" -U study --no-sync -A trust > "$folder/initdb.log"
    printf '%s\n' 'CREATE TABLE t(a int primary key, b int, c text)' \
        "INSERT INTO t SELECT i, i%10, 'text'||i FROM generate_series(1,20000) i" 'ANALYZE t' |
        as_server "$folder/plain" $arguments_postgres > "$folder/prepare.log" 2>&1
    {
        for i in $(seq 1000); do echo "SELECT b,c FROM t WHERE a=$((i * 7919 % 20000))"; done
        printf '%s\n' 'SELECT b,count(*),sum(a),max(c) FROM t GROUP BY b ORDER BY 2,1' 'SELECT 1/0' \
            'SELECT x.b, count(*) FROM t x JOIN t y ON x.a=y.b GROUP BY 1 ORDER BY 1' 'UPDATE t SET b=b WHERE a<100' \
            "SELECT 'many'::numeric" 'SELECT * FROM nothing' 'SELECT sqrt(-a::numeric) FROM t'
    } > "$folder/work.sql"
}
run_postgres() { as_server "./$1" $arguments_postgres < work.sql; }
