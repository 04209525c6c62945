# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=libjvm.so
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain
source=$STUDY_WORK/source
jdk=$build/jdk    # as the build leaves it, with its classes in folders

use_library() { cp --remove-destination "$1" "$jdk/lib/server/libjvm.so"; }

# run_workload LIBRARY [WRAPPER …]: compiles Workload.java and runs it, with all that makes runs differ turned off.
run_workload() {
    use_library "$1"
    "${@:2}" "$jdk/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xbatch -XX:-UsePerfData "$study/Workload.java"
}

# These take every kind of compiler, collector and signal, and give the same outcomes each time.
TESTS=${TESTS:-compiler/c1 compiler/exceptions runtime/Nestmates runtime/exceptionMsgs gc/serial gc/parallel gc/epsilon}

run_tests() { # NAME FOLDER
    local results=$RESULTS/check/$1
    use_library "$2/libjvm.so"
    (cd "$source/test/hotspot/jtreg" && JT_JAVA=$boot_jdk jtreg -agentvm -automatic -concurrency:2 -timeoutFactor:6 -ignore:quiet -exclude:ProblemList.txt \
        "-jdk:$jdk" "-w:$results.work" "-r:$results.report" $TESTS) > "$results.log" 2>&1 || true
    awk '{ print $2, $1 }' "$results.report/text/summary.txt" | sort > "$results.outcomes"
    rm -rf "$results.work" "$results.report"
    use_library "$plain_programs/libjvm.so"
}

boot_jdk=/usr/lib/jvm/java-17-openjdk-amd64
