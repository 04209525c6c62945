#!/usr/bin/env bash
# What llvm-bolt's passes over instructions bring, each alone, beside its layout without them: instructions that are gone or dearer, and CPU time.
#
#   extras.sh PROGRAM PROFILE FOLDER      makes FOLDER/LAYOUT/PROGRAM, and says what llvm-bolt says of each
#   ./validate.py measure runs.tsv NAME FOLDER ROUNDS COMMAND … && ./validate.py against runs.tsv base
set -euo pipefail

[ $# -eq 3 ] || { sed -n '2,/^[^#]/p' "${BASH_SOURCE[0]}" | grep '^#' >&2; exit 1; }
plain=$1 profile=$2 folder=$3
base=$(basename "$plain")
layout=(-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-all-cold -split-strategy=profile2)
declare -A extras=(
    [base]=''
    [promotion]='-indirect-call-promotion=calls'
    [promotion-inlined]='-indirect-call-promotion=calls -inline-small-functions'
    [frames-hot]='-frame-opt=hot'
    [frames-all]='-frame-opt=all'
    [shorter]='-peepholes=all -simplify-rodata-loads'
    [three-way]='-three-way-branch'
)
mkdir -p "$folder/plain"
cp "$plain" "$folder/plain/$base"
for name in "${!extras[@]}"; do
    mkdir -p "$folder/$name"
    # shellcheck disable=SC2086
    llvm-bolt-22 "$plain" -data "$profile" "${layout[@]}" ${extras[$name]} -o "$folder/$name/$base" > "$folder-$name.log" 2>&1 ||
        { echo "see $folder-$name.log" >&2; exit 1; }
done
grep -hE 'Total indirect calls|total number of calls|calls that are indirect' "$folder-promotion.log"
grep -hE 'Shrink wrapping reduced' "$folder-frames-all.log"
