#!/usr/bin/env bash
# What GCC's compilers make of their own files and libraries, with the compilers replaced by rewritten ones: each assembly file must be the same.
#
#   check.sh [MODE …]      the modes are those of ../check.sh; all of them by default
#   LEVELS="2"             of optimization; g is -O1 with debug information
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
