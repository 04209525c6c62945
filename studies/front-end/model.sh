#!/usr/bin/env bash
# What the front end of a processor does with a program in several layouts, all by one profile, which afterlink's counters made of the run that is
# measured: by a model (model.c), under qemu-user.
#
#   model.sh [PROGRAM …]     gawk lua ninja sqlite redis by default; any of programs.sh
#
#   LAYOUTS        plain, settings of the example `layouts` (default, align=16, share=1, …), bolt-profile2, bolt-cdsplit, bolt-extras
#   PROCESSOR      a file beside this one                  (default: zen4)
#
# Counts stay in $STUDY_WORK/model/PROGRAM/LAYOUT, a line an event. Where things stand is told in programs.sh.
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"
. "$study/layouts.sh"

PROCESSOR=${PROCESSOR:-zen4}
LAYOUTS=${LAYOUTS:-plain default align=16 align=32 align=64 share=1 share=0.98 share=1,align=64 pass=plt-calls bolt-profile2 bolt-cdsplit bolt-extras}
all="gawk lua ninja sqlite redis"

# count PROGRAM LAYOUT: the events of its run, all processes together.
count() {
    local file counts=$STUDY_WORK/counts/model-$1 to=$STUDY_WORK/model/$1
    mkdir -p "$to"
    file=$(laid_out "$1" "$2")
    rm -f "$counts".*
    work "$1" "$file" qemu-x86_64 -plugin "$STUDY_WORK/model.so,processor=$study/$PROCESSOR.processor,out=$counts" > "$to/$2.answers"
    [ "$2" = plain ] || cmp "$to/$2.answers" "$to/plain.answers" >&2 || die "$file answers differently"
    cat "$counts".* | awk '{ sum[$1] += $2 } END { for (event in sum) printf "%s %d\n", event, sum[event] }' | sort > "$to/$2"
}

[ $# -gt 0 ] || set -- $all
set_up
gcc -O3 -march=native -shared -fPIC -fvisibility=hidden "$study/model.c" -o "$STUDY_WORK/model.so"
columns="cycles taken opcache_miss icache_miss line_miss btb1_miss btb2_miss itlb1_miss itlb2_miss l2_miss instructions"
printf 'program layout %s\n' "$columns"
for name in "$@"; do
    prepare "$name"
    for layout in $LAYOUTS; do
        count "$name" "$layout"
        awk -v columns="$columns" -v row="$name $layout" '{ of[$1] = $2 } END {
            count = split(columns, names)
            for (i = 1; i <= count; i++) row = row " " of[names[i]] + 0
            print row
        }' "$STUDY_WORK/model/$name/$layout"
    done
done
