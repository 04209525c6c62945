# What the scripts of this study share: where things are, and SQLite's sources. To be sourced.
set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$study/../.." && pwd)
work=$study/work
sources=$work/vendor/libsqlite3-sys/sqlite3
compile=(gcc -O2 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_ENABLE_FTS5 -DSQLITE_DEFAULT_MEMSTATUS=0)

say() { printf '\n== %s\n' "$*"; }
die() { echo "$(basename "$0"): $*" >&2; exit 1; }

install_packages() {
    echo "installing $*" >&2
    local become=()
    [ "$(id -u)" -eq 0 ] || become=(sudo)
    "${become[@]}" apt-get update -qq > /dev/null
    DEBIAN_FRONTEND=noninteractive "${become[@]}" apt-get install -y -qq --no-install-recommends "$@" > /dev/null
}

install_compiler() {
    echo '#include <math.h>' | gcc -E - > /dev/null 2>&1 || install_packages gcc libc6-dev
}

# The sources that the crate libsqlite3-sys bundles: cargo puts them below work/vendor.
fetch_sqlite() {
    [ ! -f "$sources/sqlite3.c" ] || return 0
    mkdir -p "$work"
    cp "$study/Cargo.toml" "$study/source.rs" "$work"
    (cd "$work" && cargo vendor --quiet vendor > vendor.log 2>&1) || { cat "$work/vendor.log" >&2; die 'cargo vendor failed'; }
    [ -f "$sources/sqlite3.c" ] || die "no sqlite3.c in $sources"
}

sqlite_version() { sed -n 's/^#define SQLITE_VERSION *"\(.*\)"/\1/p' "$sources/sqlite3.h"; }

# Leaves the command in AFTERLINK; builds it unless that names one already.
build_afterlink() {
    if [ -n "${AFTERLINK:-}" ]; then
        AFTERLINK=$(realpath "$AFTERLINK")
        return 0
    fi
    (cd "$repository" && cargo build --quiet --release --bin afterlink)
    AFTERLINK=$repository/target/release/afterlink
}
