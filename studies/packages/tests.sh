# Sourced by run.sh: reads what test suites print.

# tests_of LOG: one line for each test that a log tells of, "PASS name" or "FAIL name", whatever it was that printed it. Times,
# and how often something was tried, are left out, so that two runs give the same lines.
tests_of() {
    awk '
        # A test suite that tells only how many: as many lines.
        function many(result, count,    i) { for (i = 1; i <= count; i++) print result, "test " i }
        function say(result, name) { gsub(/[ \t]+/, " ", name); sub(/^ /, "", name); sub(/ $/, "", name); print result, name }
        function ended() { if (started) say(failed ? "FAIL" : "PASS", started); started = ""; failed = 0 }
        # A line is what a terminal would show of it.
        { sub(/\r$/, ""); gsub(/\033\[[0-9;]*m/, ""); sub(/^.*\r/, "") }
        # automake, DejaGnu, and many of their kind
        /^(PASS|XFAIL): / { name = $0; sub(/^[A-Z]*: */, "", name); say("PASS", name); next }
        /^(FAIL|XPASS|ERROR|UNRESOLVED): / { name = $0; sub(/^[A-Z]*: */, "", name); sub(/ \(exit status.*/, "", name); say("FAIL", name); next }
        # autotest: " 12: name of the test            ok"
        /^ *[0-9]+: .* (ok|FAILED( .*)?|expected failure.*)$/ {
            result = / FAILED/ ? "FAIL" : "PASS"; name = $0; sub(/ (ok|FAILED.*|expected failure.*)$/, "", name); say(result, name); next }
        # the test anything protocol
        /^ok [0-9]+/ { name = $0; sub(/^ok /, "", name); say("PASS", name); next }
        /^not ok [0-9]+/ { name = $0; sub(/^not ok /, "", name); say(/# TODO/ ? "PASS" : "FAIL", name); next }
        # prove, and perl: "t/name .. ok"
        /\.\. ?ok( .*)?$/ { name = $0; sub(/ ?\.\.+ ?ok.*/, "", name); say("PASS", name); next }
        /\.\. ?(FAILED|Failed|Dubious).*$/ { name = $0; sub(/ ?\.\.+ ?(FAILED|Failed|Dubious).*/, "", name); say("FAIL", name); next }
        # ctest, meson
        /Test +#[0-9]+: .* Passed / { name = $0; sub(/.*Test +#[0-9]+: /, "", name); sub(/ \.*  *Passed.*/, "", name); say("PASS", name); next }
        /Test +#[0-9]+: .*\*\*\*/ { name = $0; sub(/.*Test +#[0-9]+: /, "", name); sub(/ \.*\*\*\*.*/, "", name); say("FAIL", name); next }
        /^ *[0-9]+\/[0-9]+ .* (OK|FAIL|TIMEOUT|ERROR) +[0-9.]+ ?s/ {
            result = / OK +[0-9]/ ? "PASS" : "FAIL"; name = $0; sub(/^ *[0-9]+\/[0-9]+ /, "", name); sub(/ (OK|FAIL|TIMEOUT|ERROR) .*/, "", name)
            say(result, name); next }
        # curl: "test 0001...[HTTP GET]" and then a line of its own; redis: "[ok]: name"; php: "PASS name [file]"
        /^\[ok\]: / { name = $0; sub(/^\[ok\]: /, "", name); sub(/ \([0-9]+ ms\)$/, "", name); say("PASS", name); next }
        /^\[(err|exception)\]: / { name = $0; sub(/^\[[a-z]*\]: /, "", name); say("FAIL", name); next }
        /^PASS .*\[.*\.phpt\]/ { say("PASS", substr($0, 6)); next }
        /^FAIL .*\[.*\.phpt\]/ { say("FAIL", substr($0, 6)); next }
        /^ *[0-9-]+[a-z-]* OK \([0-9]+ +out of/ { say("PASS", curl); next }
        /^test [0-9][0-9]+\.\.\.\[/ { curl = $0; sub(/\].*/, "]", curl); if (/FAILED/) say("FAIL", curl) }
        # CPython: "0:00:01 [ 1/30] test_name passed"; Tcl, SQLite, Ruby: only totals
        /\] test_[a-z_0-9]+( passed)?$/ { name = $0; sub(/.*\] /, "", name); sub(/ passed/, "", name); say("PASS", name); next }
        /^test test_[a-z_0-9]+ (failed|crashed)/ { say("FAIL", $2); next }
        /Total\t[0-9]+\tPassed\t[0-9]+/ { many("PASS", $5); many("FAIL", $9) }
        /[0-9]+ errors out of [0-9]+ tests/ { many("PASS", $5 - $1); many("FAIL", $1) }
        /^PASS all [0-9]+ tests/ { many("PASS", $3) }
        # m4, bash: a test is named when it starts, and what goes wrong is told behind it
        /^Checking \.\// { ended(); started = $2; next }
        /^run-[a-z]/ && NF == 1 { ended(); started = $1; next }
        started && /mismatch$|^[0-9]+(,[0-9]+)?[acd][0-9]+(,[0-9]+)?$/ { failed = 1 }
        END { ended() }
        # valgrind: the same, in the folder that was named last
        /^-- (Running|Finished) +tests in / { folder = $5; if ($2 == "Finished") sub(/\/[^\/]*$/, "", folder) }
        /^[^ ]+: +valgrind / { ended(); started = folder "/" $1; sub(/:$/, "", started); next }
        started && /^\*\*\* .* failed \(/ { failed = 1; next }
        # mksh
        /^pass \.\// { say("PASS", $2); next }
        /^FAIL \.\// { say("FAIL", $2); next }
        # libevent
        /^ *[a-z0-9_.-]+(\/[a-z0-9_]+)?: (\[forking\] )?OK(AY)?$/ { name = $1; sub(/:$/, "", name); say("PASS", name); next }
        /^ *\[[a-z0-9_]+ FAILED\]$/ { name = $1; sub(/^\[/, "", name); say("FAIL", name); next }
        # R: "  running code in 'eval-etc.R' ... OK"
        /^ *running code in .* \.\.\. ?OK/ { split($0, quoted, "\047"); say("PASS", quoted[2]); next }
        # varnishtest: "#    top  TEST reg-tests/log/log_uri.vtc passed (0.335)"
        /^# +top +TEST .* (passed|FAILED) \(/ { say(/ passed \(/ ? "PASS" : "FAIL", $4); next }
        # ffmpeg: a test is named when it starts
        /^TEST +[a-z]/ { say("PASS", $2); next }
        /^Test [^ ]+ failed/ { say("FAIL", $2); next }
    ' "$1"
}
