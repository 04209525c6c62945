# Sourced by the other scripts: where things stand.
#
#   AFTERLINK      the command under study                 (default: target/release/afterlink of this repository)
#   STUDY_WORK     programs, outputs, what tools said      (default: work in the study's folder)
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
AFTERLINK=$(realpath "${AFTERLINK:-$repository/target/release/afterlink}")
STUDY_WORK=${STUDY_WORK:-$study/work}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }
. "$study/../debian.sh"

[ -x "$AFTERLINK" ] || die "no $AFTERLINK; run cargo build --release, or set AFTERLINK"
mkdir -p "$STUDY_WORK"

everything_moved=(--scope all --order-functions random --order-blocks random --split random)
