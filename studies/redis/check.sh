#!/usr/bin/env bash
# Redis's own tests and the workload with its server replaced by a rewritten one.
#
#   check.sh [MODE …]      the modes are those of ../check.sh; all of them by default
#   UNITS="unit/sort unit/geo" check.sh …      other tests than environment.sh names
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
