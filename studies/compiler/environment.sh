# Sourced by the other scripts: what is studied, and what it compiles. Where things stand ../environment.sh says.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=compiler
. "$study/../environment.sh"
plain_programs=$STUDY_WORK

plain=$STUDY_WORK/compiler
inputs=$STUDY_WORK/inputs
mkdir -p "$inputs"

# set_arguments INPUT OUT LEVEL: leaves in `arguments` what the compiler is to do.
set_arguments() {
    local language=cpp-output
    arguments=(-triple x86_64-pc-linux-gnu -emit-obj -mrelocation-model pic -pic-level 2 -mframe-pointer=none -w)
    case $1 in *.ii) language=c++-cpp-output; arguments+=(-fcxx-exceptions -fexceptions -std=gnu++17) ;; esac
    case $3 in g) arguments+=(-O0 -debug-info-kind=standalone -dwarf-version=5) ;; *) arguments+=("-O$3") ;; esac
    arguments+=(-x "$language" "$1" -o "$2")
}

# The input that profiles are taken from and layouts are measured with, and another that no profile knows.
trained=$inputs/containers.ii
untrained=$inputs/regular.ii
