#!/usr/bin/env bash
# Does gdb say the same of an output as of the program? Both are stopped at corresponding instructions, one run each, and asked for all frames
# with arguments and locals (`stops`); by line, with locals (`lines`); and stepped from functions (`steps`).
#
#   gdb.sh PROGRAM JOB          PROGRAM: leveldb | postgres | rocksdb; JOB: stops | lines | steps (these two for leveldb)
#   STOPS=300                   how many stops
. "$(dirname "$0")/environment.sh"
. "$study/workloads.sh"
install_packages gdb
name=$1 job=$2
folder=$STUDY_WORK/$name
cd "$folder"
[ -x bolted ] || die "run build.sh first"
mkdir -p places said run
chmod a+rwX said run
arguments=arguments_$name
export JOB=$job STOPS=${STOPS:-300} STEPS=${STEPS:-40} ARGUMENTS=${!arguments}
[ "$name" != postgres ] || ARGUMENTS+=' < work.sql'

# lines_of FILE FIRST EACH
lines_of() { awk -v name="$(basename "$1")" -v first="$2" -v each="$3" 'NR > first && NR % each == 0 { print name ":" NR }' "build/$1"; }

case $job in
stops) "$study/pick.py" "$AFTERLINK" $((4 * STOPS)) places plain faster=faster random=random ;;
lines) { lines_of db/db_impl.cc 480 23; lines_of table/block.cc 80 9; lines_of db/version_set.cc 80 29; } > places/lines ;;
steps) printf 'leveldb::%s\n' DBImpl::Write DBImpl::Get Block::Iter::Seek VersionSet::LogAndApply DBImpl::MakeRoomForWrite TableBuilder::Add \
    Version::Get BlockBuilder::Add log::Writer::AddRecord MemTable::Add Table::Open ReadBlock DBImpl::CompactRange WriteBatch::Iterate \
    DBImpl::NewIterator VersionEdit::EncodeTo BuildTable DBImpl::DoCompactionWork > places/steps ;;
*) die "no such job: $job" ;;
esac
chmod -R a+rX places
cp "$study/in_gdb.py" .

for which in plain again faster random; do
    program=$which where=places/$job elsewhere=
    [ "$which" != again ] || { program=plain; elsewhere=1; }
    [ "$job" != stops ] || { where=places/$program; [ "$program" != plain ] || where=places/input; }
    cp -f "$program" run/program
    # It is said in a program's own frames how large its file is.
    [ "$which" != again ] || truncate -s +8192 run/program
    rm -f "said/$job.$which"*
    command=(timeout 300 gdb -q -nx -iex 'set auto-load python-scripts off' -batch -x in_gdb.py run/program)
    settings=(ELSEWHERE="$elsewhere" PLACES="$where" SAID="said/$job.$which" JOB="$JOB" STOPS="$STOPS" STEPS="$STEPS" ARGUMENTS="$ARGUMENTS")
    if [ "$name" = postgres ]; then
        as_server "${settings[@]}" "${command[@]}"
    else
        prepare_"$name"
        env "${settings[@]}" "${command[@]}"
    fi > "$job.$which.log" 2>&1 || say "gdb of $which ended with $?"
done
failures=0
for which in faster random; do
    echo "$name, $job, $which"
    "$study/compare_said.py" "said/$job.plain" "said/$job.again" "said/$job.$which" "${LISTED:-5}" || failures=$((failures + 1))
done
[ "$failures" -eq 0 ] || die "$failures outputs differ; see $folder/said"
