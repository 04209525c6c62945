//! Expected words are what GNU as and ld 2.40 write for the instruction beside them (`aarch64-linux-gnu-objdump -d`).
//! The decoder as a whole is held against objdump in `tests/aarch64_objdump.rs`.

use super::*;
use crate::{Access, Condition, Encoding, Flow};

fn flow(word: u32) -> Flow {
    let inst = decode(&word.to_le_bytes()).expect("an instruction");
    assert_eq!(u64::from(inst.len), WORD);
    assert_eq!(inst.flow_field.is_some(), inst.flow.displacement().is_some());
    inst.flow
}

/// Displacements count from the instruction's end.
#[test]
fn branches_carry_their_displacement() {
    assert_eq!(flow(0x1400_0002), Flow::Jump(4)); // b .+8
    assert_eq!(flow(0x97ff_ffff), Flow::Call(-8)); // bl .-4
    assert_eq!(flow(0x5400_004e), Flow::Jump(4)); // b.al .+8
    for (word, displacement) in [
        (0x54ff_ffe1, -8),  // b.ne .-4
        (0x5400_0050, 4),   // bc.eq .+8
        (0xb400_0040, 4),   // cbz x0, .+8
        (0x35ff_ffc3, -12), // cbnz w3, .-8
        (0x3607_fff3, -8),  // tbz w19, #0, .-4
        (0xb740_0087, 12),  // tbnz x7, #40, .+16
    ] {
        let Flow::Branch(condition, found) = flow(word) else { panic!("{word:#x}") };
        assert_eq!(found, displacement, "{word:#x}");
        // What is written anew is what was read, and its inverse is another.
        let mut bytes = Vec::new();
        let target = 0x1000u64.wrapping_add(WORD).wrapping_add(displacement as u64);
        write_branch(&mut bytes, condition, 0x1000, target).expect("near");
        assert_eq!(bytes, word.to_le_bytes());
        bytes.clear();
        write_branch(&mut bytes, condition.inverse(), 0x1000, target).expect("near");
        assert_eq!(decode(&bytes).unwrap().flow, Flow::Branch(Condition(condition.0 ^ 1), displacement));
        assert_ne!(bytes, word.to_le_bytes());
    }
}

#[test]
fn other_flow_is_told_apart() {
    // br x16, braa x16, x17, brabz x3; ret to another register may be no return
    for jump in [0xd61f_0200, 0xd71f_0a11, 0xd61f_0c7f, 0xd65f_0120] {
        assert_eq!(flow(jump), Flow::IndirectJump, "{jump:#x}");
    }
    // blr x8, blraa x8, sp, blraaz x8
    for call in [0xd63f_0100, 0xd73f_091f, 0xd63f_091f] {
        assert_eq!(flow(call), Flow::IndirectCall, "{call:#x}");
    }
    // ret, retaa, retab
    for back in [0xd65f_03c0, 0xd65f_0bff, 0xd65f_0fff] {
        assert_eq!(flow(back), Flow::Return, "{back:#x}");
    }
    // eret, drps, brk #1, hlt #0, udf #0, udf #7, dcps1
    for fault in [0xd69f_03e0, 0xd6bf_03e0, 0xd420_0020, 0xd440_0000, 0, 7, 0xd4a0_0001] {
        assert_eq!(flow(fault), Flow::Fault, "{fault:#x}");
    }
    // svc #0, hvc #0, bti c, paciasp, autiasp, yield, wfi
    for next in [0xd400_0001, 0xd400_0002, 0xd503_245f, 0xd503_233f, 0xd503_23bf, 0xd503_203f, 0xd503_207f] {
        assert_eq!(flow(next), Flow::Next, "{next:#x}");
        assert!(!decode(&next.to_le_bytes()).unwrap().nop, "{next:#x}");
    }
    assert!(decode(&0xd503_201fu32.to_le_bytes()).unwrap().nop);
}

#[test]
fn operands_are_found() {
    use Access as A;
    use Encoding as E;
    for (word, encoding, displacement, access, base) in [
        (0x1000_0041, E::Adr21, 4, A::Address, None),       // adr x1, .+8
        (0xb000_0000, E::Page21, 0x1000, A::Address, None), // adrp x0, next page
        (0x5800_0080, E::Branch19, 12, A::Load, None),      // ldr x0, .+16
        (0x9800_0083, E::Branch19, 12, A::Load, None),      // ldrsw x3, .+16
        (0xd800_0080, E::Branch19, 12, A::Load, None),      // prfm pldl1keep, .+16
        (0x9cff_ff80, E::Branch19, -20, A::Load, None),     // ldr q0, .-16
        (0xf940_0820, E::Low12 { scale: 3 }, 16, A::Load, Some(1)), // ldr x0, [x1, #16]
        (0xb900_0fe2, E::Low12 { scale: 2 }, 12, A::Store, Some(31)), // str w2, [sp, #12]
        (0x3dc0_0883, E::Low12 { scale: 4 }, 32, A::Load, Some(4)), // ldr q3, [x4, #32]
        (0x3d80_0883, E::Low12 { scale: 4 }, 32, A::Store, Some(4)), // str q3, [x4, #32]
        (0x3980_0c20, E::Low12 { scale: 0 }, 3, A::Load, Some(1)), // ldrsb x0, [x1, #3]
        (0xf980_0400, E::Low12 { scale: 3 }, 8, A::Load, Some(0)), // prfm pldl1keep, [x0, #8]
        (0x9100_4020, E::Low12 { scale: 0 }, 16, A::Address, Some(1)), // add x0, x1, #0x10
    ] {
        let found = decode(&u32::to_le_bytes(word)).unwrap().operand.expect("an operand");
        assert_eq!((found.field.encoding, found.displacement), (encoding, displacement), "{word:#x}");
        assert_eq!((found.access, found.base), (access, base), "{word:#x}");
    }
    // add x0, x1, #0x10, lsl #12; add w0, w1, #0x10
    for word in [0x9140_4020u32, 0x1100_4020] {
        assert_eq!(decode(&word.to_le_bytes()).unwrap().operand, None);
    }
    let page = decode(&0xb000_0000u32.to_le_bytes()).unwrap().operand.unwrap();
    assert_eq!(page.target(0x1238), 0x2000);
}

#[test]
fn cut_off_and_undefined_words_are_none() {
    assert_eq!(decode(&[0x1f, 0x20, 0x03]), None);
    // Undefined to objdump; and compare-and-branch of ARMv9.6.
    for word in [0xffff_ffffu32, 0x0001_0000, 0xd61f_0201, 0xd67f_0000, 0xd400_0000, 0x7400_0000, 0x5500_001f]
    {
        assert_eq!(decode(&word.to_le_bytes()), None, "{word:#x}");
    }
}

#[test]
fn marks() {
    // bti c, bti j, bti jc, paciasp, pacibsp
    for mark in [0xd503_245f, 0xd503_249f, 0xd503_24df, 0xd503_233f, 0xd503_237f] {
        assert!(is_landing_mark(mark));
    }
    // bti, autiasp, nop
    assert!(![0xd503_241f, 0xd503_23bf, 0xd503_201f].into_iter().any(is_landing_mark));
    assert_eq!(flow(TRAP), Flow::Fault); // d4200000 brk #0
    let mut padding = Vec::new();
    write_padding(&mut padding, 8);
    assert_eq!(padding, words(&[0xd503_201f, 0xd503_201f]));
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn jumps_reach_by_a_veneer() {
    let jump = |at, target| {
        let mut out = Vec::new();
        write_jump(&mut out, at, target).map(|()| out)
    };
    assert_eq!(jump(0x1000, 0x1008), Some(words(&[0x1400_0002]))); // b .+8
    assert_eq!(jump(0, (1 << 27) - 4), Some(words(&[0x15ff_ffff])));
    // 400000: b008fa30 adrp x16, 12345000
    // 400004: 9119e210 add  x16, x16, #0x678
    // 400008: d61f0200 br   x16
    assert_eq!(jump(0x40_0000, 0x1234_5678), Some(words(&[0xb008_fa30, 0x9119_e210, 0xd61f_0200])));
    assert_eq!(jump(0, 1 << 32), None);
}

#[test]
fn branches_reach_over_a_jump() {
    let condition = |word: u32| match flow(word) {
        Flow::Branch(condition, _) => condition,
        other => panic!("{other:?}"),
    };
    let branch = |word, at, target| {
        let mut out = Vec::new();
        write_branch(&mut out, condition(word), at, target).map(|()| out)
    };
    // 40000c: 36280043 tbz w3, #5, 400014
    // 400010: 14040000 b   500010
    let tbnz = 0x3728_0003;
    assert_eq!(branch(tbnz, 0x40_000c, 0x50_0010), Some(words(&[0x3628_0043, 0x1404_0000])));
    // 400014: 54000041 b.ne 40001c
    // 400018: 14040000 b    500018
    let b_eq = 0x5400_0000;
    assert_eq!(branch(b_eq, 0x40_0014, 0x50_0018), Some(words(&[0x5400_0041, 0x1404_0000])));
    // 40001c: b62bffe3 tbz  x3, #37, 408018
    assert_eq!(branch(0xb628_0003, 0x40_001c, 0x40_8018), Some(words(&[0xb62b_ffe3])));
    // 400028: b57fffe1 cbnz x1, 500024
    assert_eq!(branch(0xb500_0001, 0x40_0028, 0x50_0024), Some(words(&[0xb57f_ffe1])));
    assert_eq!(branch(b_eq, 0, 1 << 27), Some(words(&[0x5400_0041, 0x15ff_ffff])));
    assert_eq!(branch(b_eq, 0, 1 << 28), None);
}
