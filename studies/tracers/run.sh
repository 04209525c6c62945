#!/usr/bin/env bash
# Programs that are traced or profiled from inside, held against themselves in random orders with the old code trapped, with code in place of
# calls and without, and counting.
#
#   run.sh [NAME …]           xray libunwind gperftools; all of them by default
#   AFTERLINK=/path/to/afterlink run.sh …
#
# XRay patches its sleds while the program runs. libunwind walks the stack after every single instruction. gperftools unwinds
# from its timer's signals; what it writes is not looked at, only that the program runs on and prints the same.
set -euo pipefail
shopt -s inherit_errexit
study=$(cd "$(dirname "$0")" && pwd)
work=$study/work
mkdir -p "$work"
cd "$work"
AFTERLINK=${AFTERLINK:-$study/../../target/release/afterlink}
[ -x "$AFTERLINK" ] || (cd "$study/../.." && cargo build --release)
cases=$study/../../tests/cases

declare -A packages=([xray]="clang-22 libclang-rt-22-dev" [libunwind]="gcc libunwind-dev"
    [gperftools]="gcc libgoogle-perftools-dev")

install() {
    local missing=() package
    for package in ${packages[$1]}; do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "installing ${missing[*]}" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build NAME FLAG …
build() {
    local flags=(-O2 -Wl,--emit-relocs "-I$cases" "${@:2}")
    case $1 in
    xray) clang-22 "${flags[@]}" -fxray-instrument -fxray-instruction-threshold=1 "$study/xray.c" -o xray ;;
    libunwind) gcc "${flags[@]}" -rdynamic -DLIBUNWIND "$cases/backtrace_signal/main.c" -o libunwind -lunwind ;;
    gperftools) gcc "${flags[@]}" "$study/profiled.c" -o gperftools -Wl,--no-as-needed -lprofiler ;;
    *) echo "no such tracer: $1" >&2 && exit 2 ;;
    esac
}

run() {
    CPUPROFILE=$work/$1.profile CPUPROFILE_FREQUENCY=4000 "./$1" 2>/dev/null
}

same() {
    run "$2" >"$2.out" && cmp "$1.out" "$2.out" || { echo "$1: $2 differs" >&2; return 1; }
}

check() {
    local seed switch
    run "$1" >"$1.out"
    for seed in 1 2 3; do
        for switch in --skip-pass --pass; do
            "$AFTERLINK" optimize "$1" --scope all --order-functions random --order-blocks random --split random \
                --seed $seed --trap-old-code $switch hot-inlining -o "$1.random" >/dev/null
            same "$1" "$1.random"
        done
    done
    rm -f "$1.counted.counters"
    "$AFTERLINK" instrument "$1" -o "$1.counted" >/dev/null
    same "$1" "$1.counted"
}

names=("$@")
[ $# -gt 0 ] || names=(xray libunwind gperftools)
for name in "${names[@]}"; do
    install "$name"
    for position in -pie -no-pie; do
        build "$name" "-f${position#-}" "$position"
        check "$name"
        echo "$name, $position: the same in three random orders, and while it counts"
    done
done
