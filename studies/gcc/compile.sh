#!/usr/bin/env bash
# One test of check.sh: prints the sum of what the compilers in a folder make of a file, with the exit code, the file, and the level.
#
#   compile.sh FOLDER INPUT LEVEL
. "$(dirname "$0")/environment.sh"

status=0
made=$(compiled "$1" "$2" "$3" | sha256sum) || status=$?
printf '%s:%s %s-%s\n' "${made%% *}" "$status" "$(basename "$2")" "$3"
