# Sourced by the other scripts: where things stand.
#
#   AFTERLINK      the command under study                 (default: target/release/afterlink of this repository)
#   STUDY_WORK     source, build tree, libraries           (default: studies/python/work)
#   RESULTS        what the experiments print, as JSON     (default: $STUDY_WORK/results)

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)

AFTERLINK=${AFTERLINK:-$repository/target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-$study/work}
RESULTS=${RESULTS:-$STUDY_WORK/results}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

. "$study/../debian.sh"

build=$STUDY_WORK/build
library=libpython3.11.so.1.0
plain_library=$build/$library
logs=$STUDY_WORK/logs
mkdir -p "$STUDY_WORK" "$RESULTS" "$logs"

need_build() { [ -x "$plain_library" ] || die "no $plain_library; run build.sh first"; }
need_afterlink() { [ -x "$AFTERLINK" ] || die "no $AFTERLINK; run cargo build --release, or set AFTERLINK"; }

# python FOLDER ARGUMENT …: the program of the build with the library in FOLDER.
python() {
    local folder=$1
    shift
    # In the background of a shell Ctrl-C is ignored, which some tests count on.
    (cd "$build" && env -i --default-signal=INT PATH="$PATH" HOME=/tmp LC_ALL=C.UTF-8 TZ=UTC LD_LIBRARY_PATH="$folder" \
        PYTHONHASHSEED=1 ./python "$@")
}
