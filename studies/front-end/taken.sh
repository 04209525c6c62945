#!/usr/bin/env bash
# How many branches a run takes, by kind: calls, returns, jumps, through memory or registers, conditional ones. Counted under qemu-user by
# a plugin (taken.c), which knows neither a layout tool nor symbols; the same run gives the same counts.
#
#   taken.sh PROGRAM [ARGUMENT …]
#
# Runs the program with the caller's standard input and output, and prints the table on stderr, or into the file that TAKEN names: one line a kind,
# the counts in the program's own file and in all code, libraries with it; of all its processes together.
#
#   TAKEN_WORK     where the plugin is built and counts are left    (default: work in the study's folder)
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TAKEN_WORK=${TAKEN_WORK:-$study/work}
TAKEN=${TAKEN:-/dev/stderr}
mkdir -p "$TAKEN_WORK"
plugin=$TAKEN_WORK/taken.so
[ "$plugin" -nt "$study/taken.c" ] || gcc -O2 -shared -fPIC -fvisibility=hidden "$study/taken.c" -o "$plugin"
[ $# -gt 0 ] || { sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | grep '^#' >&2; exit 1; }
counts=$(mktemp -d "$TAKEN_WORK/taken.XXXXXX")
trap 'rm -rf "$counts"' EXIT
status=0
# The program gets its own environment: what stands there moves its stack.
env -u TAKEN -u TAKEN_WORK qemu-x86_64 -plugin "$plugin,out=$counts/of" "$@" || status=$?
awk '{ if (!($1 in own)) order[++kinds] = $1; own[$1] += $2; all[$1] += $3 }
    END { printf "%-14s %14s %14s\n", "kind", "own", "all"; for (i = 1; i <= kinds; i++) printf "%-14s %14d %14d\n", order[i], own[order[i]], all[order[i]] }' \
    "$counts"/of.* > "$TAKEN"
exit "$status"
