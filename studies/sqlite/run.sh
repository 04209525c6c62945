#!/usr/bin/env bash
# The main job on a real embedded program, from nothing: builds afterlink, builds SQLite with a query workload, makes the
# program faster by what it is seen to do, and compares old and new. Under five minutes on two cores.
#
#   run.sh                    AFTERLINK=/path/to/afterlink run.sh uses that command instead of building one
#
# Everything is written below studies/sqlite/work.
. "$(dirname "$0")/environment.sh"

rounds=600 # of the workload: a run takes about a second and a half

# The only flag that afterlink asks for is the linker's --emit-relocs.
build_program() {
    [ "$work/sqlite-bench" -nt "$study/workload.c" ] && return
    [ -f "$work/sqlite3.o" ] || "${compile[@]}" -c "$sources/sqlite3.c" -o "$work/sqlite3.o"
    "${compile[@]}" -I"$sources" "$study/workload.c" "$work/sqlite3.o" -o "$work/sqlite-bench" -Wl,--emit-relocs -lm
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
echo "SQLite $(sqlite_version), $(stat -c %s "$work/sqlite-bench") bytes, after $((SECONDS - began)) s"

cd "$work"
say "afterlink tune ./sqlite-bench -o ./sqlite-bench.fast --keep-profile sqlite-bench.fdata -- {} $rounds"
rm -f sqlite-bench.fast
"$AFTERLINK" tune ./sqlite-bench -o ./sqlite-bench.fast --keep-profile sqlite-bench.fdata -- {} "$rounds"
./sqlite-bench "$rounds" > answers.before
./sqlite-bench.fast "$rounds" > answers.after
cmp answers.before answers.after || die 'the faster program answers differently: please report this'

say "Done in $((SECONDS - began)) s. The faster program is $work/sqlite-bench.fast; its answers are the same"
cat << END
Next, with a program of your own:
  1. link it with -Wl,--emit-relocs (gcc and clang: add it to LDFLAGS)
  2. $AFTERLINK info ./program
  3. $AFTERLINK tune ./program -o ./program.fast -- ./your-workload.sh {}
     {} stands for the program under test; a script may read its path from \$AFTERLINK_BINARY instead.
END
