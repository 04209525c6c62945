#!/usr/bin/env bash
# Links a compiler of clang's and LLVM's static libraries, as Debian's packages of version 22 bring them, with the relocations kept,
# and preprocesses what it is to compile: all programs of tests/cases, and two that are mostly the C++ library's templates.
. "$(dirname "$0")/environment.sh"

llvm=/usr/lib/llvm-22

link_compiler() {
    local clang
    g++ -std=c++17 -fno-exceptions -fno-rtti -O2 "-I$llvm/include" -c "$study/compiler.cc" -o "$plain.o"
    clang=$(ls "$llvm"/lib/libclang*.a | grep -v 'Tidy\|clangd\|Daemon\|IncludeFixer\|clangDoc\|clangMove\|HandleCXX\|HandleLLVM')
    clang++-22 "$plain.o" -Wl,--start-group $clang $(llvm-config-22 --link-static --libs all) -Wl,--end-group "-L$llvm/lib" \
        $(llvm-config-22 --system-libs --link-static) -fuse-ld=lld -Wl,--strip-debug -Wl,--emit-relocs -o "$plain"
}

# preprocess SOURCE NAME
preprocess() {
    local compiler=clang-22 end=i
    case $1 in *.cc) compiler=clang++-22 end=ii ;; esac
    "$compiler" -E -w "-I$repository/tests/cases" "$1" -o "$inputs/$2.$end" 2> /dev/null || rm -f "$inputs/$2.$end"
}

install_packages g++ clang-22 lld-22 llvm-22-dev libclang-22-dev libpolly-22-dev libz3-dev libxml2-dev libzstd-dev zlib1g-dev
[ -x "$plain" ] || link_compiler
rm -f "$inputs"/*
for source in "$repository"/tests/cases/*/main.c "$repository"/tests/cases/*/main.cc; do
    preprocess "$source" "$(basename "$(dirname "$source")")"
done
preprocess "$study/regular.cc" regular
preprocess "$study/containers.cc" containers
say "$(ls "$inputs" | wc -l) inputs"
echo "$plain"
