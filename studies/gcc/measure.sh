#!/usr/bin/env bash
# Measures what afterlink makes of GCC's C++ compiler, beside BOLT 22: the experiments and settings are those of ../measure.sh.
. "$(dirname "$0")/environment.sh"
. "$study/../measure.sh"
