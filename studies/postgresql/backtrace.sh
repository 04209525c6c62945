#!/usr/bin/env bash
# Do errors in a rewritten server show the same functions as in the plain one?
#
#   backtrace.sh [SERVER …]     default: the server that afterlink optimizes by both workloads
#
# 1. `backtrace_functions`: the server itself writes, by libgcc's unwinder and the dynamic symbol table, who called the
#    function that raised an error. The same errors are raised in both servers, and the names compared, frame by frame.
# 2. gdb, by the unwind tables and the full symbol table: the same errors again, stopped in errfinish, which the error
#    paths call out of the cold parts of split functions.
# A fragment's name counts as its function's (int4div.cold is int4div, and so is int4div.inlined where it stands in place
# of a call). A frame without a name in the dynamic symbol table, as static functions have, is looked up in the full
# one. A frame that has a name before must have it after.
# Exits non-zero on any difference. Writes $RESULTS/backtrace.json.
. "$(dirname "$0")/environment.sh"
. "$study/server.sh"
. "$study/rewrite.sh"

# One statement a line; each raises one error, or shows one message, from the function named first.
errors() {
    cat <<'SQL'
int4div SELECT 1/0
int4div SELECT count(aid / (aid - aid)) FROM pgbench_accounts
int8div SELECT aid::int8 / (bid - 1)::int8 FROM pgbench_accounts
int4mul SELECT sum(aid * 2000000000) FROM pgbench_accounts
set_var_from_str SELECT 'many'::numeric
sqrt_var SELECT sqrt(-aid::numeric) FROM pgbench_accounts
pg_strtoint32 SELECT 'many'::int4
float_zero_divide_error SELECT 1::float8 / 0
DateTimeParseError SELECT 'tomorrowish'::date
ArrayCount SELECT '{1,2'::int[]
generate_series_step_int4 SELECT * FROM generate_series(1, 2, 0)
errorMissingColumn SELECT nothing FROM pgbench_accounts
ParseFuncOrColumn SELECT nothing(1)
scanner_yyerror SELECT FROM WHERE
parserOpenTable SELECT * FROM nothing
_bt_check_unique INSERT INTO pgbench_accounts VALUES (1, 1, 1, '')
ExecConstraints INSERT INTO pgbench_accounts VALUES (NULL, 1, 1, '')
heap_create_with_catalog CREATE TABLE pgbench_accounts (one int)
RE_compile_and_cache SELECT 'a' ~ '('
json_ereport_error SELECT '{"a":'::json
text_substring SELECT substring('text' FROM 2 FOR -1)
jsonpath_yyerror SELECT '$[*'::jsonpath
SQL
}

# names_of_frames BINARY: turns backtrace frames, one a line, into function names, one a line; "-" where there is none.
# A return address may be the first of the next function, so the byte before it is looked up.
names_of_frames() {
    awk -v symbols="$1.symbols" '
        function number(hex,    i, value) {
            value = 0
            for (i = 1; i <= length(hex); i++) value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return value
        }
        function whose(address,    low, high, middle) {
            low = 1; high = count
            while (low < high) {
                middle = int((low + high + 1) / 2)
                if (start[middle] <= address) low = middle; else high = middle - 1
            }
            return address < start[low] + size[low] ? name[low] : "-"
        }
        BEGIN { while ((getline line < symbols) > 0) { split(line, f, " "); count++; start[count] = f[1]; size[count] = f[2]; name[count] = f[3] } }
        /\([^)+]+\+0x[0-9a-f]+\) \[/ { sub(/.*\(/, ""); sub(/\+0x.*/, ""); sub(/\.(cold|warm|rest|inlined|part).*/, ""); print; next }
        /\(\+0x[0-9a-f]+\) \[/ { library = /\.so[.0-9]*\(/; sub(/.*\(\+0x/, ""); sub(/\).*/, "")
            found = library ? "-" : whose(number($0) - 1); sub(/\.(cold|warm|rest|inlined|part|constprop|isra).*/, "", found); print "(" found ")"; next }
        { print "-" }'
}

# list_symbols BINARY: functions by address, for names_of_frames: start and size in decimal, name.
list_symbols() {
    readelf -sW "$1" | awk '$4 == "FUNC" && $7 != "UND" && $3 != 0 { print $2, $3, $8 }' | sort -u |
        while read -r start size name; do printf '%d %d %s\n' "0x$start" "$size" "$name"; done | sort -n > "$1.symbols"
}

# raise_errors SERVER NAME: runs every statement and leaves in $out/NAME.frames each one's frames, by name.
raise_errors() {
    local data=$STUDY_WORK/data-backtrace function statement line
    copy_data "$data"
    start_server "$1" "$data"
    list_symbols "$1"
    : > "$out/$2.frames"
    while read -r function statement; do
        line=$(wc -l < "$data/server.log")
        as_user "$installation/bin/psql" -h "$sockets" -U study -qAt postgres -c "SET backtrace_functions = '$function'" \
            -c "$statement" > /dev/null 2> "$out/$2.messages" || true
        {
            echo "# $function: $statement"
            tail -n "+$((line + 1))" "$data/server.log" | sed -n '/BACKTRACE:/,/STATEMENT:/p' | { grep ') \[0x' || true; } | names_of_frames "$1"
        } >> "$out/$2.frames"
    done < <(errors)
    stop_server "$data"
    cp "$data/server.log" "$out/$2.log"
}

# debug_errors SERVER NAME: the same statements in a single-user server under gdb, stopped whenever an error is raised.
debug_errors() {
    local data=$STUDY_WORK/data-backtrace raised=$STUDY_WORK/counts
    copy_data "$data"
    make_counts_directory
    errors | sed 's/^[^ ]* //' > "$raised/statements.sql"
    {
        printf 'set %s\n' 'pagination off' 'confirm off' 'width 0' 'print demangle off' 'print asm-demangle off'
        printf '%s\n' 'handle SIGUSR1 nostop noprint pass' 'break errfinish'
        echo "run --single -D $data ${server_settings[*]} -c log_checkpoints=off postgres < statements.sql > answers"
        # A few messages come before the first statement; past the last stop gdb finds no program and ends.
        for _ in $(seq 40); do printf '%s\n' 'echo # stop\n' bt continue; done
    } > "$raised/commands.gdb"
    (cd "$raised" && as_user SHELL=/bin/sh gdb -q -nx -batch -x commands.gdb "$1") > "$out/$2.gdb" 2>&1 || true
    # "#3  0x000055… in int4div.cold () at …"  ->  int4div
    sed -n 's/^# stop$/# stop/p; s/^#[0-9]* *\(0x[0-9a-f]* in \)\{0,1\}\([^ ]*\) (.*/\2/p' "$out/$2.gdb" |
        sed 's/\.\(cold\|warm\|rest\|inlined\|part\|constprop\|isra\).*//' > "$out/$2.stops"
}

# compare_frames NAME: prints how many frames are the same, and each that is not; a static function's name in
# parentheses may have lost or gained them, but no name that was printed before may be missing now.
compare_frames() {
    paste -d'\t' "$out/plain.frames" "$out/$1.frames" | awk -F'\t' '
        { before = $1; after = $2 }
        /^# / { statement = $1; if (before == after) next }
        { bare_before = before; bare_after = after; gsub(/[()]/, "", bare_before); gsub(/[()]/, "", bare_after)
          frames++
          if (bare_before == bare_after && (before == after || before ~ /^\(/)) same++
          else print "  " statement ": " before " became " after > "/dev/stderr" }
        END { print same + 0, frames + 0 }'
}

compare_server() { # SERVER NAME
    local same frames stops cold raised
    raise_errors "$1" "$2"
    debug_errors "$1" "$2"
    read -r same frames < <(compare_frames "$2")
    raised=$(grep -c '^# ' "$out/$2.frames")
    stops=$(grep -c '^# stop' "$out/$2.stops" || true)
    cold=$(grep -c '^#.*\.cold' "$out/$2.gdb" || true)
    verdict='same'
    [ "$frames" -gt 100 ] && [ "$same" -eq "$frames" ] || verdict='DIFFERENT names in the log'
    diff -u "$out/plain.stops" "$out/$2.stops" > "$out/$2.stops.diff" || verdict='DIFFERENT frames in gdb'
    grep -q . "$out/$2.stops" && [ "$cold" -gt 0 ] || verdict='UNTESTED: no frame in a cold fragment'
    [ "$verdict" = same ] || failures=$((failures + 1))
    printf '%-24s %6d %8d of %-8d %10d %12d  %s\n' "$2" "$raised" "$same" "$frames" \
        "$(grep -vc '^#' "$out/$2.stops" || true)" "$cold" "$verdict"
    rows+=("{\"server\":\"$2\",\"errors\":$raised,\"same_frames\":$same,\"frames\":$frames,\"gdb_stops\":$stops,\"gdb_cold_frames\":$cold,\"verdict\":\"$verdict\"}")
}

install_packages gdb binutils
need_build
prepare_data
out=$RESULTS/backtrace
mkdir -p "$out"
failures=0
rows=()
trap '[ ! -f "$STUDY_WORK/data-backtrace/postmaster.pid" ] || stop_server "$STUDY_WORK/data-backtrace"' EXIT
if [ "$#" -eq 0 ]; then
    need_afterlink
    name=$(make_server optimized)
    set -- "$servers/$name/postgres"
fi
mkdir -p "$servers/plain"
cp "$plain_server" "$servers/plain/postgres"
raise_errors "$servers/plain/postgres" plain
debug_errors "$servers/plain/postgres" plain
printf '%-24s %6s %8s    %-8s %10s %12s\n' server errors same frames gdb-frames gdb-in-cold
compare_server "$servers/plain/postgres" plain
for server in "$@"; do compare_server "$(realpath "$server")" "$(basename "$(dirname "$server")")"; done
(IFS=,; printf '{"servers":[%s]}\n' "${rows[*]}" > "$RESULTS/backtrace.json")
[ "$failures" -eq 0 ] || die "$failures servers differ; see $out"
