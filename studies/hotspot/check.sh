#!/usr/bin/env bash
# Tests of OpenJDK's own for the virtual machine, and the workload, with its library replaced by a rewritten one.
#
#   check.sh [MODE …]               the modes are those of ../check.sh; all of them by default
#   TESTS="compiler/c2 gc/g1" check.sh …     other tests than those of environment.sh
. "$(dirname "$0")/environment.sh"
. "$study/../check.sh"
