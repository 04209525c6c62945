#!/usr/bin/env bash
# Builds DuckDB with its core functions, JSON and Parquet from the source that the crate `libduckdb-sys` holds, by gcc with -O3
# as cargo's release profile has it, linked statically into two programs of the crate `duckdb`: its shell and its own tests. The
# relocations are kept.
#
# Gives $STUDY_WORK/plain with the programs, and $STUDY_WORK/build, the folder that the tests run in.
. "$(dirname "$0")/environment.sh"

version=1.20000.1
features='bundled json parquet vtab-full vscalar chrono serde_json url r2d2 uuid rust_decimal'

# fetch_source: copies the crate to $build; its own settings are for DuckDB's developers.
fetch_source() {
    local project=$STUDY_WORK/fetch manifest
    mkdir -p "$project/src"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\nduckdb = { version = "=%s", features = ["bundled"] }\n' \
        "$version" > "$project/Cargo.toml"
    : > "$project/src/lib.rs"
    manifest=$(cargo metadata --quiet --format-version 1 --manifest-path "$project/Cargo.toml" |
        jq -r '.packages[] | select(.name == "duckdb") | .manifest_path')
    cp -r "$(dirname "$manifest")" "$build.part"
    printf '\n[workspace]\n' >> "$build.part/Cargo.toml"
    mv "$build.part" "$build"
}

# build_program NAME COMMAND …: copies the program that cargo builds last.
build_program() {
    local built=$STUDY_WORK/built.json
    RUSTFLAGS='-Clink-args=-Wl,--emit-relocs' nice -n "${NICE:-0}" cargo "${@:2}" --release --quiet --manifest-path "$build/Cargo.toml" \
        --target-dir "$STUDY_WORK/target" --features "$features" --message-format=json > "$built" 2> "$logs/build.log" ||
        die "see $logs/build.log"
    cp "$(jq -r 'select(.executable) | .executable' "$built" | tail -n 1)" "$plain_programs/$1"
}

install_packages build-essential jq
if [ ! -x "$plain_programs/duckdb_tests" ]; then
    [ -d "$build" ] || fetch_source
    say "building DuckDB $version (half an hour on two cores)"
    mkdir -p "$plain_programs"
    build_program repl build --example repl
    build_program duckdb_tests test --no-run --lib
    echo "$version" > "$STUDY_WORK/version"
fi
for name in $program_names; do echo "$plain_programs/$name"; done
