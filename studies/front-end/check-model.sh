#!/usr/bin/env bash
# Whether the model counts what it must of loops whose events can be told beforehand: `jumps` jumps, so many bytes apart, 1,000 times around, on Zen 4.
#
#   check-model.sh           prints a line a claim; ends with 1 if one does not hold
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -shared -fPIC -fvisibility=hidden "$study/model.c" -o "$work/model.so"
failed=0

# measure: assembles what it reads, and leaves the events of its run in $work/events.
measure() {
    cat > "$work/loop.s"
    gcc -nostdlib -static "$work/loop.s" -o "$work/loop"
    rm -f "$work"/out.*
    qemu-x86_64 -plugin "$work/model.so,processor=$study/zen4.processor,out=$work/out" "$work/loop"
    cat "$work"/out.* > "$work/events"
}

# run JUMPS DISTANCE: leaves the events in $work/events.
run() {
    {
        printf '.globl _start\n_start: mov $1000, %%ecx\n.balign 4096\nfirst:\n'
        for ((i = 0; i < $1; i++)); do printf '.balign %d\nb%d: jmp b%d\n' "$2" "$i" "$((i + 1))"; done
        printf '.balign %d\nb%d: dec %%ecx\njnz first\nmov $60, %%eax\nxor %%edi, %%edi\nsyscall\n' "$2" "$1"
    } | measure
}

# claim WHAT EVENT LEAST MOST
claim() {
    local found
    found=$(awk -v event="$2" '$1 == event { print $2 }' "$work/events")
    if [ "$found" -ge "$3" ] && [ "$found" -le "$4" ]; then
        echo "holds   $1: $2 $found"
    else
        echo "FAILS   $1: $2 $found, not $3 to $4"
        failed=1
    fi
}

run 100 64
claim 'every jump is taken' taken 100999 101000
claim '101 lines fit everywhere' opcache_miss 90 210
claim '101 lines fit everywhere' icache_miss 50 110
claim '101 lines fit everywhere' btb1_miss 0 10
claim 'each branch is new once' btb2_miss 90 110
run 2000 64
claim '2,001 entries go round in 768' opcache_miss 2000000 2002100
claim '2,001 lines go round in 512, every second one is prefetched' icache_miss 990000 1010000
claim '2,001 branches go round in 1,536' btb1_miss 1990000 2001000
claim 'the second level has them' btb2_miss 1990 2100
claim 'the second cache has them' l2_miss 900 1100
run 100 4096
claim '101 pages go round in 64' itlb1_miss 100000 101100
claim 'the second level has them' itlb2_miss 90 110
# 1,000 jumps, two lines apart, each of which asks for the line of the next but one, 1,000 times around.
{
    printf '.globl _start\n_start: mov $1000, %%ecx\n.balign 4096\nfirst:\n'
    for ((i = 0; i < 1000; i++)); do printf '.balign 128\nb%d: .byte 0x0f, 0x18, 0x3d\n.long b%d - . - 4\njmp b%d\n' "$i" "$(((i + 2) % 1000))" "$((i + 1))"; done
    printf '.balign 128\nb1000: dec %%ecx\njnz first\nmov $60, %%eax\nxor %%edi, %%edi\nsyscall\n'
} | measure
claim '1,000 lines go round in the 256 of every second set' prefetched_missing 990000 1000000
claim 'each is there when control comes to it' line_miss 1000 3010
exit "$failed"
