#!/usr/bin/env bash
# One run of Redis's server, for timing it without its client: 168,000 commands of studies/redis, one behind the other in a pipe. The client is nobody's child
# here, so the CPU time of this script is the server's.
#
#   redis.sh PROGRAM
#
# REDIS is where studies/redis has left its build; WRAPPER, if it is set, a tool to run the server under.
set -euo pipefail
study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REDIS=${REDIS:-$study/../redis/work}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
read -ra wrapper <<< "${WRAPPER:-}"
commands=$REDIS/commands-of-a-pipe
if [ ! -s "$commands" ]; then
    for _ in 1 2 3 4; do awk -f "$study/../redis/commands.awk"; done > "$commands"
    echo 'SHUTDOWN NOSAVE' >> "$commands"
fi
(cd "$folder" && exec "${wrapper[@]}" "$1" --port 0 --unixsocket "$folder/socket" --save '' --hz 1 --dynamic-hz no --logfile "$folder/log" > /dev/null 2>&1) &
server=$!
# Waits without a child of its own.
exec 9<> <(:)
until [ -S "$folder/socket" ]; do read -rt 0.01 -u 9 || true; done
(setsid "$REDIS/build/src/redis-cli" -s "$folder/socket" --pipe < "$commands" > /dev/null 2>&1 &)
wait "$server"
