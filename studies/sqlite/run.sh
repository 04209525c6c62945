#!/usr/bin/env bash
# The main job on a real embedded program, from nothing: builds afterlink, builds SQLite with a query workload, makes the
# program faster by what it is seen to do, and compares old and new. Under five minutes on two cores.
#
#   run.sh                    AFTERLINK=/path/to/afterlink run.sh uses that command instead of building one
#
# Everything is written below studies/sqlite/work.
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
work=$study/work
compile=(gcc -O2 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_ENABLE_FTS5 -DSQLITE_DEFAULT_MEMSTATUS=0)

say() { printf '\n== %s\n' "$*"; }
die() { echo "run.sh: $*" >&2; exit 1; }

install_compiler() {
    echo '#include <math.h>' | gcc -E - > /dev/null 2>&1 && return
    local become=()
    [ "$(id -u)" -eq 0 ] || become=(sudo)
    "${become[@]}" apt-get update -qq > /dev/null
    "${become[@]}" apt-get install -y -qq --no-install-recommends gcc libc6-dev > /dev/null
}

# The sources that the crate libsqlite3-sys bundles: cargo puts them below work/vendor.
fetch_sqlite() {
    sources=$work/vendor/libsqlite3-sys/sqlite3
    [ ! -f "$sources/sqlite3.c" ] || return 0
    cp "$study/Cargo.toml" "$study/source.rs" "$work"
    (cd "$work" && cargo vendor --quiet vendor > vendor.log 2>&1) || { cat "$work/vendor.log" >&2; die 'cargo vendor failed'; }
    [ -f "$sources/sqlite3.c" ] || die "no sqlite3.c in $sources"
}

# The only flag that afterlink asks for is the linker's --emit-relocs.
build_program() {
    [ "$work/sqlite-bench" -nt "$study/workload.c" ] && return
    [ -f "$work/sqlite3.o" ] || "${compile[@]}" -c "$sources/sqlite3.c" -o "$work/sqlite3.o"
    "${compile[@]}" -I"$sources" "$study/workload.c" "$work/sqlite3.o" -o "$work/sqlite-bench" -Wl,--emit-relocs -lm
}

build_afterlink() {
    [ -z "${AFTERLINK:-}" ] || return 0
    (cd "$repository" && cargo build --quiet --release --bin afterlink)
    AFTERLINK=$repository/target/release/afterlink
}

mkdir -p "$work"
began=$SECONDS
say 'Building afterlink, and SQLite with its workload'
install_compiler
fetch_sqlite
build_program &
program=$!
build_afterlink
wait "$program" || die 'gcc failed'
version=$(sed -n 's/^#define SQLITE_VERSION *"\(.*\)"/\1/p' "$sources/sqlite3.h")
echo "SQLite $version, $(stat -c %s "$work/sqlite-bench") bytes, after $((SECONDS - began)) s"

cd "$work"
say 'afterlink tune ./sqlite-bench -o ./sqlite-bench.fast -- {}'
rm -f sqlite-bench.fast
"$AFTERLINK" tune ./sqlite-bench -o ./sqlite-bench.fast -- {}
./sqlite-bench > answers.before
./sqlite-bench.fast > answers.after
cmp answers.before answers.after || die 'the faster program answers differently: please report this'

say "Done in $((SECONDS - began)) s. The faster program is $work/sqlite-bench.fast; its answers are the same"
cat << END
Next, with a program of your own:
  1. link it with -Wl,--emit-relocs (gcc and clang: add it to LDFLAGS)
  2. $AFTERLINK info ./program
  3. $AFTERLINK tune ./program -o ./program.fast -- ./your-workload.sh {}
     {} stands for the program under test; a script may read its path from \$AFTERLINK_BINARY instead.
END
