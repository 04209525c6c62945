#!/usr/bin/env bash
# Builds DuckDB with debug information and relocations (`g++ -O2 -g`), from the sources that the crate libduckdb-sys packs: the largest program
# of these studies, for `cost.sh duckdb`. Takes an hour of one processor, can be stopped and started again.
#
#   duckdb/build.sh        gives $STUDY_WORK/duckdb/{plain,workload.fdata}
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../environment.sh"
version=1.20000.1 # DuckDB 2.0.0
folder=$STUDY_WORK/duckdb
mkdir -p "$folder/crate/src" "$folder/objects"
cd "$folder"
if [ ! -d duckdb ]; then
    printf '[package]\nname = "sources"\nversion = "0.0.0"\n[dependencies]\nlibduckdb-sys = "=%s"\n' "$version" > crate/Cargo.toml
    touch crate/src/lib.rs
    (cd crate && cargo vendor --quiet vendor > /dev/null)
    tar -xzf crate/vendor/libduckdb-sys/duckdb.tar.gz
fi
cp "$here/queries.cpp" .
python3 "$here/makefile.py" duckdb/manifest.json > Makefile
make -s -j"$(nproc)" plain > make.log 2>&1 || die "see $folder/make.log"
"$AFTERLINK" instrument plain -o counting --counters "$folder/counters" > instrument.log
./counting 20000 > queries.log
"$AFTERLINK" profile convert counters -o workload.fdata > convert.log
