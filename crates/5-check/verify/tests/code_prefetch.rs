//! Instructions that ask for code ahead may stand anywhere but where somebody would notice, and may be nothing else.

mod support;

use afterlink_core::{BlockMap, InputAddr};
use afterlink_image::Image;
use afterlink_pipeline::{BlockOrder, Check, LayoutOptions, OptimizeOptions, PASSES, Scope, Silent};
use afterlink_testkit::build::link_assembly;
use std::ops::Range;
use support::{address_of, file_offset, judge, map_of};

/// `plain` begins with four bytes that may become a mark for indirect branches; `prefetches` asks for code itself; a word and a name lead to
/// `plain`, and may be led elsewhere.
const PROGRAM: &str = r#"
	.data
	.globl held
	.type held, @object
	.size held, 8
held:	.quad plain
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	movl $5, %edi
	leaq held(%rip), %rsi
	call loads
	movl %eax, %edi
	call plain
	movl %eax, %edi
	call prefetches
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.cfi_endproc
	.size _start, . - _start

	.p2align 4
	.type plain, @function
plain:
	.cfi_startproc
	.byte 0x0f, 0x1f, 0x40, 0x00
	testl %edi, %edi
	js 1f
	addl $3, %edi
1:	leal 1(%rdi), %eax
	ret
	.cfi_endproc
	.size plain, . - plain

	.p2align 4
	.type loads, @function
loads:
	.cfi_startproc
	testl %edi, %edi
	js 1f
	movl 4(%rsi), %eax
	andl $1, %eax
	jnz 1f
	addl $9, %eax
1:	addl %edi, %eax
	ret
	.cfi_endproc
	.size loads, . - loads

	.p2align 4
	.type prefetches, @function
prefetches:
	.cfi_startproc
	testl %edi, %edi
	js 1f
	.byte 0x0f, 0x18, 0x3d
	.long _start - . - 4
	addl $2, %edi
1:	leal 1(%rdi), %eax
	ret
	.cfi_endproc
	.size prefetches, . - prefetches
	.section .note.GNU-stack,"",@progbits
"#;

const SIZE: u64 = 7;

/// The program with an entry that nobody knows: the word that holds it is led to data.
fn build() -> Vec<u8> {
    let mut bytes = link_assembly(PROGRAM, "gcc", &["-static", "-no-pie"]);
    let held = address_of(&bytes, "held");
    hold(&mut bytes, held);
    bytes
}

/// The word of an output holds `address`.
fn fill(bytes: &mut [u8], address: u64) {
    let word = file_offset(bytes, address_of(bytes, "held"));
    bytes[word..word + 8].copy_from_slice(&address.to_le_bytes());
}

/// The word holds `address`; so say the file and its relocation.
fn hold(bytes: &mut [u8], address: u64) {
    fill(bytes, address);
    let image = Image::parse(bytes).unwrap();
    let rows = image.sections.iter().find(|(_, s)| s.name == ".rela.data").expect("kept relocations").1;
    let row = rows.offset.get() as usize;
    // R_X86_64_64 of no symbol: the addend is the address.
    bytes[row + 8..row + 16].copy_from_slice(&1u64.to_le_bytes());
    bytes[row + 16..row + 24].copy_from_slice(&address.to_le_bytes());
}

fn written(input: &[u8], seed: u64) -> Vec<u8> {
    let layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        seed,
        ..LayoutOptions::default()
    };
    let mut options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    PASSES.into_iter().for_each(|pass| options.layout.switches.turn(pass, pass.name == "code-prefetch"));
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).expect("a rewritten program").bytes
}

/// The blocks of an output, and where each stands there.
fn blocks(output: &[u8]) -> Vec<(Range<u64>, BlockMap)> {
    let mut found = Vec::new();
    for fragment in map_of(output).functions.iter().flat_map(|f| f.fragments.clone()) {
        let start = fragment.output.get();
        for (i, block) in fragment.blocks.iter().enumerate() {
            let next = fragment.blocks.get(i + 1).map_or(fragment.size, |b| u64::from(b.output_offset));
            found.push((start + u64::from(block.output_offset)..start + next, *block));
        }
    }
    found
}

/// Where instructions stand that were put in: at blocks that do not begin so in the input.
fn added(input: &[u8], output: &[u8]) -> Vec<u64> {
    let begins =
        |bytes: &[u8], address: u64| bytes[file_offset(bytes, address)..].starts_with(&[0x0f, 0x18, 0x3d]);
    let of_block = |(range, block): (Range<u64>, BlockMap)| {
        let start = block.input.filter(|_| block.input_size > 0)?.get();
        (begins(output, range.start) && !begins(input, start)).then_some(range.start)
    };
    blocks(output).into_iter().filter_map(of_block).collect()
}

/// An output with one in front of the block that starts at an address of the input, and where it stands.
fn with_one_at(input: &[u8], start: u64) -> (Vec<u8>, u64) {
    let found = (0..200).find_map(|seed| {
        let output = written(input, seed);
        let places: Vec<u64> = blocks(&output)
            .into_iter()
            .filter(|(_, block)| block.input == Some(InputAddr(start)))
            .map(|b| b.0.start)
            .collect();
        let place = added(input, &output).into_iter().find(|place| places.contains(place))?;
        Some((output, place))
    });
    found.expect("a seed that puts one there")
}

#[test]
fn they_are_proven_and_leave_what_asks_itself_alone() {
    let input = build();
    let own = address_of(&input, "prefetches");
    let mut count = 0;
    for seed in 0..40 {
        let output = written(&input, seed);
        let verdict = judge(&input, &output);
        assert!(verdict.is_proven(), "seed {seed}:\n{verdict}");
        count += added(&input, &output).len();
        // The program's own stands where it was, and nothing was put into its block.
        let asks = blocks(&output).into_iter().find(|(range, block)| {
            let code = &output[file_offset(&output, range.start)..][..SIZE as usize + 3];
            block.input.is_some_and(|start| start.get() > own)
                && code[..3] == [0x0f, 0x18, 0x3d]
                && code[7..9] == [0x83, 0xc7]
        });
        assert!(asks.is_some(), "seed {seed}");
    }
    assert!(count > 40, "{count} in 40 outputs");
}

/// Every other byte at every place of one: it is proven if it still asks for a line of code that moved, and only then.
#[test]
fn nothing_else_may_stand_there() {
    let input = build();
    let (output, place) = with_one_at(&input, address_of(&input, "plain"));
    let fragments: Vec<Range<u64>> = map_of(&output)
        .functions
        .iter()
        .flat_map(|f| f.fragments.clone())
        .map(|f| f.output.get()..f.output.get() + f.size)
        .collect();
    let at = file_offset(&output, place);
    let (mut good, mut bad) = (0, 0);
    for byte in 0..SIZE as usize {
        for value in (0..=u8::MAX).filter(|value| *value != output[at + byte]) {
            let mut other = output.clone();
            other[at + byte] = value;
            let code = &other[at..at + SIZE as usize];
            let line =
                (place + SIZE).wrapping_add(i32::from_le_bytes(code[3..].try_into().unwrap()) as i64 as u64);
            let asks = code[..2] == [0x0f, 0x18] && matches!(code[2], 0x35 | 0x3d);
            let is_good = asks && fragments.iter().any(|fragment| fragment.contains(&line));
            assert_eq!(judge(&input, &other).is_proven(), is_good, "byte {byte} {value:#04x}");
            if is_good { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 0 && bad > 1500, "{good} that ask for other code, {bad} that do not");
}

/// In front of a mark that indirect branches land on none may stand.
#[test]
fn a_mark_comes_first() {
    let mut input = build();
    let plain = address_of(&input, "plain");
    let (mut output, place) = with_one_at(&input, plain);
    let mark = [0xf3, 0x0f, 0x1e, 0xfa];
    // A nop becomes the mark in both files; the old entry keeps it, in front of its jump.
    let input_end = file_offset(&input, plain) + 9;
    let put = |bytes: &mut Vec<u8>, address: u64| {
        let at = file_offset(bytes, address);
        bytes[at..at + 4].copy_from_slice(&mark);
    };
    put(&mut input, plain);
    put(&mut output, plain);
    put(&mut output, place + SIZE);
    let jump = (place.wrapping_sub(plain + 9) as u32).to_le_bytes();
    output[input_end - 5] = 0xe9;
    output[input_end - 4..input_end].copy_from_slice(&jump);
    let verdict = judge(&input, &output);
    assert!(verdict.to_string().contains("in front of a mark"), "{verdict}");
}

/// Nor in front of an instruction that a handler of signals finds by its address.
#[test]
fn what_a_handler_looks_up_comes_first() {
    let mut input = build();
    let load = address_of(&input, "loads") + 4;
    let (mut output, place) = with_one_at(&input, load);
    assert!(judge(&input, &output).is_proven());
    hold(&mut input, load);
    fill(&mut output, place);
    let verdict = judge(&input, &output);
    assert!(verdict.to_string().contains("a handler of signals may look up"), "{verdict}");
}
