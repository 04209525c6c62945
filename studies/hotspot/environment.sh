# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=libjvm.so
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain
source=$STUDY_WORK/source
jdk=$build/jdk                                   # as the build leaves it, with its classes in folders
boot_jdk=/usr/lib/jvm/java-17-openjdk-amd64      # Debian's: it compiles the classes, and runs jtreg

use_library() { cp --remove-destination "$1" "$jdk/lib/server/libjvm.so"; }

# run_workload LIBRARY [WRAPPER …]: compiles Workload.java and runs it, with all that makes runs differ turned off.
run_workload() {
    use_library "$1"
    "${@:2}" "$jdk/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xbatch -XX:-UsePerfData "$study/Workload.java"
}

# These give the same outcomes each time.
TESTS=${TESTS:-compiler/c1 compiler/exceptions runtime/Nestmates runtime/exceptionMsgs gc/serial gc/parallel gc/epsilon}

# run_tests NAME FOLDER: with a library so broken that there is no summary, there are no outcomes.
run_tests() {
    local jtreg=$STUDY_WORK/jtreg
    rm -rf "$jtreg"
    use_library "$2/libjvm.so"
    (cd "$source/test/hotspot/jtreg" && JT_JAVA=$boot_jdk jtreg -agentvm -automatic -concurrency:2 -timeoutFactor:6 -ignore:quiet -exclude:ProblemList.txt \
        "-jdk:$jdk" "-w:$jtreg/work" "-r:$jtreg/report" $TESTS) > "$RESULTS/check/$1.log" 2>&1 || true
    use_library "$plain_programs/libjvm.so"
    { awk '{ print $2, $1 }' "$jtreg/report/text/summary.txt" || true; } 2>> "$RESULTS/check/$1.log" | sort > "$RESULTS/check/$1.outcomes"
}
