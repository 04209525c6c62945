#!/usr/bin/env bash
# How many pages of its code a program touches: as linked, laid out by afterlink, and by BOLT, all by one profile, which afterlink's
# counters made of the run that is measured. Counted under qemu-user by a plugin (touched.c), the program's own code alone.
#
#   pages.sh [PROGRAM …]     bzip2 gzip xz gawk lua tcl memcached redis sqlite postgresql python; all by default
#
#   FLAGS          of `optimize`, for trials
#   TOOLS          (default: plain afterlink bolt-profile2 bolt-cdsplit)
# Where things stand is told in programs.sh.
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"

TOOLS=${TOOLS:-plain afterlink bolt-profile2 bolt-cdsplit}
FLAGS=${FLAGS:-}
all="bzip2 gzip xz gawk lua tcl memcached redis sqlite postgresql python"

# laid_out PROGRAM TOOL OUT
laid_out() {
    local plain=$STUDY_WORK/$1/plain/$base profile=$STUDY_WORK/$1/$TRAINING.fdata
    case $2 in
    afterlink) "$AFTERLINK" optimize "$plain" --profile "$profile" -o "$3" $FLAGS ;;
    bolt-*)
        llvm-bolt-22 "$plain" -o "$3" -data "$profile" -reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions \
            "-split-strategy=${2#bolt-}" -split-all-cold
        ;;
    esac
}

# count PROGRAM TOOL: a line of the table.
count() {
    local folder=$STUDY_WORK/$1 file=$STUDY_WORK/$1/$2/$base counts=$STUDY_WORK/counts/$1-$2
    if [ "$2" != plain ]; then
        mkdir -p "$folder/$2"
        rm -f "$file"
        laid_out "$1" "$2" "$file" > "$folder/$2.log" 2>&1 || die "see $folder/$2.log"
    fi
    rm -f "$counts".*
    work "$1" "$file" qemu-x86_64 -plugin "$STUDY_WORK/touched.so,out=$counts" > "$folder/$2.answers"
    cmp "$folder/$2.answers" "$folder/plain.answers" >&2 || die "$file answers differently"
    python3 "$study/touched.py" "$file" "$counts" "$1 $2"
}

[ $# -gt 0 ] || set -- $all
set_up
gcc -O2 -shared -fPIC -fvisibility=hidden "$study/touched.c" -o "$STUDY_WORK/touched.so"
printf '%-28s %7s %7s %7s %9s\n' program pages often lines bytes
for name in "$@"; do
    prepare "$name"
    for tool in $TOOLS; do count "$name" "$tool"; done
done
