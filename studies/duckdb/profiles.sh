#!/usr/bin/env bash
# Profiles as Parquet, merged by an engine that knows nothing of them: profiles.sh PROFILE … writes each profile (fdata, counters: whatever
# names functions itself) as Parquet, lets DuckDB sum them, and compares the sum with that of `afterlink profile merge`.
# Needs an afterlink with the feature: cargo build --release --features parquet; AFTERLINK names another, DUCKDB another shell than
# that of build.sh.
set -euo pipefail
study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
afterlink=${AFTERLINK:-$study/../../target/release/afterlink}
duckdb=${DUCKDB:-$study/work/plain/repl}
[ $# -gt 0 ] || { echo "usage: profiles.sh PROFILE …" >&2; exit 64; }
[ -x "$duckdb" ] || { echo "no DuckDB: build it with build.sh, or name one with DUCKDB" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
number=0
for profile in "$@"; do
    number=$((number + 1))
    "$afterlink" profile convert "$profile" -o "$folder/$number.parquet" > "$folder/log"
done
"$afterlink" profile merge "$@" -o "$folder/merged.fdata" > "$folder/log"

# A name's spaces and backslashes have a backslash in front of them in fdata.
cat > "$folder/merge.sql" <<SQL
CREATE MACRO place(kind, name, distance) AS
  printf('%d %s %x', kind, replace(replace(decode(name), chr(92), chr(92) || chr(92)), ' ', chr(92) || ' '), distance);
CREATE MACRO most(total) AS least(total, 9223372036854775807)::BIGINT;
CREATE TABLE merged AS
  SELECT kind, from_kind, from_name, from_offset, to_kind, to_name, to_offset,
         most(sum(mispredicts)) AS mispredicts, most(sum(count)) AS total
  FROM read_parquet('$folder/*.parquet') GROUP BY ALL;
COPY (SELECT CASE kind
        WHEN 'branch' THEN place(from_kind, from_name, from_offset) || ' ' || place(to_kind, to_name, to_offset) || ' ' || mispredicts || ' ' || total
        ELSE place(from_kind, from_name, from_offset) || ' ' || total END
      FROM merged) TO '$folder/rows' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x01');
COPY (SELECT DISTINCT 'no_lbr ' || event FROM read_parquet('$folder/*.parquet') WHERE kind = 'sample')
  TO '$folder/head' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x01');
SQL
# The shell takes a statement a line.
tr '\n' ' ' < "$folder/merge.sql" | sed 's/; */;\n/g' | "$duckdb" > "$folder/log" 2>&1
[ -s "$folder/rows" ] || { head -n 20 "$folder/log" >&2; exit 1; }
# Of samples there is one head, with the events of all.
events=$(sed 's/^no_lbr *//' "$folder/head" | tr ' ' '\n' | sort -u | tr '\n' ' ')
{ [ ! -s "$folder/head" ] || echo "no_lbr ${events% }"; cat "$folder/rows"; } > "$folder/by-duckdb"
# In its canonical order.
"$afterlink" profile convert "$folder/by-duckdb" -o "$folder/by-duckdb.fdata" > "$folder/log"
cmp "$folder/merged.fdata" "$folder/by-duckdb.fdata"
echo "$number profiles, $(wc -l < "$folder/rows") rows: DuckDB and afterlink agree"
