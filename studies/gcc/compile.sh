#!/usr/bin/env bash
# One test of check.sh: prints the sum of what the compilers in a folder make of a file, with the exit code, the file, and the level.
#
#   compile.sh FOLDER INPUT LEVEL
. "$(dirname "$0")/environment.sh"

program=$1/cc1
case $2 in *.ii) program=$1/cc1plus ;; esac
flags=("-O$3")
[ "$3" != g ] || flags=(-O1 -g)
status=0
made=$("$program" -quiet -fpreprocessed "${flags[@]}" "$2" -o - | sha256sum) || status=$?
printf '%s:%s %s-%s\n' "${made%% *}" "$status" "$(basename "$2")" "$3"
