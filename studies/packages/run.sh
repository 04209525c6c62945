#!/usr/bin/env bash
# Builds Debian's source packages, runs their own tests, rewrites every program of the build, and runs the tests again.
#
#   run.sh [PACKAGE …]       all of recipes.txt by default
#   MODES="random-1 instrumented optimized" run.sh …      what rewrite.sh knows; random-1 by default
#   run.sh table             only writes the tables into README.md
#
# A package is built once, plainly but for kept relocations (linker/ld); its tests run on that build, then on the same build with
# every program rewritten in its place. What is linked while the tests run is rewritten as it is linked. It goes on where it was
# ended: a package and mode that has a row in results.tsv made by the same afterlink is not done again.
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
. "$study/tests.sh"
. "$study/table.sh"

header='package\tversion\tmode\tresult\tprograms\trefused programs\tfunctions moved\tfunctions\ttests passed before\tfailed before\tpassed after\tfailed after\tseconds\tafterlink'

# field NAME NUMBER: of the package's row in recipes.txt.
field() {
    awk -v name="$1" -v number="$2" '
        { gsub(/[|][|]/, "\001"); split($0, columns, / *[|] */) }
        columns[1] == name { gsub("\001", "||", columns[number]); print columns[number] }' "$study/recipes.txt"
}

# in_source COMMAND: runs a recipe's command where the source lies. RELINK_MODE is taken from our environment.
in_source() {
    local flags="-B$study/linker" temporary=$folder/temporary
    as_user mkdir -p "$temporary"
    (cd "$source" && as_user AFTERLINK="$AFTERLINK" RELINK_MODE="${mode:-plain}" RELINK_LOG="$folder/${mode:-plain}.links" \
        RELINK_ORIGINALS="$folder/originals" CC="gcc $flags" CXX="g++ $flags" CC_FLAGS="-O2 $flags" CFLAGS="-O2" CXXFLAGS="-O2" JOBS="$JOBS" \
        MAKEFLAGS= TMPDIR="$temporary" prefix="$folder/install" timeout -k 30 "$LIMIT" bash -c "$1" </dev/null)
}

# The newest version is not always there to download: an archive may list what it no longer, or not yet, holds.
download() {
    local version lists=$STUDY_WORK/apt
    for version in $(apt_sources apt-cache showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -rVu); do
        if (cd "$folder/download" && apt_sources apt-get source -qq --download-only --only-source "$1=$version" >/dev/null 2>&1); then
            echo "$version"
            return
        fi
    done
    return 1
}

# Debian's patches are left out: they touch what the build would then make anew with tools of other versions.
unpack() {
    local archive extra component
    rm -rf "$source"
    mkdir -p "$source"
    for archive in "$folder"/download/*.orig.tar.* "$folder"/download/*.tar.*; do
        case $archive in *.asc | *.debian.tar.*) continue ;; esac
        [ -f "$archive" ] && break
    done
    tar -xf "$archive" --strip-components=1 -C "$source"
    for extra in "$folder"/download/*.orig-*.tar.*; do
        case $extra in *.asc) continue ;; esac
        [ -f "$extra" ] || continue
        component=${extra##*.orig-}
        mkdir -p "$source/${component%%.tar*}"
        tar -xf "$extra" --strip-components=1 -C "$source/${component%%.tar*}"
    done
    [ "$(id -u)" -ne 0 ] || chown -R $user: "$folder"
}

default_configure='[ -x configure ] || autoreconf -fi; ./configure -C --prefix=$prefix --disable-shared --disable-nls --disable-dependency-tracking'

# command NAME NUMBER DEFAULT: a recipe's command; one that begins with "+" adds to the default.
command_of() {
    local given
    given=$(field "$1" "$2")
    case $given in
    '') echo "$3" ;;
    +*) echo "$3 ${given#+}" ;;
    *) echo "$given" ;;
    esac
}

# What configure scripts found out about the machine itself is handed on to those of other packages. What may be installed in between
# is not: libraries, headers and programs.
shared_cache=$STUDY_WORK/config.cache
hand_on() {
    local found=$source/config.cache
    [ -s "$found" ] || return 0
    grep -h '^\(gl_cv\|lt_cv\|ac_cv_func\|ac_cv_type\|ac_cv_sizeof\|ac_cv_have_decl\|ac_cv_header[a-z0-9_]*=${[a-z0-9_]*=yes\)' "$found" "$shared_cache" 2>/dev/null |
        sort -u -t= -k 1,1 >"$shared_cache.$$" || true
    mv "$shared_cache.$$" "$shared_cache"
}

build_package() {
    [ ! -e "$folder/built" ] || return 0
    [ ! -e "$folder/does-not-build" ] || return 1
    mkdir -p "$folder/download" "$folder/originals" "$folder/install"
    install_packages gcc g++ make autoconf automake autopoint gettext libtool pkg-config dpkg-dev $(field "$name" 2)
    prepare_sources
    download "$name" >"$folder/version" || { say "$name: no version downloads" && return 1; }
    unpack
    [ ! -s "$shared_cache" ] || as_user cp "$shared_cache" "$source/config.cache"
    say "$name $(cat "$folder/version"): building"
    if in_source "$(command_of "$name" 3 "$default_configure")" >"$folder/configure.log" 2>&1 &&
        in_source "$(command_of "$name" 4 'make -j$JOBS')" >"$folder/make.log" 2>&1; then
        touch "$folder/built"
        hand_on
    else
        touch "$folder/does-not-build"
        say "$name does not build: see $folder/configure.log and make.log"
        return 1
    fi
}

# run_tests NAME: leaves what they print in NAME.log, one line for each test in NAME.tests, and its seconds in NAME.seconds.
run_tests() {
    local status=0 start=$SECONDS
    in_source "$(command_of "$name" 5 'make check')" >"$folder/$1.log" 2>&1 || status=$?
    { tests_of "$folder/$1.log"; echo "$([ $status -eq 0 ] && echo PASS || echo FAIL) the whole"; } | sort >"$folder/$1.tests"
    echo $((SECONDS - start)) >"$folder/$1.seconds"
}

# Every program of the build that keeps its relocations.
programs() {
    find "$source" "$folder/install" -type f -perm -u+x -size +4k -print0 | xargs -0 -r -n 100 sh -c '
        for file; do
            [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
            case $(readelf -hW "$file" 2>/dev/null) in *"Type: "*EXEC*|*"Type: "*DYN*) ;; *) continue ;; esac
            readelf -SW "$file" | grep -q " \.rela\.text" && echo "$file"
        done; true' sh
}

restore() {
    local original
    find "$folder/originals" -type f ! -name '*.report' ! -name '*.counters*' -print0 |
        while IFS= read -r -d '' original; do
            [ ! -e "${original#"$folder/originals"}" ] || mv "$original" "${original#"$folder/originals"}"
        done
    find "$source" "$folder/install" -name '*.afterlink-new' -delete
}

rewrite() {
    local program
    rm -f "$folder/$mode.links"
    programs | while read -r program; do
        as_user AFTERLINK="$AFTERLINK" RELINK_MODE="$mode" RELINK_LOG="$folder/$mode.links" RELINK_ORIGINALS="$folder/originals" \
            timeout 600 "$study/rewrite.sh" "$program"
    done
}

# lost: tests that passed before and do not now.
lost() { comm -23 <(grep ^PASS "$folder/plain.tests") <(grep ^PASS "$folder/$mode.tests"); }

number() { grep -c "^$1" "$2" || true; }

# Tests that differ get a second chance, with plain programs and with rewritten ones: some packages have tests that fail at times.
compare_runs() {
    run_tests "$mode"
    [ -n "$(lost)" ] || { echo same && return; }
    lost >"$folder/$mode.lost-first"
    run_tests "$mode"
    [ -n "$(lost)" ] || { echo 'same, the second time' && return; }
    lost >"$folder/$mode.lost"
    echo "$(wc -l <"$folder/$mode.lost") lost"
}

check_mode() {
    local result
    restore
    say "$name: $mode"
    rewrite
    [ -s "$folder/$mode.links" ] || { say "$name has no program to rewrite" && return 0; }
    result=$(compare_runs)
    (mode=plain && restore)
    ! cut -f 6 "$folder/$mode.links" | grep -q 'fault of afterlink\|panicked' || result+=', fault of afterlink'
    say "$name: $mode: $result"
    record "$result"
}

record() {
    local row links=$folder/$mode.links
    row=$(
        printf '%s\t%s\t%s\t%s\t' "$name" "$(cat "$folder/version")" "$mode" "$1"
        awk -F'\t' '{ $3 || !$6 ? programs++ : refused++; moved += $3; all += $4 }
            END { printf "%d\t%d\t%d\t%d\t", programs, refused, moved, all }' "$links"
        printf '%s\t%s\t' "$(number PASS "$folder/plain.tests")" "$(number FAIL "$folder/plain.tests")"
        printf '%s\t%s\t' "$(number PASS "$folder/$mode.tests")" "$(number FAIL "$folder/$mode.tests")"
        printf '%s\t%s' "$(cat "$folder/$mode.seconds")" "$identity"
    )
    exec 9>"$STUDY_WORK/results.lock"
    flock 9
    [ -s "$RESULTS" ] || printf "$header\n" >"$RESULTS"
    { head -n 1 "$RESULTS"; { tail -n +2 "$RESULTS" | awk -F'\t' -v name="$name" -v mode="$mode" '$1 != name || $3 != mode'; echo "$row"; } | sort; } \
        >"$RESULTS.new"
    mv "$RESULTS.new" "$RESULTS"
    exec 9>&-
}

done_already() {
    [ -s "$RESULTS" ] && awk -F'\t' -v name="$name" -v mode="$mode" -v identity="$identity" \
        '$1 == name && $3 == mode && $NF == identity { found = 1 } END { exit !found }' "$RESULTS"
}

check_package() {
    name=$1
    folder=$STUDY_WORK/$name
    source=$folder/source
    [ -n "$(field "$name" 1)" ] || die "no package $name in recipes.txt"
    mkdir -p "$folder"
    local modes=() mode
    for mode in ${MODES:-random-1}; do done_already || modes+=("$mode"); done
    [ "${#modes[@]}" -gt 0 ] || return 0
    mode=plain
    build_package || return 0
    if [ ! -s "$folder/plain.tests" ]; then
        restore
        say "$name: plain"
        run_tests plain
    fi
    if [ "$(number PASS "$folder/plain.tests")" -eq 0 ]; then
        say "$name: no test passes before anything is rewritten: see $folder/plain.log"
        rm "$folder/plain.tests" # What is mended in the recipe is tried the next time.
        return 0
    fi
    for mode in "${modes[@]}"; do check_mode; done
}

if [ "${1:-}" = table ]; then
    write_tables
    exit
fi
choose_user
identity=$(sha1sum <"$AFTERLINK" | cut -c 1-8)
packages=("$@")
[ $# -gt 0 ] || mapfile -t packages < <(sed -n 's/^\([a-z0-9+.-]*\) *|.*/\1/p' "$study/recipes.txt")
for package in "${packages[@]}"; do
    [ ! -e "$STUDY_WORK/stop" ] || die "$STUDY_WORK/stop exists"
    (check_package "$package") || say "$package: the study itself failed"
done
write_tables
