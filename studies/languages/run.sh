#!/usr/bin/env bash
# Holds programs of other compilers against themselves in random orders, instrumented, and laid out by their profile.
#
#   run.sh [NAME …]           cpp libcxx rust go cgo archive fortran ada d pascal nim crystal scheme prolog ml ocaml haskell mono zig zigsafe; all of them by default
#   AFTERLINK=/path/to/afterlink run.sh …
#
# Everything is written below studies/languages/work; README.md's table is made anew when all are run.
set -euo pipefail
shopt -s inherit_errexit
study=$(cd "$(dirname "$0")" && pwd)
work=$study/work
mkdir -p "$work"
cd "$work"
AFTERLINK=${AFTERLINK:-$study/../../target/release/afterlink}
[ -x "$AFTERLINK" ] || (cd "$study/../.." && cargo build --release)

declare -A packages=([cpp]=g++ [libcxx]="clang-22 lld-22 libc++-22-dev libc++abi-22-dev libunwind-22-dev libclang-rt-22-dev" [go]=gccgo-12 [fortran]=gfortran [d]=gdc-12 [pascal]="fp-compiler fp-units-rtl"
    [ocaml]=ocaml-nox [haskell]=ghc [rust]=gcc [cgo]="golang-1.19-go gcc" [archive]="golang-1.19-go gcc" [ada]=gnat-12
    [nim]=nim [crystal]=crystal [scheme]=chicken-bin [prolog]=gprolog [ml]="polyml libpolyml-dev g++"
    [mono]="mono-mcs mono-runtime"
    [zig]=python3-pip [zigsafe]=python3-pip)
declare -A titles=([cpp]="C++ | g++ 12" [libcxx]="C++ | clang 22, libc++, LLVM's libunwind, compiler-rt" [go]="Go | gccgo 12" [fortran]="Fortran | gfortran 12" [d]="D | gdc 12"
    [pascal]="Pascal | Free Pascal 3.2" [ocaml]="OCaml | ocamlopt 4.13" [haskell]="Haskell | GHC 9.0" [rust]="Rust | rustc 1.95"
    [cgo]="Go with C in it | go 1.19, linked by gcc" [archive]="C with a Go archive | gcc 12, go 1.19" [ada]="Ada | gnat 12"
    [nim]="Nim | nim 1.6" [crystal]="Crystal | crystal 1.6" [scheme]="Scheme | Chicken 5.3"
    [prolog]="Prolog | GNU Prolog 1.4" [ml]="Standard ML | Poly/ML 5.7" [mono]="C# | Mono 6.8, ahead of time"
    [zig]="Zig | zig 0.17, ReleaseFast" [zigsafe]="Zig | zig 0.17, ReleaseSafe")

install() {
    local missing=() package
    for package in ${packages[$1]}; do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "installing ${missing[*]}" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

go_build() {
    GOCACHE=$work/go.cache GO111MODULE=off CGO_ENABLED=1 /usr/lib/go-1.19/bin/go build "$@"
}

# zig_build MODE NAME: by the compiler as PyPI has it. Its own linker keeps no relocations, so LLD links in release modes alone.
zig_build() {
    [ -x zig.package/ziglang/zig ] || python3 -m pip install --quiet --target zig.package ziglang==0.17.1
    zig.package/ziglang/zig build-exe -O "$1" --emit-relocs "$study/program.zig" --name "$2"
}

# build NAME: makes the program of that name.
build() {
    local keep=-Wl,--emit-relocs
    case $1 in
    cpp) g++ -O2 -std=c++17 $keep -static-libstdc++ "$study/program.cc" -o cpp -pthread ;;
    libcxx)
        clang++-22 -O2 -std=c++17 -stdlib=libc++ -rtlib=compiler-rt -unwindlib=libunwind -fuse-ld=lld $keep -static-libstdc++ \
            -static-libgcc "$study/program.cc" -o libcxx -pthread
        ;;
    rust) rustc -O -C link-arg=$keep -C strip=none "$study/program.rs" -o rust ;;
    go) gccgo-12 -O2 $keep -static-libgo "$study/program.go" -o go ;;
    cgo) (cd "$study/cgo" && go_build -ldflags "-linkmode=external -extldflags=$keep" -o "$work/cgo" .) ;;
    archive)
        (cd "$study/archive" && go_build -buildmode=c-archive -o "$work/archive.a" archive.go)
        gcc -O2 -I. "$study/archive/main.c" archive.a $keep -pthread -o archive
        ;;
    nim) nim c -d:release --hints:off --passL:$keep --nimcache:nim.cache -o:nim "$study/program.nim" >nim.build ;;
    crystal) crystal build --release --link-flags=$keep -o crystal "$study/program.cr" ;;
    scheme) csc -O2 -static "$study/program.scm" -o scheme -L $keep 2>scheme.build ;;
    prolog) gplc --no-top-level -L $keep -o prolog "$study/program.pl" 2>prolog.build ;;
    ml) polyc -c "$study/program.sml" -o ml.o && g++ ml.o $keep -o ml -lpolymain -lpolyml 2>ml.build ;;
    ada) gnatmake -q -O2 "$study/program.adb" -o ada -bargs -static -largs $keep ;;
    fortran) gfortran -O2 $keep -static-libgfortran "$study/program.f90" -o fortran ;;
    d) gdc-12 -O2 $keep -static-libphobos "$study/program.d" -o d ;;
    pascal) fpc -O2 -k--emit-relocs -Xs- "-FU$work" "-o$work/pascal" "$study/program.pas" >pascal.build ;;
    ocaml) cp "$study/program.ml" . && ocamlopt -ccopt $keep program.ml -o ocaml ;;
    haskell) ghc -v0 -O -optl$keep -optl-fuse-ld=bfd -outputdir . "$study/program.hs" -o haskell ;;
    mono)
        mcs "$study/program.cs" -out:mono.exe
        mono --aot=asmonly,outfile=mono.s mono.exe >mono.build
        gcc -shared $keep mono.s -o mono
        ;;
    zig) zig_build ReleaseFast zig ;;
    zigsafe) zig_build ReleaseSafe zigsafe ;;
    *) echo "no such language: $1" >&2 && exit 2 ;;
    esac
}

# same NAME PROGRAM: it prints what the original prints.
same() {
    ./"$2" >"$2.out" 2>/dev/null && cmp -s "$1.out" "$2.out" || { echo "$1: $2 differs" >&2; return 1; }
}

# same_in_mono FILE: the program prints the same with these outputs as its compiled code. Another file would not be taken: then it is compiled as it runs.
same_in_mono() {
    cp "$1" mono.exe.so
    mono mono.exe >"$1.out" 2>&1 && cmp -s mono.out "$1.out" || { echo "mono: $1 differs" >&2; return 1; }
    MONO_LOG_LEVEL=debug MONO_LOG_MASK=aot mono mono.exe | grep "AOT: image '.*mono.exe.so' found" >/dev/null
}

# check_mono: the same of a file that is no program, but code for Mono's runtime.
check_mono() {
    local seed
    rm -f mono.exe.so
    mono mono.exe >mono.out
    same_in_mono mono
    for seed in 1 2 3; do
        "$AFTERLINK" optimize mono --scope all --order-functions random --order-blocks random --split random \
            --seed $seed --trap-old-code -o mono.random >/dev/null
        same_in_mono mono.random
    done
    "$AFTERLINK" instrument mono -o mono.counted >/dev/null
    same_in_mono mono.counted
    "$AFTERLINK" info mono | sed -n 's/^functions *\([0-9]* of [0-9]*\).*/\1 | the same, four times/p'
}

# check NAME: prints the last two columns of its row.
check() {
    local seed moved
    if [ "$1" = haskell ]; then
        ! "$AFTERLINK" optimize haskell --scope all -o haskell.new 2>haskell.error || return 1
        grep -q GHC haskell.error && echo 'none | refused, with the reason'
        return
    fi
    if [ "$1" = mono ]; then
        check_mono
        return
    fi
    ./"$1" >"$1.out" 2>/dev/null
    for seed in 1 2 3; do
        "$AFTERLINK" optimize "$1" --scope all --order-functions random --order-blocks random --split random \
            --seed $seed --trap-old-code -o "$1.random" >/dev/null
        same "$1" "$1.random"
    done
    rm -f "$1.counted.counters"
    "$AFTERLINK" instrument "$1" -o "$1.counted" >/dev/null
    same "$1" "$1.counted"
    "$AFTERLINK" profile convert "$1.counted.counters" -o "$1.fdata" >/dev/null
    "$AFTERLINK" optimize "$1" --profile "$1.fdata" --trap-old-code -o "$1.fast" >/dev/null
    same "$1" "$1.fast"
    moved=$("$AFTERLINK" info "$1" | sed -n 's/^functions *\([0-9]* of [0-9]*\).*/\1/p')
    echo "$moved | the same, five times"
}

names=("$@")
[ $# -gt 0 ] || names=(cpp libcxx rust go cgo archive fortran ada d pascal nim crystal scheme prolog ml ocaml haskell mono zig zigsafe)
rows=()
for name in "${names[@]}"; do
    install "$name"
    build "$name"
    result=$(check "$name")
    rows+=("| ${titles[$name]} | $result |")
    echo "${rows[-1]}"
done
[ $# -eq 0 ] || exit 0
{
    sed '/<!-- results -->/q' "$study/README.md"
    printf '%s\n' "${rows[@]}"
    sed -n '/<!-- end -->/,$p' "$study/README.md"
} >README.new
mv README.new "$study/README.md"
