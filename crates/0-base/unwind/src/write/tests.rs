use super::*;
use crate::expression::Expression;
use crate::row::{CfaRule, RegisterRule, row_at};
use crate::{Bases, EhFrame, FdeId, Personality};
use afterlink_core::InputAddr;
use afterlink_isa::Arch;
use proptest::prelude::*;

const ADDRESS: OutputAddr = OutputAddr(0x40_0000);
const ONLY: CieId = CieId(0);

fn parse(written: &WrittenFrames, address: OutputAddr) -> EhFrame<'_> {
    EhFrame::parse(&written.bytes, InputAddr(address.get()), Bases::default(), Arch::X86_64.unwind_numbers())
        .unwrap()
}

fn offset_rule(offset: i64) -> Option<RegisterRule> {
    Some(RegisterRule::Offset(offset))
}

/// x86-64's CIE, without personality.
fn usual_cie() -> OutputCie {
    let mut initial = Row::new(CfaRule::Offset(7, 8));
    initial.set_rule(16, offset_rule(-8));
    OutputCie {
        code_alignment: 1,
        data_alignment: -8,
        return_register: 16,
        signal_frame: false,
        has_lsda: false,
        personality: None,
        initial,
    }
}

fn fde(start: u64, body: FdeBody) -> OutputFde {
    OutputFde { cie: ONLY, start: OutputAddr(start), size: 0x100, lsda: None, body }
}

fn one(cie: OutputCie) -> IdVec<CieId, OutputCie> {
    IdVec::from(vec![cie])
}

/// The rows of `push rbp; mov rbp, rsp; …; pop rbp; ret`.
fn frame_pointer_rows() -> Vec<(u32, Row)> {
    let entry = usual_cie().initial;
    let mut pushed = entry.clone();
    pushed.cfa = CfaRule::Offset(7, 16);
    pushed.set_rule(6, offset_rule(-16));
    let mut based = pushed.clone();
    based.cfa = CfaRule::Offset(6, 16);
    let mut popped = entry.clone();
    popped.set_rule(6, offset_rule(-16));
    vec![(0, entry.clone()), (1, pushed), (4, based), (0x54, popped), (0x55, entry)]
}

fn borrowed(rows: &[(u32, Row)]) -> Vec<(u32, &Row)> {
    rows.iter().map(|(offset, row)| (*offset, row)).collect()
}

#[test]
fn the_bytes_are_an_assembler_s() {
    // As gas 2.40 assembles .cfi_def_cfa_offset 16, .cfi_offset 6, -16, .cfi_def_cfa_register 6, .cfi_def_cfa 7, 8,
    // .cfi_restore 6 between instructions of 1, 3, 80 and 1 bytes; entries aligned to 4.
    let rows = frame_pointer_rows();
    let written = write_eh_frame(&one(usual_cie()), &[fde(0x1000, FdeBody::Rows(&borrowed(&rows)))], ADDRESS);
    let written = written.unwrap();
    let mut expected = vec![16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 0x10, 1, 0x1b];
    expected.extend_from_slice(&[0x0c, 7, 8, 0x90, 1, 0, 0]);
    expected[0] = expected.len() as u8 - 4;
    let entry = expected.len();
    let start = 0x1000u32.wrapping_sub(ADDRESS.get() as u32 + entry as u32 + 8).to_le_bytes();
    let instructions = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x50, 0x0c, 7, 8, 0x41, 0xc6];
    expected.extend_from_slice(&[0, 0, 0, 0, entry as u8 + 4, 0, 0, 0]);
    expected.extend_from_slice(&start);
    expected.extend_from_slice(&[0, 1, 0, 0, 0]);
    expected.extend_from_slice(&instructions);
    assert!(expected.len().is_multiple_of(4));
    expected[entry] = (expected.len() - entry - 4) as u8;
    expected.extend_from_slice(&[0; 4]);
    assert_eq!(written.bytes, expected);
    assert_eq!(written.fdes, [ADDRESS + entry as u64]);
}

#[test]
fn steps_take_the_shortest_form() {
    let entry = usual_cie().initial;
    let mut other = entry.clone();
    other.cfa = CfaRule::Offset(7, 16);
    let length = |step: u32| {
        let rows = [(0, &entry), (step, &other)];
        let fde = OutputFde { size: 0x10_0000, ..fde(0x1000, FdeBody::Rows(&rows)) };
        let written = write_eh_frame(&one(usual_cie()), &[fde], ADDRESS).unwrap();
        let frames = parse(&written, ADDRESS);
        let fde = &frames.fdes[FdeId(0)];
        assert_eq!(frames.rows(fde).unwrap()[1].0, step);
        let bytes = frames.instructions(fde);
        bytes.iter().position(|&b| b == 0x0e).unwrap()
    };
    let steps = [1, 63, 64, 255, 256, 65535, 65536];
    assert_eq!(steps.map(length), [1, 1, 2, 2, 3, 3, 5]);
}

/// `restore` would mean "not saved" to libgcc.
#[test]
fn the_cie_s_rule_is_written_out() {
    let entry = usual_cie().initial;
    let mut other = entry.clone();
    other.set_rule(16, Some(RegisterRule::Register(2)));
    other.set_rule(6, offset_rule(-16));
    let rows = [(0, &entry), (1, &other), (3, &entry)];
    let written = write_eh_frame(&one(usual_cie()), &[fde(0x1000, FdeBody::Rows(&rows))], ADDRESS).unwrap();
    let frames = parse(&written, ADDRESS);
    let instructions = frames.instructions(&frames.fdes[FdeId(0)]);
    // offset(6), register(16, 2), and behind two bytes restore(6), offset(16).
    let expected = [0x41, 0x86, 2, 0x09, 16, 2, 0x42, 0xc6, 0x90, 1];
    assert_eq!(instructions.strip_prefix(&expected).map(|rest| rest.iter().all(|&b| b == 0)), Some(true));
}

#[test]
fn equal_cies_are_written_once_and_unused_ones_never() {
    let signal = OutputCie { signal_frame: true, ..usual_cie() };
    let unused = OutputCie { return_register: 17, ..usual_cie() };
    let cies = IdVec::from(vec![usual_cie(), unused, usual_cie(), signal]);
    let fdes: Vec<_> = [2, 3, 0]
        .iter()
        .enumerate()
        .map(|(i, &cie)| OutputFde { cie: CieId(cie), ..fde(0x1000 * (i as u64 + 1), FdeBody::Rows(&[])) })
        .collect();
    let written = write_eh_frame(&cies, &fdes, ADDRESS).unwrap();
    let frames = parse(&written, ADDRESS);
    assert_eq!(frames.cies.len(), 2);
    let read: Vec<_> =
        frames.fdes.iter().map(|(_, f)| (f.start.get(), frames.cies[f.cie].signal_frame)).collect();
    assert_eq!(read, [(0x1000, false), (0x2000, true), (0x3000, false)]);
    let places: Vec<_> = frames.fdes.iter().map(|(_, f)| frames.address_of(f).get()).collect();
    assert_eq!(places, written.fdes.iter().map(|a| a.get()).collect::<Vec<_>>());
}

#[test]
fn personality_and_lsda_point_at_their_new_places() {
    let personality = OutputPersonality { address: OutputAddr(0x60_1238), is_indirect: true };
    let cie = OutputCie { has_lsda: true, personality: Some(personality), ..usual_cie() };
    let with =
        OutputFde { lsda: Some(OutputAddr(0x50_0004)), ..fde(0x1000, FdeBody::Copy(&[0x41, 0x0e, 16])) };
    let without = fde(0x2000, FdeBody::Rows(&[]));
    let written = write_eh_frame(&one(cie), &[with, without], ADDRESS).unwrap();
    let frames = parse(&written, ADDRESS);
    let read = frames.cies[ONLY].personality.unwrap();
    assert_eq!((read.address, read.encoding.is_indirect()), (InputAddr(0x60_1238), true));
    assert_eq!(frames.fdes[FdeId(0)].lsda, Some(InputAddr(0x50_0004)));
    assert_eq!(frames.fdes[FdeId(1)].lsda, None);
    assert_eq!(frames.rows(&frames.fdes[FdeId(0)]).unwrap()[1].1.cfa, CfaRule::Offset(7, 16));
    // A CIE that was read becomes the same CIE again.
    let moved = |p: Personality| OutputAddr(p.address.get() + 0x10);
    let again = OutputCie::new(&frames.cies[ONLY], moved);
    assert_eq!(again.personality.unwrap().address, OutputAddr(0x60_1248));
    assert!(again.personality.unwrap().is_indirect && again.has_lsda);
    let bad = OutputFde { lsda: Some(OutputAddr(4)), ..fde(0x1000, FdeBody::Rows(&[])) };
    assert!(write_eh_frame(&one(usual_cie()), &[bad], ADDRESS).is_err());
}

#[test]
fn far_pointers_are_wide() {
    for (start, size) in [(0x2_0000_0000, 0x100), (0x1000, 0x9000_0000)] {
        let rows = frame_pointer_rows();
        let rows = borrowed(&rows);
        let far = OutputFde { size, ..fde(start, FdeBody::Rows(&rows)) };
        let written =
            write_eh_frame(&one(usual_cie()), &[far, fde(0x3000, FdeBody::Rows(&[]))], ADDRESS).unwrap();
        let frames = parse(&written, ADDRESS);
        let read = &frames.fdes[FdeId(0)];
        assert_eq!((read.start.get(), read.size), (start, size));
        assert_eq!(frames.fdes[FdeId(1)].start, InputAddr(0x3000));
        assert_eq!(frames.rows(read).unwrap().len(), 5);
    }
}

#[test]
fn what_no_instruction_can_say_is_an_error() {
    let write = |rows: &[(u32, &Row)], cie: OutputCie| {
        write_eh_frame(&one(cie), &[fde(0x1000, FdeBody::Rows(rows))], ADDRESS)
    };
    let entry = usual_cie().initial;
    let changed = |change: &dyn Fn(&mut Row)| {
        let mut row = entry.clone();
        change(&mut row);
        row
    };
    let no_cfa = changed(&|row| row.cfa = CfaRule::Unspecified);
    let no_rule = changed(&|row| row.set_rule(16, None));
    let odd = changed(&|row| row.set_rule(6, offset_rule(-12)));
    let odd_cfa = changed(&|row| row.cfa = CfaRule::Offset(7, -4));
    for row in [&no_cfa, &no_rule, &odd, &odd_cfa] {
        let error = write(&[(0, row)], usual_cie()).unwrap_err();
        assert!(error.place.unwrap().contains("0x1000"));
    }
    let other = changed(&|row| row.args_size = 8);
    assert!(write(&[(4, &other), (2, &entry)], usual_cie()).is_err());
    assert!(write(&[(2, &other)], OutputCie { code_alignment: 4, ..usual_cie() }).is_err());
    assert!(write(&[(4, &other)], OutputCie { code_alignment: 4, ..usual_cie() }).is_ok());
}

fn expression() -> impl Strategy<Value = Expression> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Expression::new(&bytes))
}

/// Any rule that a CIE with this factor can express.
fn rule(factor: i64) -> impl Strategy<Value = RegisterRule> {
    let offset = prop_oneof![-40i64..40, -5000i64..5000].prop_map(move |count| count * factor);
    prop_oneof![
        Just(RegisterRule::Undefined),
        Just(RegisterRule::SameValue),
        offset.clone().prop_map(RegisterRule::Offset),
        offset.prop_map(RegisterRule::ValOffset),
        (0u16..130).prop_map(RegisterRule::Register),
        expression().prop_map(RegisterRule::Expression),
        expression().prop_map(RegisterRule::ValExpression),
    ]
}

fn cfa(factor: i64) -> impl Strategy<Value = CfaRule> {
    prop_oneof![
        4 => (0u16..130, 0i64..3000).prop_map(|(register, offset)| CfaRule::Offset(register, offset)),
        1 => (0u16..130, -300i64..0).prop_map(move |(r, count)| CfaRule::Offset(r, count * factor.abs())),
        1 => expression().prop_map(CfaRule::Expression),
    ]
}

type Rules = Vec<(Register, RegisterRule)>;

fn rules(factor: i64, most: usize) -> impl Strategy<Value = Rules> {
    proptest::collection::vec((prop_oneof![0u16..20, 0u16..130], rule(factor)), 0..most)
}

/// Under some CIE, rows that keep a rule for each register to which the CIE gives one.
fn function() -> impl Strategy<Value = (OutputCie, Vec<(u32, Row)>)> {
    let factors = (prop_oneof![Just(1u64), Just(4)], prop_oneof![Just(-8i64), Just(-4), Just(1), Just(8)]);
    factors.prop_flat_map(|(code, data)| {
        let step = prop_oneof![1u32..64, 1u32..300, 1u32..70_000];
        let row = (step, cfa(data), rules(data, 12), prop_oneof![3 => Just(0u64), 1 => 0u64..1000]);
        let first = (proptest::option::of(cfa(data)), rules(data, 4));
        (first, proptest::collection::vec(row, 0..12)).prop_map(move |((cfa, rules), rows)| {
            let mut initial = Row::new(cfa.unwrap_or_default());
            rules.into_iter().for_each(|(r, rule)| initial.set_rule(r, Some(rule)));
            let mut at = 0;
            let rows = rows
                .into_iter()
                .map(|(step, cfa, rules, args_size)| {
                    let mut row = initial.clone();
                    (row.cfa, row.args_size) = (cfa, args_size);
                    rules.into_iter().for_each(|(r, rule)| row.set_rule(r, Some(rule)));
                    // The first row comes into force at once.
                    let offset = at;
                    at += step * code as u32;
                    (offset, row)
                })
                .collect();
            let cie = OutputCie { code_alignment: code, data_alignment: data, initial, ..usual_cie() };
            (cie, rows)
        })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        functions in proptest::collection::vec(function(), 1..5),
        gap in 0u32..2,
    ) {
        let cies: IdVec<CieId, OutputCie> = functions.iter().map(|(cie, _)| cie.clone()).collect();
        // With a gap, the CIE's own row is in force before the first one.
        let shifted: Vec<Vec<(u32, &Row)>> = functions
            .iter()
            .map(|(cie, rows)| {
                rows.iter().map(|(offset, row)| (offset + gap * cie.code_alignment as u32, row)).collect()
            })
            .collect();
        let fdes: Vec<OutputFde> = shifted
            .iter()
            .enumerate()
            .map(|(i, rows)| OutputFde {
                cie: CieId(i as u32),
                start: OutputAddr(0x10_0000 * (i as u64 + 1)),
                size: 0x100_0000,
                lsda: None,
                body: FdeBody::Rows(rows),
            })
            .collect();
        let written = write_eh_frame(&cies, &fdes, ADDRESS).unwrap();
        let frames = parse(&written, ADDRESS);
        prop_assert_eq!(frames.damaged.len(), 0);
        prop_assert_eq!(frames.fdes.len(), fdes.len());
        for ((id, read), fde) in frames.fdes.iter().zip(&fdes) {
            prop_assert_eq!((read.start.get(), read.size), (fde.start.get(), fde.size));
            let initial = &cies[fde.cie].initial;
            prop_assert_eq!(&frames.cies[read.cie].initial, initial);
            let rows = frames.rows(read).unwrap();
            let FdeBody::Rows(given) = fde.body else { unreachable!() };
            let offsets = given.iter().flat_map(|&(offset, _)| [offset.saturating_sub(1), offset, offset + 1]);
            for offset in offsets.chain([0, 0xff_ffff]) {
                let expected = row_at(given, offset).copied().unwrap_or(initial);
                prop_assert_eq!(row_at(&rows, offset), Some(expected), "{} at {}", id, offset);
            }
            // No row is there that nobody gave.
            prop_assert!(rows.len() <= given.len() + 1);
        }
    }

    #[test]
    fn copied_instructions_are_read_back(
        (cie, rows) in function(),
        address in (0u64..1 << 30).prop_map(OutputAddr),
        start in (0u64..1 << 30).prop_map(OutputAddr),
    ) {
        let rows = borrowed(&rows);
        let size = 0x100_0000;
        let cies = one(cie);
        let first = write_eh_frame(
            &cies,
            &[OutputFde { size, ..fde(0x1000, FdeBody::Rows(&rows)) }],
            ADDRESS,
        ).unwrap();
        let first = parse(&first, ADDRESS);
        let read = &first.fdes[FdeId(0)];
        let copy = FdeBody::Copy(first.copyable_instructions(read).unwrap());
        let cies = one(OutputCie::new(&first.cies[ONLY], |p| OutputAddr(p.address.get())));
        let second =
            write_eh_frame(&cies, &[OutputFde { size, start, ..fde(0, copy) }], address).unwrap();
        let second = parse(&second, address);
        let copied = &second.fdes[FdeId(0)];
        prop_assert_eq!(copied.start.get(), start.get());
        prop_assert_eq!(second.rows(copied).unwrap(), first.rows(read).unwrap());
    }
}
