# Sourced by the other scripts: where things stand, and how to act as a user that PostgreSQL accepts.
#
#   AFTERLINK      the command under study                 (default: target/release/afterlink of this repository)
#   STUDY_WORK     source, build tree, data directories    (default: studies/postgresql/work)
#   RESULTS        what the experiments print, as JSON     (default: $STUDY_WORK/results)

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
server_user=afterlink-study

AFTERLINK=${AFTERLINK:-$repository/target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-$study/work}
RESULTS=${RESULTS:-$STUDY_WORK/results}

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# Neither the server nor `make check` runs as root, so root hands both to an account without privileges.
# That account must be able to reach the work directory, which it cannot below a closed home directory such as /root.
choose_user() {
    [ "$(id -u)" -eq 0 ] || return 0
    id "$server_user" >/dev/null 2>&1 ||
        useradd --system --no-create-home --home-dir /nonexistent --shell /bin/sh "$server_user"
    mkdir -p "$STUDY_WORK"
    if ! as_user test -x "$STUDY_WORK"; then
        STUDY_WORK=/var/tmp/afterlink-postgresql
        RESULTS=$STUDY_WORK/results
        say "$(basename "$0"): $server_user cannot reach the repository; working in $STUDY_WORK"
        mkdir -p "$STUDY_WORK"
    fi
}

# as_user [NAME=VALUE …] COMMAND …: runs it without privileges, in the C locale, with nothing else from our environment.
as_user() {
    local drop=()
    [ "$(id -u)" -ne 0 ] ||
        drop=(setpriv "--reuid=$server_user" "--regid=$server_user" --clear-groups)
    "${drop[@]}" env -i PATH="$PATH" HOME=/tmp LC_ALL=C TZ=UTC "$@"
}

give_to_user() { [ "$(id -u)" -ne 0 ] || chown -R "$server_user:" "$@"; }

. "$study/../debian.sh"

choose_user
build=$STUDY_WORK/build
installation=$STUDY_WORK/install
plain_server=$installation/bin/postgres
mkdir -p "$STUDY_WORK" "$RESULTS"

need_build() { [ -x "$plain_server" ] || die "no $plain_server; run build.sh first"; }
need_afterlink() {
    [ -x "$AFTERLINK" ] || die "no $AFTERLINK; run cargo build --release, or set AFTERLINK"
}
