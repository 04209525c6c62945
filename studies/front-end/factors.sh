#!/usr/bin/env bash
# What each choice of a layout does to a program's CPU time: 64 layouts, all by one profile, that have every combination of the choices, timed in turns. Of one
# layout nobody can tell whether a choice made it fast or an accident; of 32 pairs that differ in that choice alone one can.
#
#   factors.sh PROGRAM ROUNDS COMMAND …     a program of programs.sh; in COMMAND, {} is the program, one run of some tenths of a second
#
#   factors.sh lua 10 {} workloads/lua-longer.lua
#
# ALIGNMENTS, "2 16 32 64" if nobody says otherwise, are those of all hot functions; "own packed" leaves it to the pass function-alignment, or leaves that out.
# DUPLICATION ("no yes") and SHARES ("1 0.98") are the other choices that can be narrowed.
# Wants a machine on which nothing else runs. Runs stay in $STUDY_WORK/PROGRAM/factors.tsv; measuring goes on where they end.
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"

LAYING=${LAYING:-$repository/target/release/examples/layouts}
[ $# -ge 3 ] || { sed -n '2,/^[^#]/p' "${BASH_SOURCE[0]}" | grep '^#' >&2; exit 1; }
name=$1 rounds=$2
shift 2
set_up
prepare "$name"
folder=$STUDY_WORK/$name/factors
layouts=()
for order in cdsort hfsort; do for share in ${SHARES:-1 0.98}; do for align in ${ALIGNMENTS:-2 16 32 64}; do for inlining in no yes; do for duplication in ${DUPLICATION:-no yes}; do
    layout=share=$share
    case $align in own) ;; packed) layout+=,skip=function-alignment ;; *) layout+=,align=$align ;; esac
    [ $order = cdsort ] || layout+=,functions=$order
    [ $inlining = yes ] || layout+=,skip=hot-inlining
    [ $duplication = no ] || layout+=,pass=tail-duplication
    layouts+=("$layout")
done; done; done; done; done
mkdir -p "$folder/plain"
cp "$STUDY_WORK/$name/plain/$base" "$folder/plain/$base"
"$LAYING" "$folder/plain/$base" "$STUDY_WORK/$name/$TRAINING.fdata" "$folder" "${layouts[@]}" > "$STUDY_WORK/$name/layout.log" 2>&1 ||
    die "see $STUDY_WORK/$name/layout.log"
"$study/validate.py" measure "$STUDY_WORK/$name/factors.tsv" "$name" "$folder" "$rounds" "$@"
"$study/validate.py" factors "$STUDY_WORK/$name/factors.tsv"
