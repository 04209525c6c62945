# Sourced by a study's environment.sh, which has set `study`: where things stand. For studies of programs that are rewritten as
# they are, with the workload that is measured and the tests that must survive.
#
#   AFTERLINK      the command under study                 (default: target/release/afterlink of this repository)
#   STUDY_WORK     source, build tree, programs            (default: work in the study's folder)
#   RESULTS        what the experiments print              (default: $STUDY_WORK/results)
#
# The study says what it is about:
#
#   program_names                      the programs; the first is the one that is measured
#   plain_programs                     the folder with what the linker made of them
#   run_workload PROGRAM [WRAPPER …]   prints answers that no layout changes; WRAPPER is a tool to run the program under
#   least_tests                        fewer than that many are a failure         (default: 100)
#   least_moved                        a smaller share of functions that moved is one, where all were to     (default: 0.995)
#   run_tests NAME FOLDER              leaves "OUTCOME TEST" of every test of the programs in FOLDER in $RESULTS/check/NAME.outcomes

repository=$(cd "$study/../.." && pwd)

AFTERLINK=${AFTERLINK:-$repository/target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-$study/work}
RESULTS=${RESULTS:-$STUDY_WORK/results}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

. "$study/../debian.sh"

build=$STUDY_WORK/build
logs=$STUDY_WORK/logs
least_tests=${least_tests:-100}
least_moved=${least_moved:-0.995}
mkdir -p "$STUDY_WORK" "$RESULTS/check" "$logs"

need_build() {
    local name
    for name in $program_names; do [ -x "$plain_programs/$name" ] || die "no $plain_programs/$name; run build.sh first"; done
}
need_afterlink() { [ -x "$AFTERLINK" ] || die "no $AFTERLINK; run cargo build --release, or set AFTERLINK"; }

# await_socket PROCESS SOCKET LOG: waits until a server listens; shows its log and fails if it ends first.
await_socket() {
    until [ -S "$2" ]; do
        kill -0 "$1" 2> /dev/null || { cat "$3" >&2; return 1; }
        sleep 0.05
    done
}
