#!/usr/bin/env bash
# Runs every test. Installs first what they need beyond Rust and gcc (Debian 12, with its security updates).
# Arguments go to cargo: ./test.sh -p afterlink-testkit --test cases -- jump_table
set -euo pipefail
cd "$(dirname "$0")"

packages=(
    gcc gcc-12 libc6-dev binutils # the cases' compilers and linkers
    g++ g++-12 libstdc++-12-dev   # C++ by both compilers
    clang-22 lld-22 llvm-22 mold
    bolt-22                   # profiles go both ways between it and afterlink
    libssl-dev libgmp-dev libluajit-5.1-dev # hand-written assembly of real libraries
    libpython3.11-dev librocksdb-dev # and an interpreter and a database
    dwz elfutils patchelf         # outputs survive them
    gdb                       # unwinds out of split functions
    valgrind                  # tells lines of moved code
    csmith libcsmith-dev      # random programs
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross # programs for AArch64, which are read
)

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing ${missing[*]}" >&2
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ $# -gt 0 ]; then
    exec cargo test --release "$@"
fi
cargo test --release --workspace --no-run
# It was built with the tests. By itself the first of them would build it again, with most of what it depends on: what only tests depend
# on asks some crates for more.
AFTERLINK=$(realpath "${CARGO_TARGET_DIR:-target}/release/afterlink")
export AFTERLINK
exec cargo test --release --workspace --no-fail-fast
