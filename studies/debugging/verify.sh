#!/usr/bin/env bash
# Does llvm-dwarfdump complain of anything in an output that it does not complain of in the program? And how much larger are debug sections?
#
#   verify.sh [PROGRAM …]       PROGRAM: leveldb | postgres | rocksdb; default: the first two
. "$(dirname "$0")/environment.sh"
install_packages llvm-22
programs=("$@")
[ "$#" -gt 0 ] || programs=(leveldb postgres)

sizes() { readelf -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] *\(\.debug_[a-z_]*\) *[A-Z0-9]* *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p' | while read -r name size; do echo "$name $((16#$size))"; done | sort; }

failures=0
for name in "${programs[@]}"; do
    cd "$STUDY_WORK/$name"
    for which in plain faster random; do
        "$study/without_call_sites.py" "$which" "$which.verified" > unused
        timeout "${SECONDS_EACH:-900}" llvm-dwarfdump-22 --verify "$which.verified" > "$which.complaints" 2>&1 || [ $? -ne 124 ] || say "$name $which: not to the end"
        rm "$which.verified"
        sizes "$which" > "$which.sizes"
    done
    for which in faster random; do
        echo "$name, $which"
        "$study/complaints.py" plain.complaints "$which.complaints" || failures=$((failures + 1))
        join -a 2 -e 0 -o 0,1.2,2.2 plain.sizes "$which.sizes" | awk '{ old += $2; new += $3; if ($2 != $3) printf "  %-18s %9d %9d %+7.1f %%\n", $1, $2, $3, $2 ? 100 * ($3 / $2 - 1) : 0 }
            END { printf "  %-18s %9d %9d %+7.1f %%\n", "all", old, new, 100 * (new / old - 1) }'
    done
done
[ "$failures" -eq 0 ] || die "new complaints; see above"
