# Sourced by run.sh: where things stand, and how to act as a user without privileges.
#
#   AFTERLINK      the command under study             (default: target/release/afterlink of this repository)
#   STUDY_WORK     sources, builds, logs               (default: /var/tmp/afterlink-packages)
#   RESULTS        one row for each package and mode   (default: results.tsv beside this file)
#   JOBS           what make may do at once            (default: 1)
#   LIMIT          seconds for a build or a test run   (default: 3600)

set -euo pipefail
shopt -s inherit_errexit

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
user=afterlink-study

AFTERLINK=${AFTERLINK:-$repository/target/release/afterlink}
STUDY_WORK=${STUDY_WORK:-/var/tmp/afterlink-packages}
RESULTS=${RESULTS:-$study/results.tsv}
JOBS=${JOBS:-1}
LIMIT=${LIMIT:-3600}

say() { printf '%s %s\n' "$(date +%T)" "$*" >&2; }
die() { say "$*"; exit 1; }

# Many test suites skip or fail what root may do, so root hands the work to an account without privileges.
choose_user() {
    mkdir -p "$STUDY_WORK/apt" "$STUDY_WORK/home"
    [ "$(id -u)" -eq 0 ] || return 0
    id $user >/dev/null 2>&1 || useradd --system --no-create-home --home-dir /nonexistent --shell /bin/sh $user
    chown $user: "$STUDY_WORK/home"
    as_user test -x "$AFTERLINK" || die "$user cannot reach $AFTERLINK; copy it to where everyone can, and set AFTERLINK"
    as_user test -x "$study/linker/ld" || die "$user cannot reach $study"
}

# as_user [NAME=VALUE …] COMMAND …: without privileges, at low priority, in the C locale, with nothing else from our environment.
as_user() {
    local drop=()
    [ "$(id -u)" -ne 0 ] || drop=(setpriv --reuid=$user --regid=$user --clear-groups)
    nice -n 10 "${drop[@]}" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$STUDY_WORK/home" USER=$user LOGNAME=$user \
        TERM=dumb LC_ALL=C TZ=UTC "$@"
}

# install_packages PACKAGE …: with apt-get, and only when one of them is missing.
install_packages() {
    local missing=() package become=()
    for package in "$@"; do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || become=(sudo)
    DEBIAN_FRONTEND=noninteractive flock /tmp/apt.lock "${become[@]}" \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Package lists for sources live in the work directory: the machine's own apt sources stay as they are.
prepare_sources() {
    local lists=$STUDY_WORK/apt file
    [ ! -e "$lists/ready" ] || return 0
    mkdir -p "$lists/sources" "$lists/lists/partial" "$lists/cache/archives/partial"
    for file in /etc/apt/sources.list.d/*.sources; do
        grep -qi 'suites:.*\(bookworm\|security\|updates\)' "$file" 2>/dev/null || continue
        sed 's/^Types:.*/Types: deb-src/' "$file" >"$lists/sources/$(basename "$file")"
    done
    if [ -s /etc/apt/sources.list ]; then
        sed -n '/debian/s/^deb /deb-src /p' /etc/apt/sources.list >"$lists/sources/machine.list"
    fi
    apt_sources apt-get update -qq
    touch "$lists/ready"
}

# The command with apt pointed at the private lists.
apt_sources() {
    local lists=$STUDY_WORK/apt
    "$1" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$lists/sources" \
        -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root "${@:2}"
}
