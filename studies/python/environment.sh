# Sourced by the other scripts: what is studied, its workload and its tests.

set -euo pipefail

study=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program_names=libpython3.11.so.1.0
. "$study/../environment.sh"
plain_programs=$STUDY_WORK/plain
least_tests=1000

# with_library FOLDER COMMAND …: what loads the library takes it from FOLDER. In the background of a shell Ctrl-C is ignored, which
# some tests count on.
with_library() {
    (cd "$build" && env -i --default-signal=INT PATH="$PATH" HOME=/tmp LC_ALL=C.UTF-8 TZ=UTC LD_LIBRARY_PATH="$1" PYTHONHASHSEED=1 "${@:2}")
}

# run_workload LIBRARY [WRAPPER …]: a pure-Python benchmark.
run_workload() {
    with_library "$(dirname "$1")" "${@:2}" ./python -S "$study/benchmark.py"
}

TESTS=${TESTS:-test_exceptions test_generators test_asyncio test_ctypes test_re test_json test_threading test_grammar test_descr
    test_functools test_coroutines test_contextlib test_dict test_list test_set test_unicode test_long test_float test_struct
    test_pickle test_decimal test_datetime test_itertools test_collections test_traceback test_gc test_weakref test_typing
    test_dataclasses test_enum test_compile test_ast test_capi test_sqlite3 test_zlib test_hashlib test_subprocess}

# run_tests NAME FOLDER
run_tests() {
    local results=$RESULTS/check/$1
    # Some tests leave their processes behind if a library is broken.
    with_library "$2" ./python -m test -j3 --timeout 900 --junit-xml "$results.xml" $TESTS > "$results.log" 2>&1 || true
    [ -s "$results.xml" ] || { : > "$results.outcomes"; return; }
    with_library "$plain_programs" ./python "$study/outcomes.py" "$results.xml" > "$results.outcomes"
}
