//! Small pieces of assembly whose blocks are given by labels `b0`, `b1`, …, ended by `end`.

use super::Liveness;
use crate::address_map::places::{Block, MovedFunction, Reason};
use crate::check::Check;
use afterlink_image::Image;
use afterlink_isa::judgement::{Effect, Handed};
use std::process::Command;

const RCX: u8 = 1;
const RDI: u8 = 7;
const R11: u8 = 11;
const COUNTED: Handed = Handed { is_jump: false, touch: 0, load: 0 };

fn assemble(text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.s"), folder.path().join("a"));
    std::fs::write(&source, format!(".globl _start\n_start:\n{text}\nend: nop\n")).unwrap();
    let mut command = Command::new("gcc");
    command.args(["-nostdlib", "-static", "-o"]).arg(&program).arg(&source);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(program).unwrap()
}

/// For each query `(block, instruction, effect)`, whether counter code with that effect is forbidden there.
/// `taken` are labels whose address is stored somewhere.
fn forbidden(text: &str, taken: &[&str], queries: &[(&str, usize, Effect)]) -> Vec<bool> {
    let bytes = assemble(text);
    let image = Image::parse(&bytes).unwrap();
    let label = |name: &str| image.symbols.iter().find(|s| s.is_named(name)).unwrap().address.get();
    let mut check = Check::of_unchanged(&image);
    let mut starts: Vec<u64> = (0..)
        .map(|i| format!("b{i}"))
        .take_while(|n| text.contains(&format!("{n}:")))
        .map(|n| label(&n))
        .collect();
    starts.push(label("end"));
    let block = |w: &[u64]| {
        let size = (w[1] - w[0]) as u32;
        Block { input: w[0], input_size: size, output: w[0], output_size: size, reason: Reason::Copied }
    };
    check.places.blocks = starts.windows(2).map(block).collect();
    let function = MovedFunction {
        entry: starts[0],
        blocks: 0..check.places.blocks.len(),
        fragments: Vec::new(),
        folded_into: None,
    };
    let mut taken: Vec<u64> = taken.iter().map(|name| label(name)).collect();
    taken.sort_unstable();
    let liveness = Liveness::of(&check, &function, &taken, &[]);
    let forbids = |(name, index, effect): &(&str, usize, Effect)| {
        let first = check.code.index_at(label(name)).unwrap();
        let before = &check.code.insts[first..first + index];
        let at = label(name) + before.iter().map(|i| u64::from(i.len)).sum::<u64>();
        liveness.forbids(&check, at, *effect)
    };
    queries.iter().map(forbids).collect()
}

#[test]
fn flags_live_between_a_test_and_its_branch() {
    let text = "b0: cmp %esi,%edi\n jne b2\nb1: xor %eax,%eax\n ret\nb2: mov $1,%eax\n ret\n";
    let found = forbidden(
        text,
        &[],
        &[
            ("b0", 0, Effect::Flags),
            ("b0", 1, Effect::Flags),
            ("b1", 0, Effect::Flags),
            ("b2", 0, Effect::Flags),
        ],
    );
    assert_eq!(found, [false, true, false, false]);
}

#[test]
fn flags_that_are_read_on_one_path_only_are_live() {
    let text = "b0: cmp %esi,%edi\n jne b2\nb1: xor %eax,%eax\n ret\nb2: sete %al\n ret\n";
    let found =
        forbidden(text, &[], &[("b2", 0, Effect::Flags), ("b0", 1, Effect::Flags), ("b1", 0, Effect::Flags)]);
    assert_eq!(found, [true, true, false]);
}

/// `inc` leaves the carry alone, so code that only reads the carry is not disturbed.
#[test]
fn the_carry_does_not_count() {
    let text = "b0: cmp %esi,%edi\n jb b2\nb1: ret\nb2: adc $0,%eax\n ret\n";
    let found = forbidden(text, &[], &[("b0", 1, Effect::Flags), ("b2", 0, Effect::Flags)]);
    assert_eq!(found, [false, false]);
}

#[test]
fn a_register_is_dead_where_it_is_overwritten_first() {
    let text = "b0: mov %edi,%eax\n jmp b1\nb1: mov $5,%ecx\n add %ecx,%eax\n ret\n";
    let rcx = Effect::Register(RCX);
    let found = forbidden(
        text,
        &[],
        &[("b0", 0, rcx), ("b1", 0, rcx), ("b1", 1, rcx), ("b1", 2, rcx), ("b0", 0, Effect::Register(RDI))],
    );
    assert_eq!(found, [false, false, true, false, true]);
}

/// A caller compiled together with this function may keep a value in a register that it does not change.
#[test]
fn a_register_that_the_function_never_changes_is_live_at_its_return() {
    let text = "b0: mov %edi,%eax\n ret\n";
    let found = forbidden(text, &[], &[("b0", 0, Effect::Register(R11)), ("b0", 1, Effect::Register(RCX))]);
    assert_eq!(found, [true, true]);
}

#[test]
fn a_part_of_a_register_does_not_end_the_whole() {
    let text = "b0: mov $1,%cl\n mov %rcx,%rax\n ret\n";
    assert_eq!(forbidden(text, &[], &[("b0", 0, Effect::Register(RCX))]), [true]);
}

#[test]
fn calls_may_read_every_register_but_no_flag() {
    let text = "b0: call other\n mov $1,%r11d\n ret\nother: ret\n";
    let found = forbidden(
        text,
        &[],
        &[("b0", 0, Effect::Register(R11)), ("b0", 1, Effect::Register(R11)), ("b0", 0, Effect::Flags)],
    );
    assert_eq!(found, [true, false, false]);
}

#[test]
fn what_a_loop_reads_is_live_around_it() {
    let text = "b0: xor %ecx,%ecx\nb1: add %ecx,%eax\n dec %edi\n jne b1\nb2: mov $0,%ecx\n ret\n";
    let rcx = Effect::Register(RCX);
    let found = forbidden(
        text,
        &[],
        &[("b0", 0, rcx), ("b1", 1, rcx), ("b1", 2, rcx), ("b2", 0, rcx), ("b1", 2, Effect::Flags)],
    );
    assert_eq!(found, [false, true, true, false, true]);
}

#[test]
fn an_indirect_jump_reaches_what_has_its_address_taken() {
    let text = "b0: cmp %esi,%edi\n jmp *%rax\nb1: sete %al\n ret\nb2: xor %eax,%eax\n ret\n";
    let flags = [("b0", 1, Effect::Flags)];
    assert_eq!(forbidden(text, &["b1", "b2"], &flags), [true]);
    assert_eq!(forbidden(text, &["b2"], &flags), [false]);
}

#[test]
fn spilling_changes_nothing() {
    let text = "b0: cmp %esi,%edi\n sete %al\n ret\n";
    assert_eq!(forbidden(text, &[], &[("b0", 1, Effect::Nothing(Some(RCX)))]), [false]);
}

/// `repz cmpsb` with rcx = 0 compares nothing, a shift by zero changes no flag, `bsf` of zero only the zero flag.
#[test]
fn what_may_change_nothing_ends_nothing() {
    for keeps in ["repz cmpsb", "shl %cl,%edx", "shrd %cl,%edx,%esi", "repne scasb", "bsf %edx,%esi"] {
        let text =
            format!("b0: cmp %esi,%edi\n {keeps}\n je b2\nb1: xor %eax,%eax\n ret\nb2: mov $1,%eax\n ret\n");
        let found = forbidden(&text, &[], &[("b0", 0, Effect::Flags), ("b0", 1, Effect::Flags)]);
        assert_eq!(found, [false, true], "{keeps}");
    }
    let shifts = "b0: cmp %esi,%edi\n shl $3,%edx\n je b2\nb1: ret\nb2: mov $1,%eax\n ret\n";
    // What it does to the overflow flag is not said, so that one stays.
    assert_eq!(forbidden(shifts, &[], &[("b0", 1, Effect::Flags), ("b1", 0, Effect::Flags)]), [false, false]);
}

#[test]
fn system_calls_and_traps_read_everything() {
    for call in ["syscall", "sysenter", "int $0x80", "int3", "ud2", "hlt", "ud1 %eax,%ecx", "vmcall"] {
        let text = format!("b0: cmp %esi,%edi\n {call}\n mov $1,%r11d\n mov $1,%ecx\n cmp %esi,%edi\n ret\n");
        let queries = [Effect::Flags, Effect::Register(RCX), Effect::Register(R11)].map(|e| ("b0", 1, e));
        assert_eq!(forbidden(&text, &[], &queries), [true; 3], "{call}");
        let behind = [Effect::Flags, Effect::Register(RCX), Effect::Register(R11)].map(|e| ("b0", 2, e));
        assert_eq!(forbidden(&text, &[], &behind), [false; 3], "{call}");
    }
}

/// The map may join what are two blocks to control.
#[test]
fn a_place_inside_a_block_is_no_function_s_start() {
    let text = "b0: cmp %esi,%edi\n mov %edi,%eax\n sete %al\n ret\n";
    assert_eq!(forbidden(text, &[], &[("b0", 1, Effect::Flags), ("b0", 2, Effect::Flags)]), [true; 2]);
}

#[test]
fn flags_go_into_the_middle_of_another_function() {
    let other = ".type other,@function\nother: mov $1,%eax\ninside: sete %al\n ret\n.size other,.-other\n";
    let text = |target: &str| format!("{other}b0: cmp %esi,%edi\n jmp {target}\nb1: ret\n");
    let flags = [("b0", 1, Effect::Flags)];
    assert_eq!(forbidden(&text("inside"), &[], &flags), [true]);
    assert_eq!(forbidden(&text("other"), &[], &flags), [false]);
}

/// Code that steps down from the stack pointer and keeps something there may stand where there is a stack: in functions that give up
/// room as compilers do, and not where words are taken off something else, or the stack pointer holds a number.
#[test]
fn where_the_stack_pointer_is_none_nothing_is_written_below_it() {
    let nothing = |text: &str| {
        let effects = [Effect::Nothing(Some(RCX)), Effect::Nothing(None), Effect::Targets(COUNTED)];
        let found = forbidden(text, &[], &effects.map(|effect| ("b0", 0, effect)));
        assert!(found.iter().all(|forbids| *forbids == found[0]), "{text}");
        found[0]
    };
    for kept in [
        "push %rbp\n mov %rsp,%rbp\n sub $64,%rsp\n and $-32,%rsp\n sub %rax,%rsp\n leave\n ret",
        "push %rbp\n mov %rsp,%rbp\n lea -8(%rbp),%rsp\n pop %rbx\n pop %rbp\n ret",
        "mov %rsp,%rbx\n sub %rdi,%rsp\n call other\n mov %rbx,%rsp\n ret",
        "lea 8(%rsp),%r10\n and $-64,%rsp\n push -8(%r10)\n lea -8(%r10),%rsp\n ret",
        "mov %rsp,%rax\n mov %rax,-40(%rbp)\n sub %rdi,%rsp\n mov -40(%rbp),%rsp\n ret",
        "mov %rsp,%rax\n and $-64,%rsp\n mov %rax,8(%rsp)\n mov 8(%rsp),%rsi\n lea (%rsi),%rsp\n ret",
    ] {
        assert!(!nothing(&format!("b0: {kept}\nother: ret\n")), "{kept}");
    }
    for lost in [
        "mov %rsp,%rax\n mov %rdi,%rsp\n pop %rcx\n mov %rax,%rsp\n ret",
        "mov (%rdi),%rsp\n ret",
        "mov 8(%rsp),%rsp\n pop %rcx\n ret",
        "mov 8(%rsp),%rdi\n mov %rdi,%rsp\n ret",
        "lea (%rdi,%rcx,8),%rsp\n ret",
        "mov $7,%esp\n ret",
        "xchg %rdi,%rsp\n ret",
        "pop %rsp\n ret",
        "cmove %rdi,%rsp\n ret",
        "imul $8,%rdi,%rsp\n ret",
        "xor %esp,%esp\n ret",
    ] {
        assert!(nothing(&format!("b0: {lost}\n")), "{lost}");
    }
}
