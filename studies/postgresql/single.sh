#!/usr/bin/env bash
# 60,000 lookups by primary key through a single-user backend, for timing a server without clients; half a second. `prepared`: 80,000 by one prepared
# statement.
#
#   single.sh BINARY [prepared]
#
# WRAPPER, if it is set, is a tool that the server runs under; LOOKUPS how many of them it does.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"

own=$STUDY_WORK/data-single
[ -f "$own/ready" ] || { prepare_data; copy_data "$own"; }

# repeated TIMES: the lookups, so many times, as they are, or by the prepared statement.
repeated() {
    local i
    [ -z "$prepared" ] || echo 'PREPARE lookup(int) AS SELECT abalance FROM pgbench_accounts WHERE aid = $1;'
    for ((i = 0; i < $1; i++)); do
        if [ -n "$prepared" ]; then sed 's/SELECT .* = \([0-9]*\);/EXECUTE lookup(\1);/' "$lookups"; else cat "$lookups"; fi
    done
}

prepared=${2:-}
times=${prepared:+20}
times=${times:-15}
read -ra wrapper <<< "${WRAPPER:-}"
file=$own${prepared:+-prepared}-$times.sql
[ -s "$file" ] || repeated "$times" > "$file"
if [ -n "${LOOKUPS:-}" ]; then
    head -"$LOOKUPS" "$file" > "$file.first"
    file=$file.first
fi
lookups=$file
run_lookups "$1" "$own" "${wrapper[@]}"
