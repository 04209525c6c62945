#!/usr/bin/env bash
# Measures what afterlink makes of the compiler, beside BOLT 22.
#
#   measure.sh [EXPERIMENT …]      layout by default
#     layout      instruction-cache misses and taken branches while it compiles what the profile knows, and what it does not; simulated
#     moved       how many of the instructions that it executes meanwhile are in functions that can move (callgrind)
#     growth      seconds of processor time and memory of `optimize --scope all` and `instrument`, by the size of the program
#     tool        the same beside BOLT, of the smaller program of growth that BOLT has the memory for
#
#   REPEATS=3                      runs of each side in growth and tool
#   SIZES="15 30 60 120"           MB of code in growth; TOOL_SIZE=60 in tool
#
# Each prints a table and writes $RESULTS/EXPERIMENT.tsv.
. "$(dirname "$0")/environment.sh"

REPEATS=${REPEATS:-3}
SIZES=${SIZES:-15 30 60 120}
TOOL_SIZE=${TOOL_SIZE:-60}
TOOLS=${TOOLS:-afterlink bolt-profile2 bolt-cdsplit}
LEVEL=${LEVEL:-0}
llvm=/usr/lib/llvm-22

# compile PROGRAM INPUT [WRAPPER …]: the object file must be the plain compiler's.
compile() {
    local program=$1 input=$2 name
    shift 2
    name=$(basename "$input")
    set_arguments "$input" "$STUDY_WORK/measured.o" "$LEVEL"
    "$@" "$program" "${arguments[@]}" > "$logs/compile.out" 2> "$logs/compile.err" || { tail "$logs/compile.err" >&2; die "$program failed"; }
    [ -s "$STUDY_WORK/$name.o" ] || cp "$STUDY_WORK/measured.o" "$STUDY_WORK/$name.o"
    cmp "$STUDY_WORK/measured.o" "$STUDY_WORK/$name.o" >&2 || die "$program compiles $name differently"
}

# by_profile TOOL: prints the path of the compiler that TOOL made by afterlink's profile of $trained.
by_profile() {
    local fdata=$STUDY_WORK/trained.fdata out=$STUDY_WORK/by-$1
    if [ ! -s "$fdata" ]; then
        rm -f "$STUDY_WORK/trained.counters"
        "$AFTERLINK" instrument "$plain" -o "$STUDY_WORK/counting" --counters "$STUDY_WORK/trained.counters" > "$logs/instrument.log"
        compile "$STUDY_WORK/counting" "$trained"
        "$AFTERLINK" profile convert "$STUDY_WORK/trained.counters" -o "$fdata" > "$logs/convert.log"
    fi
    case $1 in
    plain) echo "$plain"; return ;;
    afterlink) command=("$AFTERLINK" optimize "$plain" -o "$out" --profile "$fdata") ;;
    bolt-*)
        command=(llvm-bolt-22 "$plain" -o "$out" -data "$fdata" -reorder-blocks=ext-tsp -reorder-functions=cdsort
            -split-functions "-split-strategy=${1#bolt-}" -split-all-cold)
        ;;
    esac
    [ -s "$out" ] || "${command[@]}" > "$logs/$1.log" 2>&1 || { tail "$logs/$1.log" >&2; die "$1 failed"; }
    echo "$out"
}

# misses PROGRAM INPUT; taken PROGRAM INPUT: jumps inside functions, by callgrind, which knows neither tool.
misses() {
    compile "$1" "$2" valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64 --cachegrind-out-file=/dev/null
    awk '/I1  misses:/ { gsub(",", ""); print $4 }' "$logs/compile.err"
}
taken() {
    compile "$1" "$2" valgrind --tool=callgrind --collect-jumps=yes --dump-instr=yes "--callgrind-out-file=$STUDY_WORK/callgrind"
    awk -F'[=/ ]' '/^jcnd=/ || /^jump=/ { taken += $2 } END { printf "%d\n", taken }' "$STUDY_WORK/callgrind"
}

measure_layout() {
    local tool program
    printf 'layout\tmisses\ttaken\tmisses of another input\n'
    for tool in plain $TOOLS; do
        program=$(by_profile "$tool")
        printf '%s\t%s\t%s\t%s\n' "$tool" "$(misses "$program" "$trained")" "$(taken "$program" "$trained")" \
            "$(misses "$program" "$untrained")"
    done
}

# A refused name that several static functions share counts against all of them.
measure_moved() {
    compile "$plain" "$trained" valgrind --tool=callgrind --demangle=no "--callgrind-out-file=$STUDY_WORK/callgrind"
    callgrind_annotate --threshold=100 "$STUDY_WORK/callgrind" |
        sed -n "s#^ *\([0-9,]*\) (.*) *[^ ]*:\([^ ]*\) \[.*/compiler\].*#\1 \2#p" | tr -d , | sed "s/'[0-9]*\$//" > "$logs/executed"
    "$AFTERLINK" info "$plain" --json | jq -r '.refused[].functions[].name' | sort -u > "$logs/refused"
    printf 'instructions\tof the program\tin functions that move\n'
    awk -v list="$logs/refused" 'BEGIN { while ((getline name < list) > 0) refused[name] }
        { all += $1; if (!($2 in refused)) moved += $1 }
        END { printf "%.0f\t100 %%\t%.4f %%\n", all, all ? 100 * moved / all : 0 }' "$logs/executed"
}

# sized MEGABYTES: prints the path of a program of whole libraries of LLVM and clang with about so much code. It does not run.
sized() {
    local out=$STUDY_WORK/sized-$1 library libraries=() bytes=0 size
    if [ ! -s "$out" ]; then
        for library in "$llvm"/lib/libLLVM*.a "$llvm"/lib/libclang*.a; do
            size=$(size -A "$library" 2> /dev/null | awk '/^\.text/ { sum += $2 } END { printf "%d", sum }')
            [ $((bytes + size)) -le $(($1 * 1000000)) ] || continue
            bytes=$((bytes + size))
            libraries+=("$library")
        done
        echo 'int main() {}' | clang++-22 -x c++ - -x none -fuse-ld=lld -Wl,--emit-relocs -Wl,--whole-archive "${libraries[@]}" \
            -Wl,--no-whole-archive -Wl,--unresolved-symbols=ignore-all -Wl,--allow-multiple-definition -o "$out" 2> "$logs/sized.log" ||
            die "see $logs/sized.log"
    fi
    echo "$out"
}

# cost COMMAND …: prints the median of REPEATS runs: "SECONDS PROCESSOR-SECONDS KILOBYTES".
cost() {
    local round
    for round in $(seq "$REPEATS"); do
        /usr/bin/time -f '%e %U %S %M' "$@" 2>&1 > "$logs/timed.log" | tail -1
    done | awk '{ print $1, $2 + $3, $4 }' | sort -n | awk '{ row[NR] = $0 } END { print row[int((NR + 1) / 2)] }'
}

code_megabytes() { size -A "$1" | awk '/^\.text/ { sum += $2 } END { printf "%.1f", sum / 1e6 }'; }

measure_growth() {
    local size program out=$STUDY_WORK/timed job
    printf 'job\tMB\tseconds\tprocessor\tkB\tprocessor/MB\tkB/MB\n'
    for size in $SIZES; do
        program=$(sized "$size")
        for job in optimize instrument; do
            command=("$AFTERLINK" "$job" "$program" -o "$out")
            [ "$job" = instrument ] || command+=(--scope all)
            cost "${command[@]}" | awk -v job="$job" -v mb="$(code_megabytes "$program")" \
                '{ printf "%s\t%s\t%s\t%.2f\t%d\t%.4f\t%.0f\n", job, mb, $1, $2, $3, $2 / mb, $3 / mb }'
        done
    done
}

measure_tool() {
    local program out=$STUDY_WORK/timed
    program=$(sized "$TOOL_SIZE")
    printf 'job\ttool\tseconds\tprocessor\tkB\n'
    tool_row 'layout of all' afterlink "$AFTERLINK" optimize --scope all "$program" -o "$out"
    tool_row 'layout of all' bolt llvm-bolt-22 "$program" -lite=0 -reorder-functions=random -o "$out"
    tool_row counters afterlink "$AFTERLINK" instrument "$program" -o "$out"
    tool_row counters bolt llvm-bolt-22 "$program" -instrument "-instrumentation-file=$STUDY_WORK/unused" -o "$out"
}
tool_row() { # JOB TOOL COMMAND …
    printf '%s\t%s\t%s\n' "$1" "$2" "$(cost "${@:3}" | tr ' ' '\t')"
}

install_packages valgrind time jq bolt-22
need_build
need_afterlink
rm -f "$STUDY_WORK"/*.i*.o
experiments=("$@")
[ "${#experiments[@]}" -gt 0 ] || experiments=(layout)
for experiment in "${experiments[@]}"; do
    case $experiment in
    layout | moved | growth | tool) "measure_$experiment" | tee "$RESULTS/$experiment.tsv" ;;
    *) die "no such experiment: $experiment" ;;
    esac
done
