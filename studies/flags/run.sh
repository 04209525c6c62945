#!/usr/bin/env bash
# Holds Lua 5.4, and the C++ and Rust programs of ../languages, against themselves, as compilers build them with options that change what code looks like: in three
# random orders of everything with each pass that changes code and with the old code trapped, counting, and laid out by the counts.
#
#   run.sh [NAME …]           rows of builds.txt; all of them by default (half an hour of two processors)
#   AFTERLINK=/path/to/afterlink STUDY_WORK=folder run.sh …
#
# README.md's table is made anew when all are run.
set -euo pipefail
shopt -s inherit_errexit
study=$(cd "$(dirname "$0")" && pwd)
AFTERLINK=${AFTERLINK:-$study/../../target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-$study/work}
LIMIT=${LIMIT:-60}
passes=(--pass hot-inlining --pass tail-duplication --pass inlining --pass identical-functions --pass entry-marks)
say() { printf '%s\n' "$*" >&2; }
die() { say "run.sh: $*"; exit 1; }
. "$study/../debian.sh"
[ -x "$AFTERLINK" ] || (cd "$study/../.." && cargo build --release)
mkdir -p "$STUDY_WORK"
cd "$STUDY_WORK"
install_packages build-essential dpkg-dev clang-22 lld-22 llvm-22 libclang-rt-22-dev mold musl-tools
if [ ! -d lua ]; then
    prepare_sources
    unpack_source lua5.4 "$(download_source lua5.4)" lua
fi

# build NAME COMPILER FLAG …: links $1/plain; by the compiler's name it is one of the three programs.
build() {
    local folder=$1 compiler=$2 keep=-Wl,--emit-relocs file
    shift 2
    mkdir -p "$folder"
    case $compiler in
    gcc | clang-22 | musl-gcc)
        local files=()
        for file in lua/src/*.c; do case $file in */luac.c) ;; *) files+=("$file") ;; esac done
        (cd "$folder" && printf '%s\n' "${files[@]/#/../}" | xargs -P "$(nproc)" -I{} "$compiler" -O2 -w -DLUA_USE_LINUX "$@" -c {} &&
            "$compiler" -O2 -w "$@" ./*.o -o plain -Wl,-E -lm -ldl $keep && rm -f ./*.o)
        ;;
    g++ | clang++-22) "$compiler" -O2 -w -std=c++17 "$@" "$study/../languages/program.cc" -o "$folder/plain" -pthread $keep ;;
    rustc) rustc -O -C "link-arg=$keep" -C strip=none "$@" "$study/../languages/program.rs" -o "$folder/plain" ;;
    esac
}

# does PROGRAM FILE: what it says, and how it ends.
does() {
    local status=0
    case $compiler in
    gcc | clang-22 | musl-gcc) timeout "$LIMIT" "$1" "$study/program.lua" > "$2" 2>&1 || status=$? ;;
    *) RUST_BACKTRACE=0 timeout "$LIMIT" "$1" > "$2" 2>&1 || status=$? ;;
    esac
    # Rust numbers threads as the kernel does, and tells of backtraces by the names of parts.
    sed -i -E "s/^(thread '.*') \([0-9]+\)/\1/" "$2"
    echo "exit $status" >> "$2"
}

# same NAME WAY: whether the output of that way does what the program does; counts what could not be proven when it moved.
same() {
    local unproven
    does "./$1/$2" "$1/$2.said"
    cmp -s "$1/plain.said" "$1/$2.said" || found+=("$2 differs")
    unproven=$(grep -o 'left alone *[0-9]* *could not be proven' "$1/$2.log" | grep -o '[0-9]*' || true)
    [ -z "$unproven" ] || found+=("$2: $unproven could not be proven")
}

# hold NAME: sets `moved` and `found`.
hold() {
    local seed
    found=()
    for seed in 1 2 3; do
        if "$AFTERLINK" optimize "$1/plain" --scope all --order-functions random --order-blocks random --split random --seed $seed \
            --trap-old-code "${passes[@]}" -o "$1/random-$seed" > "$1/random-$seed.log" 2>&1; then
            same "$1" "random-$seed"
        else
            found+=("random-$seed: $(grep -o 'error: .*' "$1/random-$seed.log" | head -1)")
        fi
    done
    moved=$(sed -n 's/^functions *\([0-9]* of [0-9]*\) moved/\1/p' "$1/random-1.log")
    rm -f "$1/counters"
    if "$AFTERLINK" instrument "$1/plain" -o "$1/counting" --counters "$PWD/$1/counters" > "$1/counting.log" 2>&1; then
        same "$1" counting
        if "$AFTERLINK" optimize "$1/plain" -p "$1/counters" --trap-old-code -o "$1/optimized" > "$1/optimized.log" 2>&1; then
            same "$1" optimized
        else
            found+=("optimized: $(tail -1 "$1/optimized.log")")
        fi
    else
        found+=("counting: $(tail -1 "$1/counting.log")")
    fi
}

: > rows
status=0
while read -r name compiler flags; do
    case $name in '' | '#'*) continue ;; esac
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    rm -rf "./$name"
    # shellcheck disable=SC2086
    if ! build "$name" "$compiler" $flags > "$name.log" 2>&1; then
        say "$name: not built: $(tail -1 "$name.log")"
        status=1
        continue
    fi
    does "./$name/plain" "$name/plain.said"
    hold "$name"
    [ ${#found[@]} -eq 0 ] && result='the same, five times' || { result=$(IFS=';'; echo "${found[*]}"); status=1; }
    echo "| \`$compiler $flags\` | ${moved:-none} | $result |" | tee -a rows
    rm -f "$name"/{plain,random-?,counting,optimized}
done < "$study/builds.txt"

if [ $# -eq 0 ]; then
    { sed '/^<!-- results -->/q' "$study/README.md"; cat rows; sed -n '/^<!-- end -->/,$p' "$study/README.md"; } > new
    mv new "$study/README.md"
fi
exit $status
