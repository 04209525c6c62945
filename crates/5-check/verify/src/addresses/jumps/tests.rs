//! How much work functions with many indirect jumps are.

use super::body::Body;
use super::run::{Run, Tables};
use super::values::Own;
use crate::check::Check;
use afterlink_image::Image;
use afterlink_testkit::build::link_assembly;
use std::collections::BTreeSet;

/// An interpreter of so many handlers, each with a jump of its own to any of them. They leave registers and words of the frame in
/// different states.
fn interpreter(handlers: usize) -> String {
    let jump = "movzwl (%rdi),%eax\n add $2,%rdi\n jmp *table(,%rax,8)\n";
    let handler = |i: usize| match i % 4 {
        0 => format!("h{i}: mov ${i},%ecx\n {jump}"),
        1 => format!("h{i}: mov %rcx,-8(%rsp)\n {jump}"),
        2 => format!("h{i}: mov -8(%rsp),%rdx\n {jump}"),
        _ => format!("h{i}: lea table(%rip),%rsi\n {jump}"),
    };
    let handlers: Vec<String> = (0..handlers).map(handler).collect();
    let table = "table: .quad 0\n .section .note.GNU-stack,\"\",@progbits\n";
    format!(".globl _start\n_start: {jump}{}end: nop\n.data\n{table}", handlers.concat())
}

struct Found {
    /// How often control came to a piece of the code until all was known.
    arrivals: usize,
    /// To how many pieces it came.
    reached: usize,
    /// What is wrong, by piece.
    faults: Vec<&'static str>,
}

/// Runs an interpreter of which the last label is taken to stand `beside` bytes further on.
fn run(handlers: usize, beside: u64) -> Found {
    let bytes = link_assembly(&interpreter(handlers), "gcc", &["-static", "-no-pie"]);
    let image = Image::parse(&bytes).unwrap();
    let place = |name: &str| image.symbols.iter().find(|s| s.is_named(name)).unwrap().address.get();
    let check = Check::of_unchanged(&image);
    let (entry, end) = (place("_start"), place("end"));
    let code = check.code.sections.iter().map(|s| (s.start, s.end)).collect();
    let own = Own { entry, ranges: vec![(entry, end)], code, bases: Vec::new() };
    let mut labels: Vec<u64> = (0..handlers).map(|i| place(&format!("h{i}"))).collect();
    let body = Body::new(&check, own, &labels);
    labels[handlers - 1] += beside;
    let tables = Tables::default();
    let mut run = Run::new(&check, &body, &tables, (&labels, &[]), BTreeSet::new());
    run.enter();
    let reached = (0..body.cuts.len()).filter(|&cut| run.is_reached(cut)).count();
    Found { arrivals: run.arrivals, reached, faults: run.faults.values().map(|fault| fault.1).collect() }
}

#[test]
fn jumps_to_labels_take_work_by_their_sum() {
    let (few, many) = (run(64, 0), run(1024, 0));
    assert!(few.faults.is_empty() && many.faults.is_empty());
    assert_eq!((few.reached, many.reached), (65, 1025));
    let (few, many) = (few.arrivals, many.arrivals);
    assert!(few >= 64, "all labels are come to: {few}");
    assert!(many < few * 16 * 2, "sixteen times the handlers: {few} arrivals, then {many}");
}

#[test]
fn a_label_between_two_instructions_is_a_fault_of_each_jump_that_may_lead_there() {
    let found = run(8, 1);
    assert_eq!(found.reached, 8, "nothing leads to the last handler");
    assert_eq!(found.faults, ["a jump leads between two instructions"; 8]);
}

/// Two tables, and one jump to what was found in either: as compilers make of two switches with the same end.
const MERGED: &str = "
.globl _start
_start: cmp $1,%edi
 ja other
 lea first(%rip),%rdx
 movslq (%rdx,%rdi,4),%rax
 add %rdx,%rax
 jmp both
other: lea second(%rip),%rdx
 movslq (%rdx,%rsi,4),%rax
 add %rdx,%rax
both: jmp *%rax
a: ret
b: ret
end: nop
.section .rodata
first: .long a - first
second: .long b - second
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn a_jump_through_one_of_two_tables_leads_to_the_places_of_both() {
    let bytes = link_assembly(MERGED, "gcc", &["-static", "-no-pie"]);
    let image = Image::parse(&bytes).unwrap();
    let place = |name: &str| image.symbols.iter().find(|s| s.is_named(name)).unwrap().address.get();
    let check = Check::of_unchanged(&image);
    let code = check.code.sections.iter().map(|s| (s.start, s.end)).collect();
    let mut bases = vec![place("first"), place("second")];
    bases.sort_unstable();
    let own = Own { entry: place("_start"), ranges: vec![(place("_start"), place("end"))], code, bases };
    let targets = [place("a"), place("b")];
    let body = Body::new(&check, own, &targets);
    let tables = [("first", vec![targets[0]]), ("second", vec![targets[1]])];
    let tables: Tables = tables.into_iter().map(|(table, to)| (place(table), to)).collect();
    let mut run = Run::new(&check, &body, &tables, (&[], &[]), BTreeSet::new());
    run.enter();
    let unreached: Vec<u64> =
        (0..body.cuts.len()).filter(|&cut| !run.is_reached(cut)).map(|cut| body.cuts[cut].start).collect();
    assert_eq!(unreached, [0; 0], "{:x?}", targets);
    assert!(run.faults.is_empty());
}
