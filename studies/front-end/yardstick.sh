#!/usr/bin/env bash
# Whether the model of a processor's front end (model.c) tells which layout of a program is faster: some twenty layouts of each, short runs of them timed in
# turns, and the very same runs counted by the model.
#
#   yardstick.sh time ROUNDS PROGRAM …    CPU time, runs of a tenth of a second; nothing else should run
#   yardstick.sh count PROGRAM …          the model's events; a quarter of a minute for each layout
#   yardstick.sh tell                     rank correlation of the two, and of one half of the runs with the other
#
#   PROCESSOR      a file beside this one                  (default: zen4)
#   LAYOUTS        names as in model.sh                    (default: those below)
#
# Programs: bc dash duktape gawk hunspell indent jq jsonnet lua m4 mawk mujs perl sed sqlite troff; redis, postgresql and prepared, which is PostgreSQL by a prepared
# statement; both are counted by the 2,000 lookups behind the first hundred. Runs stay in $STUDY_WORK/yardstick/times.tsv, counts in
# $STUDY_WORK/yardstick/counts; timing goes on where it ended. Where things stand is told in programs.sh.
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"
. "$study/layouts.sh"

PROCESSOR=${PROCESSOR:-zen4}
LAYOUTS=${LAYOUTS:-plain default skip=hot-inlining skip=function-alignment align=16 align=32 align=64 share=1 functions=hfsort pass=tail-duplication
    skip=plt-calls skip=adjacent-functions functions=input functions=random,seed=1 functions=random,seed=2 blocks=input blocks=reverse
    blocks=random,seed=3 split=none skip=hot-inlining,align=64 skip=hot-inlining,functions=random,seed=4 bolt-profile2 bolt-cdsplit bolt-extras}
yard=$STUDY_WORK/yardstick
workloads=$study/workloads

# short PROGRAM: sets `command`, a run of about a tenth of a second in which {} is the program.
short() {
    local input=$yard/inputs/$1
    mkdir -p "$yard/inputs"
    case $1 in
    bc)
        sed 's/c(24)/c(21)/; s/110000/36000/; s/< 9000/< 3000/; s/< 40;/< 20;/' "$workloads/numbers.bc" > "$input"
        command=({} -lq "$input")
        ;;
    dash) head -1000 "$STUDY_WORK/text" > "$input"; command=({} "$workloads/words.dash" 4 "$input") ;;
    duktape | mujs)
        { echo "var N = $([ "$1" = mujs ] && echo 8000 || echo 5000);"; cat "$workloads/program.js"; } > "$input"
        command=({} "$input")
        ;;
    hunspell) head -c 60000 "$(input_of hunspell)" > "$input"; command=({} -d en_US -l "$input") ;;
    troff)
        for _ in 1 2 3; do cat "$STUDY_WORK/build/groff/man/groff.7"; done > "$input"
        command=({} -Tutf8 "-F$STUDY_WORK/build/groff/font" "-M$STUDY_WORK/build/groff/tmac" -man "$input")
        ;;
    jsonnet) command=({} -V N=2 "$workloads/services.jsonnet") ;;
    gawk) head -4000 "$STUDY_WORK/text" > "$input"; command=({} -f "$workloads/gawk.awk" "$input") ;;
    indent) for _ in {1..8}; do cat "$STUDY_WORK"/build/indent/src/*.c; done > "$input"; command=({} -st "$input") ;;
    jq) python3 "$workloads/records.py" 4000 > "$input"; command=({} -c -f "$workloads/records.jq" "$input") ;;
    lua) echo "for _ = 1, 3 do dofile('$workloads/lua.lua') end" > "$input"; command=({} "$input") ;;
    m4) command=({} -DN=6000 "$workloads/macros.m4") ;;
    mawk) head -14000 "$(input_of mawk)" > "$input"; command=({} -f "$workloads/mawk.awk" "$input") ;;
    perl) head -8000 "$(input_of perl)" > "$input"; command=({} "$workloads/perl.pl" "$input") ;;
    sed) head -15000 "$(input_of sed)" > "$input"; command=({} -f "$workloads/lines.sed" "$input") ;;
    sqlite) command=({} 60 40) ;;
    redis) command=("$study/redis.sh" {}) ;;
    postgresql) command=(env "STUDY_WORK=$POSTGRESQL" "$study/../postgresql/single.sh" {}) ;;
    prepared) command=(env "STUDY_WORK=$POSTGRESQL" "$study/../postgresql/single.sh" {} prepared) ;;
    *) die "no short run is known of $1" ;;
    esac
}

# lay_out PROGRAM: all its layouts, in $STUDY_WORK/PROGRAM/layouts. llvm-bolt refuses some.
lay_out() {
    local layout
    prepare "$1"
    for layout in $LAYOUTS; do (laid_out "$1" "$layout" > /dev/null) || rm -rf "$STUDY_WORK/$1/layouts/$layout"; done
}

# events LOOKUPS COMMAND …: the model's events of a run. qemu 7.2 ends some of PostgreSQL's, when a timer's signal comes while the model runs: another try.
events() {
    local try
    for try in 1 2 3 4 5; do
        rm -f "$counts".*
        if LOOKUPS=$1 "${@:2}" < /dev/null > "$to.answers"; then
            awk '{ sum[$1] += $2 } END { for (event in sum) printf "%s %d\n", event, sum[event] }' "$counts".* | sort
            return
        fi
    done
    die "$name fails as $layout"
}

count() {
    local folder=$STUDY_WORK/$1/layouts to=$yard/counts/$1 counts=$STUDY_WORK/counts/yard-$1 layout wrapper run
    mkdir -p "$to"
    for layout in $(ls "$folder"); do
        wrapper=(qemu-x86_64 -plugin "$STUDY_WORK/model.so,processor=$study/$PROCESSOR.processor,out=$counts")
        run=("${command[@]/\{\}/$folder/$layout/$base}")
        # Scripts put it in front of their program.
        if [ "${command[0]}" = '{}' ]; then run=("${wrapper[@]}" "${run[@]}"); else run=(env "WRAPPER=${wrapper[*]}" "${run[@]}"); fi
        case $1 in
        postgresql | prepared)
            events 100 "${run[@]}" > "$to.first"
            events 2100 "${run[@]}" | join - "$to.first" | awk '{ print $1, $2 - $3 }' > "$to/$layout"
            rm "$to.first"
            ;;
        *) events "" "${run[@]}" > "$to/$layout" ;;
        esac
        [ -f "$to.expected" ] || cp "$to.answers" "$to.expected"
        cmp "$to.answers" "$to.expected" >&2 || die "$1 answers differently as $layout"
    done
}

[ $# -gt 0 ] || { sed -n '2,/^[^#]/p' "${BASH_SOURCE[0]}" | grep '^#' >&2; exit 1; }
what=$1
shift
mkdir -p "$yard/counts"
case $what in
time)
    rounds=$1
    shift
    set_up
    for name in "$@"; do
        lay_out "$name"
        short "$name"
        "$study/validate.py" measure "$yard/times.tsv" "$name" "$STUDY_WORK/$name/layouts" "$rounds" "${command[@]}"
    done
    ;;
count)
    set_up
    gcc -O3 -march=native -shared -fPIC -fvisibility=hidden "$study/model.c" -o "$STUDY_WORK/model.so"
    for name in "$@"; do
        lay_out "$name"
        short "$name"
        count "$name"
    done
    ;;
tell) "$study/validate.py" tell "$yard/times.tsv" "$yard/counts" "$study/$PROCESSOR.processor" ;;
*) die "no such command: $what" ;;
esac
