#!/usr/bin/env bash
# Three of RocksDB's own tests and the workload with all programs rewritten.
#
#   check.sh [MODE …]      the modes are those of ../check.sh; all of them by default
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
