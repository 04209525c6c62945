#!/usr/bin/env bash
# The same as sqlite.sh of a C++ program: the interpreter of the configuration language Jsonnet, of the sources that the crate jsonnet-sys bundles, on site.jsonnet.
#
#   jsonnet.sh [exact|shares|seeds|second|cost …]
. "$(dirname "$0")/../sqlite/environment.sh"
. "$(dirname "$0")/shares.sh"

results=${RESULTS:-$work/jsonnet}
program=$results/jsonnet
site=$stacks/site.jsonnet
arguments=(-V size=1 "$site")
long_arguments=(-V size=8 "$site")
longest_arguments=(-V size=15 "$site")
every=${EVERY:-9500}

fetch_jsonnet() {
    [ ! -d "$results/vendor/jsonnet-sys" ] || return 0
    mkdir -p "$results/src"
    touch "$results/src/lib.rs"
    printf '[package]\nname = "jsonnet-source"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\njsonnet-sys = "=0.17.0"\n[workspace]\n' > "$results/Cargo.toml"
    (cd "$results" && cargo vendor --quiet vendor > vendor.log 2>&1) || { cat "$results/vendor.log" >&2; die 'cargo vendor failed'; }
}

build_jsonnet() {
    local from=$results/vendor/jsonnet-sys/jsonnet file objects=()
    [ ! -f "$program" ] || return 0
    mkdir -p "$results/objects"
    python3 -c 'import sys; print(*sys.stdin.buffer.read(), 0, sep=",")' < "$from/stdlib/std.jsonnet" > "$results/objects/std.jsonnet.h"
    for file in core/{desugarer,formatter,lexer,libjsonnet,parser,pass,static_analysis,string_utils,vm} third_party/md5/md5 cmd/{jsonnet,utils}; do
        objects+=("$results/objects/$(basename "$file").o")
        [ -f "${objects[-1]}" ] || g++ -O2 -std=c++17 -I"$results/objects" -I"$from/include" -I"$from/core" -I"$from/third_party/md5" -I"$from/third_party/json" -c "$from/$file.cpp" -o "${objects[-1]}"
    done
    g++ "${objects[@]}" -o "$program" -Wl,--emit-relocs
}

prepare_shares
command -v g++ > /dev/null || install_packages g++
fetch_jsonnet
build_jsonnet
build_afterlink
[ $# -gt 0 ] || set -- shares seeds second cost
for part in "$@"; do "$part"; done
