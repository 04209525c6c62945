# Sourced by studies of programs that Debian has the source of: packages that are needed, and sources.
# Uses `say` and `die` of whoever sources it. The package lists live in $STUDY_WORK/apt: the machine's own apt sources
# stay as they are.

# install_packages PACKAGE …: with apt-get, and only when one of them is missing.
install_packages() {
    local missing=() package become=()
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || become=(sudo)
    "${become[@]}" apt-get update -qq >/dev/null
    DEBIAN_FRONTEND=noninteractive "${become[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

prepare_sources() {
    local lists=$STUDY_WORK/apt file
    mkdir -p "$lists/sources" "$lists/lists/partial" "$lists/cache/archives/partial"
    for file in /etc/apt/sources.list.d/*.sources; do
        grep -qi 'suites:.*\(bookworm\|security\|updates\)' "$file" 2>/dev/null || continue
        sed 's/^Types:.*/Types: deb-src/' "$file" > "$lists/sources/$(basename "$file")"
    done
    if [ -s /etc/apt/sources.list ]; then
        sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > "$lists/sources/machine.list"
    fi
    apt_sources apt-get update -qq
}

# The command with apt pointed at the private lists.
apt_sources() {
    local lists=$STUDY_WORK/apt
    "$1" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$lists/sources" \
        -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root "${@:2}"
}

# download_source PACKAGE: prints its version. The newest is not always there to download: an archive may list what it no
# longer, or not yet, holds.
download_source() {
    local version
    for version in $(apt_sources apt-cache showsrc "$1" | sed -n 's/^Version: //p' | sort -rVu); do
        if (cd "$STUDY_WORK/apt" && apt_sources apt-get source -qq --download-only "$1=$version" >/dev/null 2>&1); then
            echo "$version"
            return
        fi
        say "$1 $version is listed but does not download; trying the next"
    done
    die "no version of $1 downloads"
}

# unpack_source PACKAGE VERSION FOLDER: the source as its authors released it, without Debian's patches.
unpack_source() {
    local upstream=${2#*:} archives archive    # no epoch in the names of files
    archives=("$STUDY_WORK/apt/$1_${upstream%%-*}.orig.tar."*)
    for archive in "${archives[@]}"; do [ "${archive%.asc}" != "$archive" ] || break; done
    rm -rf "$3"
    mkdir -p "$3"
    tar -xf "$archive" --strip-components=1 -C "$3"
}

# build_once PROGRAM PACKAGE FOLDER TIME COMMAND …: unless PROGRAM is there, unpacks the source of PACKAGE to FOLDER and runs COMMAND, which makes
# it; TIME is how long that takes. Prints PROGRAM.
build_once() {
    local version
    if [ -x "$1" ] && [ -f "$STUDY_WORK/version" ]; then
        say "already built: $2 $(cat "$STUDY_WORK/version"); remove $STUDY_WORK to build afresh"
    else
        prepare_sources
        version=$(download_source "$2")
        say "building $2 $version ($4 on two cores)"
        unpack_source "$2" "$version" "$3"
        "${@:5}"
        echo "$version" > "$STUDY_WORK/version"
    fi
    echo "$1"
}
