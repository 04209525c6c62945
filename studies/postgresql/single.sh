#!/usr/bin/env bash
# 60,000 lookups by primary key through a single-user backend, for timing a server without clients; half a second.
#
#   single.sh BINARY
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"

own=$STUDY_WORK/data-single
[ -f "$own/ready" ] || { prepare_data; copy_data "$own"; }
[ -s "$own.sql" ] || { for ((i = 0; i < 15; i++)); do cat "$lookups"; done > "$own.sql"; }
lookups=$own.sql
run_lookups "$1" "$own"
