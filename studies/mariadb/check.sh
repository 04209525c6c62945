#!/usr/bin/env bash
# MariaDB's own tests and the workload with its server replaced by a rewritten one.
#
#   check.sh [MODE …]      the modes are those of ../check.sh; all of them by default
#   SUITES=main check.sh …     other suites than environment.sh names
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
