# Sourced by pages.sh, model.sh, yardstick.sh and factors.sh: the programs, how they are built, what they do, and their profiles by afterlink's counters.
#
#   AFTERLINK      the command under study                 (default: target/release/afterlink of this repository)
#   STUDY_WORK     sources, programs, counts               (default: work in the study's folder)
#   TRAINING       own, or other: the counters made another, smaller run    (default: own)
#
# Redis, SQLite, PostgreSQL and CPython are those of the other studies, whose build.sh or run.sh must have run; REDIS, SQLITE, POSTGRESQL and PYTHON name
# other folders with what they left. The rest is built here from Debian's sources by gcc -O2, within two minutes.
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
AFTERLINK=${AFTERLINK:-$repository/target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-$study/work}
POSTGRESQL=${POSTGRESQL:-$study/../postgresql/work}
REDIS=${REDIS:-$study/../redis/work}
SQLITE=${SQLITE:-$study/../sqlite/work}
PYTHON=${PYTHON:-$study/../python/work}
TRAINING=${TRAINING:-own}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }
. "$study/../debian.sh"

# source_of PACKAGE: unpacks it into $STUDY_WORK/build/PACKAGE.
source_of() {
    [ -d "$STUDY_WORK/build/$1" ] && return
    [ -d "$STUDY_WORK/apt/lists" ] || prepare_sources
    unpack_source "$1" "$(download_source "$1")" "$STUDY_WORK/build/$1"
}

# configured PACKAGE FOLDER TARGET [FLAG …]
configured() {
    local tools=(ACLOCAL=: AUTOMAKE=: AUTOCONF=: AUTOHEADER=: MAKEINFO=:)
    cd "$STUDY_WORK/build/$1/$2"
    ./configure CFLAGS=-O2 LDFLAGS=-Wl,--emit-relocs "${@:4}"
    [ "$1" != gawk ] || make -s -C support "${tools[@]}"
    make -s "$3" "${tools[@]}"
}

build() {
    case $1 in
    bzip2) make -s -C "$STUDY_WORK/build/bzip2" bzip2 LDFLAGS=-Wl,--emit-relocs ;;
    gzip) (configured gzip . all) ;;
    xz) (configured xz-utils . all --disable-shared --disable-nls) ;;
    gawk) (configured gawk . gawk --disable-extensions --disable-nls) ;;
    lua) make -s -C "$STUDY_WORK/build/lua5.4/src" linux MYLDFLAGS=-Wl,--emit-relocs ;;
    tcl) (configured tcl8.6 unix tclsh --disable-shared) ;;
    ninja)
        (cd "$STUDY_WORK/build/ninja-build" && g++ -O2 $(ls src/*.cc | grep -vE \
            'test|win32|browse|hash_collision|\.in\.') -o ninja -Wl,--emit-relocs)
        ;;
    memcached) (configured memcached . memcached --disable-extstore) ;;
    mawk) (configured mawk . mawk) ;;
    bc) (configured bc . all) ;;
    dash) (configured dash . all --without-libedit) ;;
    sed) (configured sed . all --disable-nls --with-included-regex) ;;
    m4) (configured m4 . all --with-included-regex) ;;
    indent) (configured indent . all CFLAGS='-O2 -Wno-error') ;;
    hunspell)
        install_packages hunspell-en-us
        (configured hunspell . all --disable-shared --disable-nls CXXFLAGS=-O2)
        ;;
    troff)
        install_packages texinfo
        (configured groff . all --without-x CXXFLAGS=-O2)
        ;;
    jsonnet) make -s -C "$STUDY_WORK/build/jsonnet" jsonnet OPT=-O2 LDFLAGS=-Wl,--emit-relocs ;;
    mujs) make -s -C "$STUDY_WORK/build/mujs" build/release/mujs XCFLAGS=-O2 LDFLAGS=-Wl,--emit-relocs HAVE_READLINE=no ;;
    duktape)
        (cd "$STUDY_WORK/build/duktape" && gcc -O2 -Isrc -Iextras/print-alert -DDUK_CMDLINE_PRINTALERT_SUPPORT src/duktape.c \
            extras/print-alert/duk_print_alert.c examples/cmdline/duk_cmdline.c -lm -o duk -Wl,--emit-relocs)
        ;;
    jq)
        install_packages libonig-dev flex bison autoconf automake libtool
        (cd "$STUDY_WORK/build/jq" && autoreconf -fi)
        (configured jq . all --disable-shared --disable-docs --disable-maintainer-mode --disable-valgrind --with-oniguruma=/usr)
        ;;
    perl) (cd "$STUDY_WORK/build/perl" && sh Configure -des -Dcc=gcc -Doptimize=-O2 -Dldflags=-Wl,--emit-relocs && make -s perl) ;;
    esac
}

# plain_of PROGRAM: prints the path of what the linker made.
plain_of() {
    local trees=$STUDY_WORK/build
    case $1 in
    bzip2) echo "$trees/bzip2/bzip2" ;;
    gzip) echo "$trees/gzip/gzip" ;;
    xz) echo "$trees/xz-utils/src/xz/xz" ;;
    gawk) echo "$trees/gawk/gawk" ;;
    lua) echo "$trees/lua5.4/src/lua" ;;
    tcl) echo "$trees/tcl8.6/unix/tclsh" ;;
    memcached) echo "$trees/memcached/memcached" ;;
    mawk) echo "$trees/mawk/mawk" ;;
    bc) echo "$trees/bc/bc/bc" ;;
    dash) echo "$trees/dash/src/dash" ;;
    sed) echo "$trees/sed/sed/sed" ;;
    m4) echo "$trees/m4/src/m4" ;;
    indent) echo "$trees/indent/src/indent" ;;
    mujs) echo "$trees/mujs/build/release/mujs" ;;
    duktape) echo "$trees/duktape/duk" ;;
    jq) echo "$trees/jq/jq" ;;
    perl) echo "$trees/perl/perl" ;;
    ninja) echo "$trees/ninja-build/ninja" ;;
    troff) echo "$trees/groff/troff" ;;
    jsonnet) echo "$trees/jsonnet/jsonnet" ;;
    hunspell) echo "$trees/hunspell/src/tools/hunspell" ;;
    redis) echo "$REDIS/plain/redis-server" ;;
    sqlite) echo "$SQLITE/sqlite-bench" ;;
    postgresql | prepared) echo "$POSTGRESQL/install/bin/postgres" ;;
    python) echo "$PYTHON/plain/libpython3.11.so.1.0" ;;
    *) die "no such program: $1" ;;
    esac
}

package_of() { case $1 in xz) echo xz-utils ;; lua) echo lua5.4 ;; ninja) echo ninja-build ;; tcl) echo tcl8.6 ;; troff) echo groff ;; *) echo "$1" ;; esac; }

# make_text: 100 bytes of words and numbers in each of TEXT_LINES lines (6000), the same on every machine.
make_text() {
    [ -s "$STUDY_WORK/text" ] || awk -v lines="${TEXT_LINES:-6000}" 'BEGIN {
        for (state = 12345; line++ < lines;) {
            for (text = ""; length(text) < 100;) {
                state = (state * 1103515245 % 2147483648 + 12345) % 2147483648
                r = int(state / 65536) % 1000
                text = text substr("amber basket copper dolphin ember falcon garnet harbor indigo", r % 40, 3 + r % 9) r (r % 3 ? " " : ", ")
            }
            print text
        }
    }' > "$STUDY_WORK/text"
}

# input_of PROGRAM: prints the path of what a program reads that has an input of its own, and makes it, so much that a run takes about half a second.
input_of() {
    local file=$STUDY_WORK/inputs/$1 i
    mkdir -p "$STUDY_WORK/inputs"
    [ -s "$file" ] || case $1 in
    mawk) for i in {1..14}; do cat "$STUDY_WORK/text"; done ;;
    perl) for i in {1..7}; do cat "$STUDY_WORK/text"; done ;;
    sed) for i in {1..10}; do cat "$STUDY_WORK/text"; done ;;
    indent) for i in {1..60}; do cat "$STUDY_WORK"/build/indent/src/*.c; done ;;
    jq) python3 "$study/workloads/records.py" 24000 ;;
    mujs) echo 'var N = 40000;'; cat "$study/workloads/program.js" ;;
    duktape) echo 'var N = 24000;'; cat "$study/workloads/program.js" ;;
    troff) for i in {1..12}; do cat "$STUDY_WORK"/build/groff/man/*.7; done ;;
    hunspell) cat "$repository"/docs/*.md "$repository/README.md" | tr -c 'a-zA-Z\n ' ' ' ;;
    esac > "$file"
    echo "$file"
}

# make_targets: what ninja is to read, 1,500 objects and 150 libraries.
make_targets() {
    mkdir -p "$STUDY_WORK/targets"
    [ -s "$STUDY_WORK/targets/build.ninja" ] || awk 'BEGIN {
        print "flags = -O2 -Iinclude\nrule cc\n  command = cc $flags $extra -c $in -o $out\n  depfile = $out.d\nrule ar\n  command = ar rcs $out $in"
        for (i = 0; i < 1500; i++) {
            print "build out/dir" i % 37 "/file" i ".o: cc source.c | out/lib" int(i / 100) % 7 ".stamp\n  extra = -DNUMBER=" i
            objects = objects " out/dir" i % 37 "/file" i ".o"
            if (i % 10 == 9) { print "build out/lib" i ".a: ar" objects; objects = "" }
        }
        for (i = 0; i < 7; i++) print "build out/lib" i ".stamp: ar source.c"
    }' > "$STUDY_WORK/targets/build.ninja"
    touch "$STUDY_WORK/targets/source.c"
}

# work PROGRAM FILE [WRAPPER …]: the workload; prints what no layout changes.
work() {
    local name=$1 file=$2
    shift 2
    case $name in
    bzip2 | gzip | xz) "$@" "$file" -c < "$STUDY_WORK/text" > "$STUDY_WORK/packed"; "$@" "$file" -dc < "$STUDY_WORK/packed" | sha256sum ;;
    gawk) LC_ALL=C "$@" "$file" -f "$study/workloads/gawk.awk" "$STUDY_WORK/text" ;;
    lua) "$@" "$file" "$study/workloads/lua.lua" ;;
    tcl) TCL_LIBRARY=$STUDY_WORK/build/tcl8.6/library "$@" "$file" "$study/workloads/tcl.tcl" ;;
    memcached)
        rm -f "$STUDY_WORK/socket"
        "$@" "$file" -u "$(id -un)" -t 1 -A -U 0 -s "$STUDY_WORK/socket" 2> /dev/null &
        python3 "$study/workloads/memcached.py" "$STUDY_WORK/socket"
        wait $! || true
        ;;
    sqlite) "$@" "$file" 8 20 ;;
    mawk) "$@" "$file" -f "$study/workloads/mawk.awk" "$(input_of mawk)" ;;
    perl) "$@" "$file" "$study/workloads/perl.pl" "$(input_of perl)" ;;
    jq) "$@" "$file" -c -f "$study/workloads/records.jq" "$(input_of jq)" ;;
    bc) "$@" "$file" -lq "$study/workloads/numbers.bc" ;;
    dash) "$@" "$file" "$study/workloads/words.dash" 20 "$STUDY_WORK/text" ;;
    sed) "$@" "$file" -f "$study/workloads/lines.sed" "$(input_of sed)" ;;
    m4) "$@" "$file" -DN=24000 "$study/workloads/macros.m4" ;;
    indent) "$@" "$file" -st "$(input_of indent)" | sha256sum ;;
    mujs | duktape) "$@" "$file" "$(input_of "$name")" ;;
    troff) "$@" "$file" -Tutf8 "-F$STUDY_WORK/build/groff/font" "-M$STUDY_WORK/build/groff/tmac" -man "$(input_of troff)" 2> /dev/null ;;
    jsonnet) "$@" "$file" -V N=12 "$study/workloads/services.jsonnet" ;;
    hunspell) "$@" "$file" -d en_US -l "$(input_of hunspell)" ;;
    prepared) STUDY_WORK=$POSTGRESQL WRAPPER=$* "$study/../postgresql/single.sh" "$file" prepared ;;
    ninja)
        make_targets
        for tool in '-n' '-t compdb' '-t targets all' '-t commands'; do "$@" "$file" -C "$STUDY_WORK/targets" $tool | sha256sum; done
        ;;
    redis) (export STUDY_WORK=$REDIS RESULTS=$STUDY_WORK/results; . "$study/../redis/environment.sh"; run_folder=$OWN/run; run_workload "$file" "$@") ;;
    python) (export STUDY_WORK=$PYTHON RESULTS=$STUDY_WORK/results; . "$study/../python/environment.sh"; run_workload "$file" "$@") ;;
    postgresql) (
        own=$STUDY_WORK/data
        export STUDY_WORK=$POSTGRESQL RESULTS=$STUDY_WORK/results
        . "$study/../postgresql/environment.sh"
        . "$study/../postgresql/server.sh"
        copy_data "$own"
        run_lookups "$file" "$own" "$@"
    ) ;;
    esac
}

# other_work PROGRAM FILE: a workload that is not the one that is measured, and runs less of the program.
other_work() {
    case $1 in
    bzip2 | gzip | xz) "$2" -c < "$STUDY_WORK/text" ;;
    gawk) LC_ALL=C "$2" '{ seen[$1]++; sum += length($3); text = sprintf("%05d %s", NR, $2) } END { print sum, text }' "$STUDY_WORK/text" ;;
    lua) "$2" -e 'local t = {} for i = 1, 99999 do t[i] = i * 3 % 1000 .. "x" end table.sort(t) print(#table.concat(t))' ;;
    tcl)
        echo 'for {set i 0} {$i < 9999} {incr i} { lappend all "w[expr {$i * 7 % 997}]" }; puts [llength [lsort -unique $all]]' > "$STUDY_WORK/other.tcl"
        TCL_LIBRARY=$STUDY_WORK/build/tcl8.6/library "$2" "$STUDY_WORK/other.tcl"
        ;;
    memcached) KINDS=10 work memcached "$2" env ;;
    sqlite) die "one workload is known of $1" ;;
    redis)
        mkdir -p "$OWN/other"
        awk -f "$study/../redis/commands.awk" | grep -E '^(SET|GET|INCRBY|HSET|HGET) ' > "$OWN/other/commands"
        (export STUDY_WORK=$REDIS RESULTS=$REDIS/results; . "$study/../redis/environment.sh"; run_folder=$OWN/run; STUDY_WORK=$OWN/other; run_workload "$2")
        ;;
    python)
        (export STUDY_WORK=$PYTHON RESULTS=$PYTHON/results; . "$study/../python/environment.sh"
            with_library "$(dirname "$2")" ./python -S -c 'print(sum(len(str(i)) for i in sorted(range(99999), key=lambda n: n % 101)))')
        ;;
    postgresql) (
        export STUDY_WORK=$POSTGRESQL RESULTS=$POSTGRESQL/results
        . "$study/../postgresql/environment.sh"
        . "$study/../postgresql/server.sh"
        . "$study/../postgresql/rewrite.sh"
        run_training "$2" pgbench
    ) ;;
    esac
}

# prepare PROGRAM: the program, and its profile.
prepare() {
    local folder=$STUDY_WORK/$1 found counters=$STUDY_WORK/counts/counters
    found=$(plain_of "$1")
    if [ ! -x "$found" ]; then
        case $1 in redis | sqlite | postgresql | prepared | python) die "no $found; run the build of studies/$1 first" ;; esac
        say "building $1"
        source_of "$(package_of "$1")"
        build "$1" > "$STUDY_WORK/build/$1.log" 2>&1 || die "see $STUDY_WORK/build/$1.log"
    fi
    base=$(basename "$found")
    mkdir -p "$folder/plain" "$folder/instrumented"
    [ "$folder/plain/$base" -nt "$found" ] || cp "$found" "$folder/plain/$base"
    [ "$folder/$TRAINING.fdata" -nt "$folder/plain/$base" ] && return
    say "profile of $1"
    rm -f "$counters" "$folder/instrumented/$base"
    "$AFTERLINK" instrument "$folder/plain/$base" -o "$folder/instrumented/$base" --counters "$counters" > "$folder/instrument.log" 2>&1 ||
        die "see $folder/instrument.log"
    case $TRAINING in
    own) work "$1" "$folder/instrumented/$base" env ;;
    other) other_work "$1" "$folder/instrumented/$base" ;;
    esac > "$folder/instrumented.answers"
    "$AFTERLINK" profile convert "$counters" --binary "$folder/plain/$base" -o "$folder/$TRAINING.fdata" > "$folder/convert.log" 2>&1 ||
        die "see $folder/convert.log"
}

# set_up: what building and counting needs.
set_up() {
    [ -x "$AFTERLINK" ] || die "no $AFTERLINK; run cargo build --release, or set AFTERLINK"
    install_packages gcc g++ libc6-dev make qemu-user libevent-dev python3
    mkdir -p "$STUDY_WORK/counts" "$STUDY_WORK/build"
    chmod 777 "$STUDY_WORK/counts"
    OWN=$STUDY_WORK
    make_text
}
