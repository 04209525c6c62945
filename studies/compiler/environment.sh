# Sourced by the other scripts: where things stand.
#
#   AFTERLINK      the command under study                 (default: target/release/afterlink of this repository)
#   STUDY_WORK     programs, inputs, profiles              (default: studies/compiler/work)
#   RESULTS        what the scripts print                  (default: $STUDY_WORK/results)

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)

AFTERLINK=${AFTERLINK:-$repository/target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-$study/work}
RESULTS=${RESULTS:-$STUDY_WORK/results}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

. "$study/../debian.sh"

plain=$STUDY_WORK/compiler
inputs=$STUDY_WORK/inputs
logs=$STUDY_WORK/logs
mkdir -p "$STUDY_WORK" "$RESULTS" "$inputs" "$logs"

need_build() { [ -x "$plain" ] || die "no $plain; run build.sh first"; }
need_afterlink() { [ -x "$AFTERLINK" ] || die "no $AFTERLINK; run cargo build --release, or set AFTERLINK"; }

# set_arguments INPUT OUT LEVEL: leaves in `arguments` what the compiler is to do.
set_arguments() {
    local language=cpp-output
    arguments=(-triple x86_64-pc-linux-gnu -emit-obj -mrelocation-model pic -pic-level 2 -mframe-pointer=none -w)
    case $1 in *.ii) language=c++-cpp-output; arguments+=(-fcxx-exceptions -fexceptions -std=gnu++17) ;; esac
    case $3 in g) arguments+=(-O0 -debug-info-kind=standalone -dwarf-version=5) ;; *) arguments+=("-O$3") ;; esac
    arguments+=(-x "$language" "$1" -o "$2")
}

# The input that profiles are taken from and layouts are measured with, and another that no profile knows.
trained=$inputs/containers.ii
untrained=$inputs/regular.ii
