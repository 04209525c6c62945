#!/usr/bin/env bash
# What counting the targets of indirect calls costs, and what it is worth:
#
#   targets.sh PROGRAM …
#
# For each program: instructions as linked, counting without targets, and counting with them; and instruction-cache misses
# (32 KiB, 8-way) as linked, and laid out by either profile. Programs and workloads are those of programs.sh.
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"

# simulated PROGRAM FILE TOOL [OPTION …]: runs the workload under a tool of valgrind; its answers and logs stand in $folder.
simulated() {
    rm -f "$folder"/log.*
    chmod 777 "$folder"
    work "$1" "$2" valgrind "--tool=$3" "--$3-out-file=/dev/null" "--log-file=$folder/log.%p" "${@:4}" > "$folder/answers"
    cmp "$folder/answers" "$folder/answers.plain" >&2 || die "$2 answers differently"
}

# sum PATTERN: of what the logs say behind it.
sum() { cat "$folder"/log.* | awk -v pattern="$1" '$0 ~ pattern { gsub(",", ""); sum += $NF } END { printf "%d\n", sum }'; }

set_up
printf '%-12s %-10s %14s %14s\n' program targets instructions misses
for name in "$@"; do
    folder=$STUDY_WORK/targets-of-$name
    mkdir -p "$folder/plain" "$folder/no" "$folder/yes"
    plain=$(plain_of "$name")
    [ -x "$plain" ] || { source_of "$(package_of "$name")"; build "$name" > "$STUDY_WORK/build/$name.log" 2>&1; }
    base=$(basename "$plain")
    work "$name" "$plain" env > "$folder/answers.plain"
    simulated "$name" "$plain" callgrind
    counted=$(sum 'Collected')
    simulated "$name" "$plain" cachegrind --cache-sim=yes --I1=32768,8,64
    printf '%-12s %-10s %14d %14d\n' "$name" - "$counted" "$(sum 'I1 *misses')"
    for targets in no yes; do
        counters=$STUDY_WORK/counts/targets-$name-$targets
        options=()
        [ $targets = yes ] || options=(--no-targets)
        rm -f "$counters" "$folder/$targets/$base"
        "$AFTERLINK" instrument "$plain" -o "$folder/$targets/$base" --counters "$counters" "${options[@]}" > "$folder/instrument.log"
        simulated "$name" "$folder/$targets/$base" callgrind
        counted=$(sum 'Collected')
        "$AFTERLINK" profile convert "$counters" -o "$folder/$targets.fdata" > "$folder/convert.log"
        "$AFTERLINK" optimize "$plain" --profile "$folder/$targets.fdata" -o "$folder/$targets/$base" > "$folder/optimize.log"
        simulated "$name" "$folder/$targets/$base" cachegrind --cache-sim=yes --I1=32768,8,64
        printf '%-12s %-10s %14d %14d\n' "$name" $targets "$counted" "$(sum 'I1 *misses')"
    done
done
