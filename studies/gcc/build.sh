#!/usr/bin/env bash
# Builds GCC's compilers of C and C++ from Debian's package of their source, with gcc -O2 and the relocations kept, and preprocesses what they are to
# compile: every tenth file of their own in C++, and the libraries in C that come with them. Prints the compilers' folder.
. "$(dirname "$0")/environment.sh"

build_compilers() {
    mkdir -p "$source" "$build"
    tar -xf /usr/src/gcc-12/gcc-12*.tar.xz -C "$source" --strip-components=1
    cd "$build"
    "$source/configure" --enable-languages=c,c++ --disable-bootstrap --disable-multilib --disable-nls --disable-libsanitizer \
        --disable-werror --enable-checking=release --without-isl CFLAGS=-O2 CXXFLAGS=-O2 LDFLAGS=-Wl,--emit-relocs MAKEINFO=:
    make -j"$(nproc)" all-gcc MAKEINFO=:
}

# preprocess COMPILER SOURCE END FLAG …: what does not preprocess alone is left out.
preprocess() {
    local out
    out=$inputs/$(basename "${2%.*}").$3
    "$1" -E -w -DIN_GCC -DHAVE_CONFIG_H "${@:4}" "$2" -o "$out" 2> /dev/null || rm -f "$out"
}

install_packages gcc g++ make flex bison xz-utils gcc-12-source libgmp-dev libmpfr-dev libmpc-dev
[ -x "$build/gcc/cc1plus" ] || build_compilers > "$logs/build.log" 2>&1 || die "see $logs/build.log"
mkdir -p "$plain_programs" "$inputs/workload"
for name in $program_names; do cp "$build/gcc/$name" "$plain_programs/"; done
rm -f "$inputs"/*.i*
own=("-I$build/gcc" "-I$source/gcc" "-I$source/include" "-I$source/libcpp/include" "-I$source/libcody" "-I$source/libdecnumber"
    "-I$source/libdecnumber/bid" "-I$build/libdecnumber" "-I$source/libbacktrace")
number=0
for file in "$source"/gcc/*.cc "$source"/gcc/cp/*.cc; do
    [ $((number++ % 10)) -ne 0 ] || preprocess g++ "$file" ii "-I$(dirname "$file")" "${own[@]}"
done
rm -f "$inputs/ipa-icf.ii"
g++ -E -w -DIN_GCC -DHAVE_CONFIG_H "${own[@]}" "$source/gcc/ipa-icf.cc" -o "$inputs/workload/ipa-icf.ii"
for file in "$source"/libiberty/*.c "$source"/libdecnumber/*.c "$source"/zlib/*.c; do
    preprocess gcc "$file" i "-I$build/$(basename "$(dirname "$file")")" "-I$source/include" "-I$source/libdecnumber"
done
echo 12.2.0 > "$STUDY_WORK/version"
say "$(find "$inputs" -maxdepth 1 -name '*.i*' | wc -l) inputs"
echo "$plain_programs"
