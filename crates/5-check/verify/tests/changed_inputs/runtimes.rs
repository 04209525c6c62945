//! Code is moved while nothing shows that a runtime finds it by a table of its own; then the symbol by which the runtime knows the file gets its name in
//! both files. Who writes leaves such code where it is.

use crate::support::{judge, moves, optimized};
use afterlink_testkit::build::link_assembly;
use afterlink_verify::FindingKind;

/// Exits by way of a function that a table finds by its distance from `_start`. `SYMBOL` is data, and `SECTION` holds the function.
const PROGRAM: &str = r#"
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	call compiled
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.cfi_endproc
	.size _start, . - _start

	.section SECTION, "ax", @progbits
	.p2align 4
	.globl compiled
	.type compiled, @function
compiled:
	.cfi_startproc
	testl %edi, %edi
	je 1f
	movl $7, %eax
	ret
1:	movl $8, %eax
	ret
	.cfi_endproc
	.size compiled, . - compiled

	.data
	.globl SYMBOL
SYMBOL:	.quad 1
	.section .note.GNU-stack,"",@progbits
"#;

/// A program, and the same with another name of as many bytes, wherever that stands.
fn renamed(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> =
        (0..bytes.len() - old.len()).filter(|&at| bytes[at..].starts_with(old.as_bytes())).collect();
    assert!(!places.is_empty(), "{old}");
    places.into_iter().for_each(|at| bytes[at..at + new.len()].copy_from_slice(new.as_bytes()));
    bytes
}

/// Nothing in particular is said of a program in which `name`, of a symbol or of the function's section, is spelled otherwise.
fn try_name(name: &str, symbol: bool) {
    let other = format!("x{}", &name[1..]);
    let (kept_symbol, section) =
        if symbol { (other.as_str(), ".text") } else { ("anything", other.as_str()) };
    let source = PROGRAM.replace("SYMBOL", kept_symbol).replace("SECTION", section);
    let input = link_assembly(&source, "gcc", &["-static", "-no-pie"]);
    let output = optimized(&input);
    assert!(judge(&input, &output).is_proven(), "{other}: {}", judge(&input, &output));
    assert!(moves("compiled", &input, &output), "{other}");

    let (input, output) = (renamed(&input, &other, name), renamed(&output, &other, name));
    let verdict = judge(&input, &output);
    let found =
        verdict.findings.iter().any(|f| f.kind == FindingKind::RuntimeTable && f.function == "compiled");
    assert!(found, "{name}: {verdict}");
    let kept = optimized(&input);
    assert!(judge(&input, &kept).is_proven(), "{name}: {}", judge(&input, &kept));
    assert!(!moves("compiled", &input, &kept), "{name}");
}

#[test]
fn what_runtimes_find_by_tables_of_their_own_stays() {
    for name in [
        "mono_aot_file_info",
        "mono_aot_module_System_Core_info",
        "__svm_code_section",
        "_kDartVmSnapshotInstructions",
        "_kDartIsolateSnapshotInstructions",
        "jl_image_pointers",
        "jl_sysimg_fvars_base",
    ] {
        try_name(name, true);
    }
    try_name("__managedcode", false);
}
