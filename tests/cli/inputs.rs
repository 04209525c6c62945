//! Inputs that can't be rewritten: each is answered with one line that names the file, what is wrong and the next step, by
//! every command that takes a program, and nothing is written.

use std::fs;
use std::path::Path;
use std::process::Command;

use afterlink_testkit::build::link_assembly;
use afterlink_testkit::sandbox::{Sandbox, assert_clear_error, built};
use afterlink_testkit::tool::afterlink;

fn program() -> Vec<u8> {
    fs::read(built("tiny", "gcc -O2")).unwrap()
}

/// Asserts that `info`, `optimize` and `instrument` each refuse `input` clearly, with `words`, and write nothing.
#[track_caller]
fn assert_refused(sandbox: &Sandbox, input: &Path, words: &[&str]) {
    let input = input.to_str().unwrap();
    let before = sandbox.files();
    let mut with_name = words.to_vec();
    with_name.push(Path::new(input).file_name().unwrap().to_str().unwrap());
    let optimize = sandbox.afterlink(&["optimize", input, "--scope", "all", "-o", "out"]);
    assert_clear_error(&optimize, &with_name);
    let instrument = sandbox.afterlink(&["instrument", input, "-o", "out", "--counters", "counters"]);
    assert_clear_error(&instrument, &with_name);
    // What `info` finds of a program that can be read but not rewritten is its answer, not its failure.
    let info = sandbox.afterlink(&["info", input]);
    assert_eq!(info.exit, 1, "{}", info.stderr());
    let said = info.stdout() + &info.stderr();
    assert!(words.iter().all(|w| said.to_lowercase().contains(&w.to_lowercase())), "{words:?}: {said}");
    assert_eq!(sandbox.files(), before);
}

fn refuse_bytes(bytes: &[u8], words: &[&str]) {
    let sandbox = Sandbox::default();
    let input = sandbox.put("input-program", bytes);
    assert_refused(&sandbox, &input, words);
}

fn with_byte(at: usize, value: u8) -> Vec<u8> {
    let mut bytes = program();
    bytes[at] = value;
    bytes
}

#[test]
fn no_elf_file() {
    for bytes in [&b"#!/bin/sh\nexit 0\n"[..], b"", b"\x7fEL", &[0; 5000]] {
        refuse_bytes(bytes, &["not an ELF file"]);
    }
}

/// Self-extracting programs find what was appended by the end of their file.
#[test]
fn something_appended() {
    let mut bytes = program();
    bytes.extend_from_slice(&[0; 100]);
    let sandbox = Sandbox::default();
    let padded = sandbox.put("padded", &bytes);
    assert_eq!(sandbox.afterlink(&["info", padded.to_str().unwrap()]).exit, 0, "zeros are no data");
    bytes.extend_from_slice(b"PK");
    refuse_bytes(&bytes, &["appended", "file offset"]);
}

/// Haskell's functions have data in front of them. A name as long as that of GHC's runtime takes its place.
#[test]
fn made_by_ghc() {
    let (old, new) = (b"\0__FRAME_END__\0", b"\0stg_ap_v_info\0");
    let mut bytes = program();
    let at = bytes.windows(old.len()).position(|w| w == old).unwrap();
    bytes[at..at + new.len()].copy_from_slice(new);
    refuse_bytes(&bytes, &["GHC", "stg_ap_v_info"]);
}

/// Programs for AArch64 are read: `info` tells what they are made of. Nothing else takes them.
#[test]
fn for_aarch64() {
    let sandbox = Sandbox::default();
    let source = sandbox.put("program.c", b"int main(int argc, char **argv) { return argc - 1; }");
    let program = source.with_extension("out");
    let gcc = Command::new("aarch64-linux-gnu-gcc")
        .args(["-O2", "-Wl,-q", "-o"])
        .args([&program, &source])
        .status()
        .expect("install gcc-aarch64-linux-gnu, or run ./test.sh");
    assert!(gcc.success());
    let words = ["AArch64", "not yet rewritten"];
    assert_refused(&sandbox, &program, &words);
    let path = program.to_str().unwrap();
    assert_clear_error(&sandbox.afterlink(&["verify", path, path]), &words);
    let info = sandbox.afterlink(&["info", path]).stdout();
    assert!(info.contains("processor    AArch64") && info.contains("are understood"), "{info}");
}

#[test]
fn another_class_byte_order_or_machine() {
    refuse_bytes(&with_byte(4, 1), &["32-bit"]);
    refuse_bytes(&with_byte(5, 2), &["big-endian"]);
    refuse_bytes(&with_byte(18, 183), &["aarch64"]);
    refuse_bytes(&with_byte(18, 243), &["risc-v"]);
    refuse_bytes(&with_byte(18, 21), &["machine 21"]);
}

#[test]
fn another_kind_of_elf_file() {
    refuse_bytes(&with_byte(16, 4), &["core dump"]);
    let sandbox = Sandbox::default();
    let object = built("tiny", "gcc -O2").with_file_name("main.o");
    assert_refused(&sandbox, &object, &["object file"]);
}

#[test]
fn no_relocations_kept() {
    let sandbox = Sandbox::default();
    let objects = built("tiny", "gcc -O2").with_file_name("main.o");
    let linked = sandbox.run(Command::new("gcc-12").arg(objects).args(["-o", "plain"]));
    assert_eq!(linked.exit, 0, "{}", linked.stderr());
    assert_refused(&sandbox, &sandbox.path("plain"), &["relocations", "--emit-relocs"]);
}

/// Forms of relocations that LLVM writes on request.
#[test]
fn relocations_of_unknown_form() {
    let crel = ["-Wa,--allow-experimental-crel,--crel", "-Wl,--emit-relocs"];
    let packed = ["-fPIE", "-pie", "-Wl,--emit-relocs,--pack-dyn-relocs=android"];
    for (options, section, next) in
        [(&crel[..], ".crel.text", "without --crel"), (&packed, ".rela.dyn", "--pack-dyn-relocs")]
    {
        let sandbox = Sandbox::default();
        let source = sandbox.put(
            "program.c",
            b"int f(void) { return 3; } int (*p)(void) = f; int main(void) { return p(); }",
        );
        let program = source.with_extension("out");
        let mut clang = Command::new("clang-22");
        clang.args(["-O2", "-fuse-ld=lld"]).args(options).arg("-o").args([&program, &source]);
        assert!(clang.status().expect("install clang-22 and lld-22, or run ./test.sh").success());
        assert_refused(&sandbox, &program, &[section, "does not read", next]);
    }
}

#[test]
fn stripped() {
    // eu-strip keeps the symbols that kept relocations name: its output is not stripped.
    for tool in ["strip", "llvm-strip-22"] {
        let sandbox = Sandbox::default();
        sandbox.put("stripped", &program());
        assert_eq!(sandbox.run(Command::new(tool).arg("stripped")).exit, 0);
        assert_refused(&sandbox, &sandbox.path("stripped"), &["stripped"]);
    }
}

#[test]
fn already_processed() {
    let sandbox = Sandbox::default();
    sandbox.put("in", &program());
    let first = sandbox.afterlink(&["optimize", "in", "--scope", "all", "-o", "done"]);
    assert_eq!(first.exit, 0, "{}", first.stderr());
    assert_refused(&sandbox, &sandbox.path("done"), &["already", "afterlink"]);
}

/// The section headers stand at the end of the file, so that every cut takes some of them.
#[test]
fn cut_short_anywhere() {
    for variant in ["gcc -O2", "clang -O2 -fuse-ld=lld"] {
        let bytes = fs::read(built("tiny", variant)).unwrap();
        let sandbox = Sandbox::default();
        for keep in (0..bytes.len()).step_by(64) {
            let name = format!("cut-at-{keep}");
            sandbox.put(&name, &bytes[..keep]);
            let optimize = sandbox.afterlink(&["optimize", &name, "--scope", "all", "-o", "out"]);
            assert_clear_error(&optimize, &[&name]);
            let info = sandbox.afterlink(&["info", &name]);
            assert_eq!(info.exit, 1, "{name}: {}", info.stderr());
            assert!(!info.stderr().contains("panicked"), "{name}: {}", info.stderr());
            fs::remove_file(sandbox.path(&name)).unwrap();
        }
        assert!(sandbox.files().is_empty());
    }
}

#[test]
fn what_can_not_be_read() {
    let sandbox = Sandbox::default();
    assert_refused(&sandbox, &sandbox.path("absent"), &[]);
    fs::create_dir(sandbox.path("folder")).unwrap();
    assert_refused(&sandbox, &sandbox.path("folder"), &["directory"]);
    assert_refused(&sandbox, Path::new("/dev/null"), &["no regular file"]);
    assert_refused(&sandbox, &sandbox.path("absent/deeper"), &[]);
    // Nobody writes into this pipe: a command that opened it would wait for ever.
    assert_eq!(sandbox.run(Command::new("mkfifo").arg("pipe")).exit, 0);
    assert_refused(&sandbox, &sandbox.path("pipe"), &["no regular file"]);
    let file = sandbox.put("file", b"");
    assert_refused(&sandbox, &file.join("below-a-file"), &[]);
}

/// The note stands where the program headers have to grow, and the program knows its address.
#[test]
fn note_that_is_named() {
    let sandbox = Sandbox::default();
    let source = r#"
__attribute__((section(".note.own"), used, aligned(4))) const int note[] = {4, 8, 1, 0x6e776f, 7, 8};
static const int *const volatile where = note;
int main(void) { return where[4]; }
"#;
    fs::write(sandbox.path("noted.c"), source).unwrap();
    let status = Command::new("clang-22")
        .args(["-O1", "-fPIE", "-static-pie", "-fuse-ld=lld-22", "-Wl,--emit-relocs"])
        .args(["noted.c", "-o", "noted"])
        .current_dir(sandbox.path("."))
        .status();
    assert!(status.unwrap().success());
    let words = ["noted", ".note.own", "no room for one more program header", "dl_iterate_phdr"];
    let before = sandbox.files();
    let optimize = sandbox.afterlink(&["optimize", "noted", "--scope", "all", "-o", "out"]);
    assert_clear_error(&optimize, &words);
    let instrument = sandbox.afterlink(&["instrument", "noted", "-o", "out", "--counters", "counters"]);
    assert_clear_error(&instrument, &words);
    assert_eq!(sandbox.files(), before);
}

/// GNU gold gives static programs no header for unwinding, so two have to be added, and there is room for one: what the error says to do helps.
#[test]
fn headers_that_do_not_fit() {
    let sandbox = Sandbox::default();
    sandbox.put("main.c", b"#include <stdio.h>\nint main(void) { return puts(\"here\") < 0; }\n");
    let link = |flags: &[&str]| {
        let mut command = Command::new("gcc");
        command.args(["-O1", "-static", "-fuse-ld=gold", "main.c", "-o", "program", "-Wl,--emit-relocs"]);
        assert_eq!(sandbox.run(command.args(flags)).exit, 0);
        sandbox.afterlink(&["optimize", "program", "--scope", "all", "-o", "out"])
    };
    let step = "-Wl,--eh-frame-hdr,--build-id";
    for flags in [&[][..], &["-Wl,--build-id"]] {
        assert_clear_error(&link(flags), &["program", "no room for one more program header", step]);
        assert!(!sandbox.path("out").exists());
    }
    let optimized = link(&[step]);
    assert_eq!(optimized.exit, 0, "{}", String::from_utf8_lossy(&optimized.stderr));
    assert_eq!(sandbox.run(&mut Command::new(sandbox.path("out"))).stdout, b"here\n");
}

/// Where what is in the way cannot give way, the advice is about the option that put it there, and `info` says the same.
#[test]
fn options_that_leave_no_room_for_program_headers() {
    let sandbox = Sandbox::default();
    sandbox.put("main.c", b"#include <stdio.h>\nint main(void) { return puts(\"here\") < 0; }\n");
    let ways = [
        ("gcc -O1 -fuse-ld=gold -Wl,--build-id", "-Wl,--rosegment"),
        ("clang-22 -O1 -static -fuse-ld=lld-22 -Wl,--build-id", "-Wl,--omagic"),
    ];
    for (with, option) in ways {
        sandbox.say(&format!("{with} {option} main.c -o program -Wl,-q"));
        let words = ["no room for one more program header", &format!("link without {option}")];
        assert_refused(&sandbox, &sandbox.path("program"), &words);
        sandbox.say(&format!("{with} main.c -o program -Wl,-q"));
        assert_eq!(sandbox.afterlink(&["info", "program"]).exit, 0, "{with}");
        assert_eq!(sandbox.afterlink(&["optimize", "program", "--scope", "all", "-o", "out"]).exit, 0);
        assert_eq!(sandbox.say("./out"), "here\n");
        fs::remove_file(sandbox.path("out")).unwrap();
    }
}

/// Linkers write another table of section numbers then.
#[test]
fn more_sections_than_have_numbers() {
    let code = ".globl _start\n.type _start, @function\n_start: call f\nmov $60, %eax\nsyscall\n.size _start, . - _start\n\
                .type f, @function\nf: lea word(%rip), %rax\nret\n.size f, . - f\n.data\nword: .quad f\n";
    let sections = (0..65_300).map(|number| format!(".section s{number}, \"a\"\n.byte 1\n"));
    let source: String = std::iter::once(code.to_owned()).chain(sections).collect();
    refuse_bytes(
        &link_assembly(&source, "gcc", &["-static", "-Wl,--build-id"]),
        &["more than 65279 sections", "link it"],
    );
}

/// mold gives headers that begin with zeroed data of threads the file offset 0, as if they described what stands behind the program headers.
#[test]
fn program_headers_without_an_offset() {
    let sandbox = Sandbox::default();
    let source = "#include <stdio.h>\nstatic _Thread_local int own;\n\
        #define TEN(x) x, x, x, x, x, x, x, x, x, x\n\
        static int (*const put[])(const char *) = {TEN(TEN(puts))};\n\
        int main(int n, char **names) { own += n; return put[own](\"here\") < 0; }\n";
    sandbox.put("main.c", source.as_bytes());
    sandbox.say("gcc-12 -O1 -fPIE -pie -fuse-ld=mold -Wl,-q main.c -o program");
    let headers = sandbox.say("readelf -lW program");
    let mut rows = headers.lines().filter(|row| row.trim_start().starts_with("GNU_RELRO"));
    assert!(rows.any(|row| row.contains(" 0x000000 ")), "{headers}");
    assert_eq!(sandbox.afterlink(&["info", "program"]).exit, 0);
    for job in ["optimize program --scope all -o out", "instrument program -o out --counters counters"] {
        let outcome = sandbox.afterlink(&job.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.exit, 0, "{}", outcome.stderr());
        assert_eq!(sandbox.say("./out"), "here\n");
        assert_eq!(sandbox.afterlink(&["verify", "program", "out"]).exit, 0);
    }
}

/// Without permission: only root can become somebody else to try it, and for root nothing is forbidden.
#[test]
fn what_is_forbidden() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::default();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]).arg(afterlink_testkit::tool::afterlink());
        sandbox.run(command.args(arguments))
    };
    let allow = |name: &str, mode| {
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    sandbox.put("readable", &program());
    sandbox.put("secret", &program());
    allow(".", 0o755);
    allow("secret", 0o600);
    if run(&["--version"]).exit != 0 {
        eprintln!("not tried: this user can't become another, or that one can't run the command");
        return;
    }
    let before = sandbox.files();
    let secret = run(&["optimize", "secret", "--scope", "all", "-o", "out"]);
    assert_clear_error(&secret, &["secret", "permission denied", "readable for you"]);
    let out = run(&["optimize", "readable", "--scope", "all", "-o", "out"]);
    assert_clear_error(&out, &["out", "permission denied", "directory that you may write to"]);
    let counters = run(&["profile", "convert", "secret", "-o", "out"]);
    assert_clear_error(&counters, &["secret", "permission denied"]);
    assert_eq!(sandbox.files(), before);
}

/// An error of the command line is told by another exit code.
#[test]
fn wrong_arguments() {
    let sandbox = Sandbox::default();
    for arguments in [&["optimize"][..], &["no-such-command"], &["info", "--no-such-option", "x"], &[]] {
        let outcome = sandbox.afterlink(arguments);
        assert_eq!(outcome.exit, 64, "{arguments:?}");
        assert!(outcome.stderr().contains("Usage"), "{}", outcome.stderr());
    }
    let outcome = sandbox.afterlink(&["optimize", "x", "-o", "y", "--skip-functions", "("]);
    assert_ne!(outcome.exit, 0);
    assert!(outcome.stderr().contains("--skip-functions"), "{}", outcome.stderr());
}

/// Assembly of a function with so many indirect jumps, each of which may lead to each of so many labels (a power of two).
fn computed_jumps(jumps: u32, labels: u32) -> String {
    let jump = "movl %edi, %eax\n jmp *table(,%rax,8)\n";
    let mut text = format!(
        ".text\n .globl main\n .type main, @function\nmain:\n .cfi_startproc\n\
         movl $3, %edi\n xorl %esi, %esi\n movl $1000, %ecx\n {jump}"
    );
    let mut table = String::new();
    for label in 0..labels {
        text += &format!(".L{label}: addl ${}, %esi\n", label % 100 + 1);
        if label < jumps {
            let step = label % 7 + 1;
            text += &format!(
                "subl $1, %ecx\n js .Lend\n addl ${step}, %edi\n andl ${}, %edi\n {jump}",
                labels - 1
            );
        }
        table += &format!(" .quad .L{label}\n");
    }
    text + ".Lend: movzbl %sil, %eax\n ret\n .cfi_endproc\n .size main, . - main\n\
            .section .rodata\n .balign 8\ntable:\n"
        + &table
        + ".section .note.GNU-stack, \"\", @progbits\n"
}

/// Nobody could list all ways of such a function: it stays, and is not counted, and neither takes long or much memory.
#[test]
fn more_ways_than_can_be_followed() {
    let sandbox = Sandbox::default();
    sandbox.put("in.s", computed_jumps(4000, 32768).as_bytes());
    sandbox.say("gcc -no-pie -Wl,-q in.s -o in");
    let exit = sandbox.run(&mut Command::new(sandbox.path("in"))).exit;
    let with_a_gigabyte = |words: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -v 1048576; exec \"$0\" {words}")]).arg(afterlink());
        let outcome = sandbox.run(&mut shell);
        assert_eq!(outcome.exit, 0, "{words}: {}", outcome.stderr());
        let said = outcome.stdout().to_owned();
        assert!(said.split("\"many-ways\"").nth(1).is_some_and(|rest| rest.contains("\"main\"")), "{said}");
    };
    with_a_gigabyte("instrument in -o counting --counters counters --json");
    assert_eq!(sandbox.run(&mut Command::new(sandbox.path("counting"))).exit, exit);
    sandbox.put("profile", b"1 main 0 1 main 3 0 100\n");
    with_a_gigabyte("optimize in -o out -p profile --json");
    assert_eq!(sandbox.run(&mut Command::new(sandbox.path("out"))).exit, exit);
}

/// New code stands behind all data, and instructions reach 2 GiB.
#[test]
fn more_memory_than_instructions_reach() {
    let sandbox = Sandbox::default();
    let source = "static char room[SIZE];\n\
        __attribute__((noinline)) static long at(long i) { return room[i]++; }\n\
        int main(int argc, char **argv) { return at(argc * 1000000000l) + at(argc); }";
    let input = sandbox.put("in.c", source.as_bytes()).with_extension("");
    for flags in ["-mcmodel=large -fno-pie -no-pie", "-mcmodel=large -fpie -pie"] {
        sandbox.say(&format!("gcc -O2 {flags} -DSIZE=3221225472l -Wl,-q in.c -o in"));
        assert_refused(&sandbox, &input, &["GiB in memory", "2 GiB", "malloc"]);
    }
    // What is less than that leaves room for code.
    sandbox.say("gcc -O2 -fno-pie -no-pie -DSIZE=1900000000l -Wl,-q in.c -o in");
    let optimized = sandbox.afterlink(&["optimize", "in", "--scope", "all", "-o", "out"]);
    assert_eq!(optimized.exit, 0, "{}", optimized.stderr());
    sandbox.say("./out");
}

/// Libraries that tell their version when they are started have an interpreter, as programs have.
#[test]
fn a_library_that_can_be_started() {
    let sandbox = Sandbox::default();
    let source = "#include <unistd.h>\nconst char interpreter[] __attribute__((section(\".interp\"))) = \"INTERPRETER\";\n\
        int work(int x) { return x + 1; }\nvoid start(void) { _exit(work(-1)); }\n";
    let listed = sandbox.say("readelf -lW /bin/sh");
    let interpreter = listed.split("interpreter: ").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    sandbox.put("library.c", source.replace("INTERPRETER", interpreter).as_bytes());
    sandbox.say("gcc -O2 -shared -fPIC -Wl,-q,-soname,in.so,-e,start library.c -o in.so");
    sandbox.say("./in.so");
    let said = sandbox.afterlink(&["info", "in.so"]);
    assert!(said.stdout().starts_with("program      shared object\n"), "{}", said.stdout());
    let optimized = sandbox.afterlink(&["optimize", "in.so", "--scope", "all", "-o", "out.so"]);
    assert_eq!(optimized.exit, 0, "{}", optimized.stderr());
    sandbox.say("./out.so");
}

/// A function with `__builtin_setjmp` takes the address of a label that it does not go to itself: the reason speaks of that, too.
#[test]
fn label_that_others_go_to() {
    let sandbox = Sandbox::default();
    sandbox.put(
        "in.c",
        b"static void *place[5];
__attribute__((noinline)) void leave(int n) { if (n > 3) __builtin_longjmp(place, 1); }
__attribute__((noinline)) int returned_to(int n) {
    volatile int r = n; if (__builtin_setjmp(place)) return r + 5; leave(n); return r; }
int main(int argc, char **argv) { return returned_to(argc) - 1; }
",
    );
    sandbox.say("gcc -O2 -Wl,--emit-relocs in.c -o in");
    let info = sandbox.afterlink(&["info", "in"]);
    assert_eq!(info.exit, 0, "{}", info.stderr());
    let said = info.stdout();
    let mut lines = said.lines();
    assert!(lines.any(|l| l.contains("a label that others go to: returned_to")), "{said}");
    assert!(lines.next().is_some_and(|l| l.contains("setjmp instead of __builtin_setjmp")), "{said}");
}
