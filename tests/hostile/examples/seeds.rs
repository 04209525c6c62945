//! Writes the seeds that come from programs anew, from the cases of `tests/cases`: seeds FOLDER
//!
//! `counter_file`: what runs of instrumented programs counted. `image`: small programs, each with constructs of its own.

use std::path::Path;
use std::process::Command;

use afterlink_pipeline::{InstrumentOptions, Silent, instrument};
use afterlink_testkit::sandbox::built;
use std::os::unix::fs::PermissionsExt;

/// Cases and variants whose program is small.
const IMAGES: [(&str, &str, &str); 9] = [
    ("gcc-no-library", "no_library", "gcc -O2 -static-pie"),
    ("gcc-cold-fragments", "cold_fragments", "gcc -O2 -fuse-ld=lld"),
    ("clang-cold-fragments", "cold_fragments", "clang -O2 -fuse-ld=lld"),
    ("gcc-conditional-tail-call", "conditional_tail_call", "gcc -O2 -fuse-ld=lld"),
    ("gcc-entered-inside", "entered_inside", "gcc -O2 -fuse-ld=lld"),
    ("gcc-short-branches", "short_branches", "gcc -O2 -fuse-ld=lld"),
    ("clang-stack-frames", "stack_frames", "clang -O2 -fno-pie -no-pie -fuse-ld=lld"),
    ("clang-thread-local", "thread_local", "clang -O2 -fuse-ld=lld"),
    ("gcc-jump-tables-adjacent", "jump_tables_adjacent", "gcc -O2 -fno-pie -no-pie -fuse-ld=lld"),
];

/// Cases whose counters are kept: a loop, calls that don't come back, indirect jumps with shared targets.
const COUNTED: [(&str, &str, &str); 3] = [
    ("no-library", "no_library", "gcc -O2 -static"),
    ("interpreter", "interpreter", "gcc -O2"),
    ("set-jump", "set_jump", "gcc -O2"),
];

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let folder = Path::new(&folder);
    for (name, case, variant) in IMAGES {
        let bytes = std::fs::read(built(case, variant)).expect("the program was built");
        println!("image/{name}: {} bytes", bytes.len());
        std::fs::write(folder.join("image").join(name), bytes).expect("a folder that can be written");
    }
    for (name, case, variant) in COUNTED {
        let program = std::fs::read(built(case, variant)).expect("the program was built");
        let counters = std::path::absolute(folder.join("counter_file").join(name)).expect("a path");
        let options = InstrumentOptions {
            counter_file: counters.to_str().expect("a plain path").into(),
            count_targets: true,
            ..InstrumentOptions::default()
        };
        let counted = instrument(&program, &options, &Silent).expect("it can be instrumented");
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let path = scratch.path().join("counted");
        std::fs::write(&path, counted.bytes).expect("a folder that can be written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("its mode can be set");
        let _ = std::fs::remove_file(&counters);
        let status = Command::new(&path).stdout(std::process::Stdio::null()).status().expect("it runs");
        let size = std::fs::metadata(&counters).expect("it counts").len();
        println!("counter_file/{name}: {size} bytes; {status}");
    }
}
