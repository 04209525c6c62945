# Sourced by run.sh: writes results.tsv as a table into README.md, one row for each package.

# rows: of results.tsv; what moved is told of the first mode that has a column.
rows() {
    awk -F'\t' -v modes="random-1 reverse instrumented optimized" '
        function number(count, what) { return count + 0 ? ", " count + 0 " " what : "" }
        BEGIN { columns = split(modes, column, " ") }
        NR > 1 {
            if (!($1 in version)) packages[++count] = $1
            version[$1] = $2
            result[$1, $3] = $4
            seen[$1, $3] = $5 number($6, "refused") " | " $7 " of " $8
            tests[$1, $3] = $9 number($10, "fail")
            runs++
            if ($3 == column[1]) { programs += $5; moved += $7; all += $8 }
            passed += $11
            alike += $4 ~ /^same/
        }
        END {
            for (i = 1; i <= count; i++) {
                name = packages[i]
                for (c = columns; c; c--) if ((name, column[c]) in seen) first = column[c]
                printf "| %s %s | %s | %s |", name, version[name], seen[name, first], tests[name, first]
                for (c = 1; c <= columns; c++) printf " %s |", (name, column[c]) in result ? result[name, column[c]] : ""
                print ""
            }
            printf "| all %d packages, %d runs | %d | %d of %d | %d passed after | %d of %d same | | | |\n", \
                count, runs, programs, moved, all, passed, alike, runs
        }' "$RESULTS"
}

# Results that are kept elsewhere (RESULTS=FILE) stay out of README.md.
write_tables() {
    [ -s "$RESULTS" ] && [ "$RESULTS" -ef "$study/results.tsv" ] || return 0
    {
        sed '/<!-- results -->/q' "$study/README.md"
        echo '| package | programs | functions moved | tests before | random-1 | reverse | instrumented | optimized |'
        echo '|---|---|---|---|---|---|---|---|'
        rows
        sed -n '/<!-- end -->/,$p' "$study/README.md"
    } >"$study/README.md.new"
    mv "$study/README.md.new" "$study/README.md"
}
