# Sourced by run.sh: writes results.tsv as tables into README.md.

write_tables() {
    [ -s "$RESULTS" ] || return 0
    {
        sed '/<!-- results -->/q' "$study/README.md"
        echo '| package | mode | programs | functions moved | tests before | after | result |'
        echo '|---|---|---|---|---|---|---|'
        tail -n +2 "$RESULTS" | awk -F'\t' '
            { printf "| %s %s | %s | %d%s | %d of %d | %d%s | %d%s | %s |\n", $1, $2, $3, $5, $6 ? ", " $6 " refused" : "", $7, $8, \
                  $9, $10 ? ", " $10 " fail" : "", $11, $12 ? ", " $12 " fail" : "", $4 }'
        tail -n +2 "$RESULTS" | awk -F'\t' '
            { packages[$1]; programs += $5; moved += $7; all += $8; passed += $11 }
            END { printf "| all %d packages | | %d | %d of %d | | %d | |\n", length(packages), programs, moved, all, passed }'
        sed -n '/<!-- end -->/,$p' "$study/README.md"
    } >"$study/README.md.new"
    mv "$study/README.md.new" "$study/README.md"
}
