#!/usr/bin/env bash
# CPython's own tests, and the benchmark, with its library replaced by a rewritten one.
#
#   check.sh [MODE …]                          the modes are those of ../check.sh; all of them by default
#   TESTS="test_re test_json" check.sh …       other tests than those of environment.sh
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
