#!/bin/sh
# Renews orders.txt: random graphs, and how LLVM 22 lays them out. Needs clang++-22 and llvm-22-dev.
set -e
cd "$(dirname "$0")"
oracle=$(mktemp)
trap 'rm -f "$oracle"' EXIT
clang++-22 -O2 $(llvm-config-22 --cxxflags) oracle.cpp -o "$oracle" $(llvm-config-22 --ldflags --libs)
cargo run --quiet --example dump_graphs | "$oracle" > orders.txt
