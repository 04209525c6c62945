#!/usr/bin/env bash
# Does everything that shows a stack show the same one of a program in random order, with random splits? Names, files and lines are compared;
# addresses, and `.cold` for a part of a function, are not.
#
#   reports.sh [SEED …]         default: 1 2 3
. "$(dirname "$0")/environment.sh"
install_packages g++ gdb elfutils valgrind
folder=$STUDY_WORK/reports
mkdir -p "$folder/program"
cd "$folder"

g++ -O2 -g -rdynamic -Wl,--emit-relocs "$study/reports.cc" -o reports.plain -lbacktrace
rustc --edition 2021 -C opt-level=2 -C debuginfo=2 -C link-arg=-Wl,--emit-relocs "$study/panics.rs" -o panics.plain

# Without addresses, sizes, numbers of processes, and names of parts.
bare() {
    sed -E 's/0x[0-9a-f]+/X/g; s/\+X\)?/+X/g; s/\.(cold|warm|rest|inlined)//g; s/==[0-9]+==/==/; s/\(TID [0-9]+\)|LWP [0-9]+|Thread [0-9X.]+|TID [0-9]+|main. \([0-9]+\)/T/g;
        s/\[X\]//; s/^ *([0-9]+): +X - /\1: /; s/core\.[0-9]+|PID [0-9]+|X in //g'
}

by_itself() { ./program/reports; }
by_rust() { RUST_BACKTRACE=full ./program/panics 2>&1; }
# Names alone, and of inlined calls none: valgrind 3.19 looks for both in the section `.text` only, and half of the blocks are in `.text.cold`.
by_memcheck() {
    BREAK_MEMORY=1 valgrind --quiet --num-callers=20 ./program/reports 2>&1 > unused | sed -E 's/^==[0-9]+== *//; s/ \((in )?[^ ]*\)$//' |
        awk '{ at = ""; if (match($0, /0x[0-9A-F]+: /)) at = substr($0, RSTART, RLENGTH)
               if (NR > 1 && (at == "" || at != before)) print last
               before = at; last = $0; sub(/0x[0-9A-F]+: /, "", last); sub(/^by /, "at ", last) } END { print last }'
}
dump_core() { rm -f core.dump; gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'run abort' -ex 'generate-core-file core.dump' ./program/reports > unused 2>&1; }
by_gdb_of_core() { dump_core; gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'bt full' ./program/reports core.dump 2> unused | sed '/^#0/,$!d'; }
# Not below `main`: elfutils gives the start-up code, which has no lines, those of whatever lies in front of it.
by_eu_stack_of_core() { eu-stack -i -s --core=core.dump --executable=./program/reports 2> unused | sed '/ _start$/,$d'; }
by_catch_throw() { gdb -q -nx -batch -x "$folder/throw.gdb" ./program/reports 2> unused | sed '/^#/!d'; }
by_watchpoint() { gdb -q -nx -batch -x "$folder/watch.gdb" ./program/reports 2> unused | sed '/^#\|^Old\|^New/!d'; }

{ printf 'set %s\n' 'pagination off' 'width 0' 'debuginfod enabled off'; printf '%s\n' 'catch throw' run; for _ in $(seq 12); do printf '%s\n' 'bt' continue; done; } > throw.gdb
{ printf 'set %s\n' 'pagination off' 'width 0' 'debuginfod enabled off'; printf '%s\n' 'watch watched' run; for _ in $(seq 60); do printf '%s\n' 'bt' continue; done; } > watch.gdb

ask() { # NAME: what every tool says of the programs in program/
    local tool
    for tool in by_itself by_rust by_memcheck by_gdb_of_core by_eu_stack_of_core by_catch_throw by_watchpoint; do
        "$tool" 2>&1 | bare > "$1.$tool" || true
    done
}

cp reports.plain program/reports
cp panics.plain program/panics
ask plain
failures=0
printf '%-22s %8s' tool lines
seeds=("$@")
[ "$#" -gt 0 ] || seeds=(1 2 3)
for seed in "${seeds[@]}"; do
    printf ' %12s' "seed $seed"
    for name in reports panics; do
        "$AFTERLINK" optimize "$name.plain" -o "program/$name" "${everything_moved[@]}" --seed "$seed" > "$name.$seed.log"
        grep -q 'follows the code' "$name.$seed.log" || die "$folder/$name.$seed.log says that debug information was left"
    done
    ask "random-$seed"
done
echo
for tool in by_itself by_rust by_memcheck by_gdb_of_core by_eu_stack_of_core by_catch_throw by_watchpoint; do
    printf '%-22s %8d' "$tool" "$(wc -l < "plain.$tool")"
    [ "$(wc -l < "plain.$tool")" -gt 5 ] || { failures=$((failures + 1)); printf ' nothing was said'; }
    for seed in "${seeds[@]}"; do
        found=$(diff "plain.$tool" "random-$seed.$tool" | grep -c '^[<>]' || true)
        printf ' %12s' "$found differ"
        [ "$found" -eq 0 ] || failures=$((failures + 1))
    done
    echo
done
[ "$failures" -eq 0 ] || die "differences; see $folder"
