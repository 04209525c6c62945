use super::*;
use crate::expression::Expression;
use crate::pointer::{Bases, Places, PointerEncoding};
use RegisterRule as R;
use afterlink_isa::Arch;

const START: u64 = 0x1000;

fn context() -> Context {
    let places = Places { section: 0x8000, bases: Bases::default(), function: Some(START) };
    Context {
        numbers: Arch::X86_64.unwind_numbers(),
        code_alignment: 1,
        data_alignment: -8,
        pointers: PointerEncoding::ABSOLUTE,
        places,
    }
}

/// The row of every x86-64 CIE: CFA = rsp + 8, return address at CFA - 8.
fn on_entry() -> Row {
    let mut row = Row::new(CfaRule::Offset(7, 8));
    row.set_rule(16, Some(R::Offset(-8)));
    row
}

fn rows_under(context: &Context, bytes: &[u8], size: u64) -> Result<Vec<(u32, Row)>, Fault> {
    let mut rows = Vec::new();
    let cursor = Cursor::new(bytes, 0, bytes.len());
    function_rows(cursor, context, &on_entry(), (START, size), |at, row| rows.push((at, row.clone())))?;
    Ok(rows)
}

fn try_rows(bytes: &[u8], size: u64) -> Result<Vec<(u32, Row)>, Fault> {
    rows_under(&context(), bytes, size)
}

fn rows(bytes: &[u8]) -> Vec<(u32, Row)> {
    try_rows(bytes, 0x1_0000).unwrap()
}

/// The rule of register `r` after `bytes`.
fn rule(bytes: &[u8], r: Register) -> Option<RegisterRule> {
    rows(bytes)[0].1.rule(r).cloned()
}

fn cfa(bytes: &[u8]) -> CfaRule {
    rows(bytes)[0].1.cfa.clone()
}

#[test]
fn no_instruction_leaves_the_cie_s_row() {
    assert_eq!(rows(&[]), [(0, on_entry())]);
    assert_eq!(rows(&[0, 0, 0]), [(0, on_entry())]);
}

#[test]
fn cfa_rules() {
    assert_eq!(cfa(&[0x0c, 6, 16]), CfaRule::Offset(6, 16));
    assert_eq!(cfa(&[0x0d, 6]), CfaRule::Offset(6, 8));
    assert_eq!(cfa(&[0x0e, 0x90, 0x01]), CfaRule::Offset(7, 144));
    assert_eq!(cfa(&[0x12, 6, 0x7e]), CfaRule::Offset(6, 16)); // -2 * -8
    assert_eq!(cfa(&[0x12, 6, 0x02]), CfaRule::Offset(6, -16));
    assert_eq!(cfa(&[0x13, 0x03]), CfaRule::Offset(7, -24));
    // -8 as LLVM's assembler writes it.
    let minus_8 = [0x0e, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(cfa(&minus_8), CfaRule::Offset(7, -8));
    let expression = Expression::new(&[0x76, 0x78, 0x06]);
    assert_eq!(cfa(&[0x0f, 3, 0x76, 0x78, 0x06]), CfaRule::Expression(expression));
}

#[test]
fn register_rules() {
    assert_eq!(rule(&[0x86, 2], 6), Some(R::Offset(-16)));
    assert_eq!(rule(&[0x05, 6, 2], 6), Some(R::Offset(-16)));
    assert_eq!(rule(&[0x11, 6, 0x7e], 6), Some(R::Offset(16)));
    assert_eq!(rule(&[0x2f, 6, 2], 6), Some(R::Offset(16)));
    assert_eq!(rule(&[0x14, 7, 0], 7), Some(R::ValOffset(0)));
    assert_eq!(rule(&[0x15, 7, 0x7f], 7), Some(R::ValOffset(8)));
    assert_eq!(rule(&[0x07, 16], 16), Some(R::Undefined));
    assert_eq!(rule(&[0x08, 3], 3), Some(R::SameValue));
    assert_eq!(rule(&[0x09, 16, 2], 16), Some(R::Register(2)));
    let expression = Expression::new(&[0x77, 40]);
    assert_eq!(rule(&[0x10, 8, 2, 0x77, 40], 8), Some(R::Expression(expression.clone())));
    assert_eq!(rule(&[0x16, 8, 2, 0x77, 40], 8), Some(R::ValExpression(expression)));
    assert_eq!(rule(&[0x05, 0x81, 0x01, 1], 129), Some(R::Offset(-8)));
}

#[test]
fn restoring_takes_a_rule_away() {
    assert_eq!(rule(&[0x86, 2, 0xc6], 6), None);
    assert_eq!(rule(&[0x86, 2, 0x06, 6], 6), None);
}

#[test]
fn locations() {
    let step = |advance: &[u8]| {
        let mut bytes = advance.to_vec();
        bytes.extend_from_slice(&[0x0e, 16]);
        rows(&bytes).iter().map(|&(offset, _)| offset).collect::<Vec<_>>()
    };
    assert_eq!(step(&[0x41]), [0, 1]);
    assert_eq!(step(&[0x7f]), [0, 63]);
    assert_eq!(step(&[0x02, 200]), [0, 200]);
    assert_eq!(step(&[0x03, 0x34, 0x12]), [0, 0x1234]);
    assert_eq!(step(&[0x04, 0x34, 0x12, 0, 0]), [0, 0x1234]);
    assert_eq!(step(&[0x01, 0x04, 0x10, 0, 0, 0, 0, 0, 0]), [0, 4]);
    // Two steps without a change between them, and a change without a step before it.
    assert_eq!(step(&[0x41, 0x42]), [0, 1, 3]);
    assert_eq!(step(&[]), [0]);
}

#[test]
fn a_code_alignment_scales_steps() {
    let context = Context { code_alignment: 4, ..context() };
    let rows = rows_under(&context, &[0x43, 0x0e, 16], 100).unwrap();
    assert_eq!(rows[1].0, 12);
}

#[test]
fn a_remembered_state_has_cfa_and_rules_but_not_the_arguments() {
    // offset(3), args 16, remember; step; rbp frame, restore 3, args 32; step; restore.
    let rows = rows(&[0x83, 2, 0x2e, 16, 0x0a, 0x41, 0x0c, 6, 16, 0xc3, 0x2e, 32, 0x41, 0x0b]);
    assert_eq!(rows.len(), 3);
    let (first, last) = (&rows[0].1, &rows[2].1);
    assert_eq!(rows[1].1.rule(3), None);
    assert_eq!(rows[1].1.args_size, 32);
    assert_eq!((&last.cfa, last.registers()), (&first.cfa, first.registers()));
    assert_eq!((first.args_size, last.args_size), (16, 32));
}

#[test]
fn instructions_behind_the_end_are_not_looked_at() {
    let bytes = [0x0e, 16, 0x48, 0x0e, 24, 0x3f];
    assert_eq!(try_rows(&bytes, 8).unwrap().len(), 1);
    assert!(try_rows(&bytes, 9).is_err());
    assert_eq!(try_rows(&[0x48, 0x0e, 24], 0).unwrap(), [(0, on_entry())]);
}

#[test]
fn nonsense_is_a_fault() {
    let cases: [&[u8]; 15] = [
        &[0x3f],                                  // unknown
        &[0x2d],                                  // another processor's
        &[0x0b],                                  // restore without remember
        &[0x05, 0x82, 0x01, 1],                   // register 130
        &[0x0e],                                  // cut
        &[0x86],                                  // cut
        &[0x0f, 5, 0],                            // cut expression
        &[0x0f, 0x81, 0x08],                      // expression of 1025 bytes
        &[0x0f, 1, 0x96, 0x0d, 6],                // register on top of an expression
        &[0x0f, 1, 0x96, 0x0e, 8],                // offset on top of an expression
        &[0x44, 0x01, 0, 0, 0, 0, 0, 0, 0, 0],    // location before the start
        &[0x44, 0x01, 2, 0x10, 0, 0, 0, 0, 0, 0], // location backwards
        &[0x0a; 33],
        &[0x09, 16, 0xff, 0xff, 0x7f],
        &[0x09, 16, 2, 0xd0], // the CIE's rule restored, which libgcc reads as none
    ];
    for bytes in cases {
        assert!(try_rows(bytes, 0x1_0000).is_err(), "{bytes:02x?}");
    }
    assert!(try_rows(&[], 1 << 32).is_err());
}

#[test]
fn a_cie_neither_moves_nor_restores() {
    let initial = |bytes: &[u8]| initial_row(Cursor::new(bytes, 0, bytes.len()), &context());
    assert_eq!(initial(&[0x0c, 7, 8, 0x90, 1, 0, 0]), Ok(on_entry()));
    assert_eq!(initial(&[]), Ok(Row::default()));
    assert!(initial(&[0x41]).is_err());
    assert!(initial(&[0xc3]).is_err());
}

#[test]
fn rows_are_bounded() {
    let many: Vec<u8> = (17..17 + MAX_RULES as u8).flat_map(|r| [0x08, r]).collect();
    assert!(try_rows(&many, 9).is_err(), "the return address makes one too many");
    assert!(try_rows(&many[..many.len() - 2], 9).is_ok());
    let half = [&[0x10, 3, 0x80, 0x04][..], &[0x96; 512]].concat();
    let mut both = [&half[..], &half].concat();
    both[half.len() + 1] = 4;
    assert!(try_rows(&both, 9).is_ok());
    assert!(try_rows(&[&both[..], &[0x16, 5, 1, 0x96]].concat(), 9).is_err());
}

/// `paciasp` and `autiasp` of AArch64 stand between two of these.
#[test]
fn a_return_address_is_signed_in_between() {
    let context = Context { numbers: Arch::Aarch64.unwind_numbers(), code_alignment: 4, ..context() };
    let rows = rows_under(&context, &[0x41, 0x2d, 0x41, 0x0a, 0x2d, 0x41, 0x0b], 0x100).unwrap();
    let signed: Vec<(u32, bool)> = rows.iter().map(|(at, row)| (*at, row.is_signed)).collect();
    assert_eq!(signed, [(0, false), (4, true), (8, false), (12, true)]);
}
