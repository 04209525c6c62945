#!/usr/bin/env bash
# DuckDB's tests of its Rust interface, and the workload, with both programs rewritten.
#
#   check.sh [MODE …]      the modes are those of ../check.sh; all of them by default
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
