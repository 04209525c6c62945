#!/usr/bin/env bash
# The same of PostgreSQL's server with its debug information in files of its own (gcc -O2 -gsplit-dwarf): what llvm-symbolizer says of the same
# instructions in the program and in its outputs, whose entries are in files of their own, too; and what it costs to lead it.
#
#   apart.sh [NUMBER [TIMES]]       default: 20000 3; after build.sh
. "$(dirname "$0")/environment.sh"
. "$study/workloads.sh"
install_packages llvm-22
folder=$STUDY_WORK/apart
profile=${PROFILE:-$STUDY_WORK/postgres/workload.fdata}

if [ ! -x "$folder/plain" ]; then
    rm -rf "$folder/build"
    mkdir -p "$folder"
    cp -a "${BUILD:-$STUDY_WORK/postgres/build}" "$folder/build"
    for part in backend common port timezone; do make -s -C "$folder/build/src/$part" clean > unused; done
    make -s -j"$(nproc)" -C "$folder/build/src/backend" COPT='-g -gsplit-dwarf' > "$folder/make.log" 2>&1
    cp "$folder/build/src/backend/postgres" "$folder/plain"
fi
cd "$folder"
echo "$(find build -name '*.dwo' | wc -l) files with $(find build -name '*.dwo' -exec stat -c %s {} + | awk '{ size += $1 } END { print size }') bytes"
"$AFTERLINK" optimize plain -p "$profile" -o faster | tee faster.log | grep -A2 'debug info'
"$AFTERLINK" optimize plain "${everything_moved[@]}" --seed 1 -o random | tee random.log | grep -A2 'debug info'
for which in faster random; do
    echo "$which"
    "$study/answers.py" "$AFTERLINK" "${1:-20000}" plain "$which"
done
timed() { /usr/bin/time -f '%e s, %U s of processors, %M KB' -o time.log "${@:2}" > unused 2>&1; printf '%-28s %s\n' "$1" "$(cat time.log)"; }
for _ in $(seq "${2:-3}"); do
    timed 'afterlink' "$AFTERLINK" optimize plain -p "$profile" -o cost.out
    timed 'afterlink, left as it was' "$AFTERLINK" optimize plain -p "$profile" --keep-debug-info -o cost.out
done
