use super::*;
use crate::row::{CfaRule, RegisterRule};
use afterlink_isa::Arch;

const ADDRESS: InputAddr = InputAddr(0x5000);

fn parse(bytes: &[u8]) -> Result<EhFrame<'_>> {
    EhFrame::parse(bytes, ADDRESS, Bases::default(), Arch::X86_64.unwind_numbers())
}

/// A section put together by hand.
#[derive(Default)]
struct Section {
    bytes: Vec<u8>,
}

impl Section {
    fn entry(&mut self, body: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(body);
        at
    }

    /// A CIE with the given augmentation and x86-64's usual instructions.
    fn cie(&mut self, letters: &str, data: &[u8]) -> usize {
        let mut body = vec![0, 0, 0, 0, 1];
        body.extend_from_slice(letters.as_bytes());
        body.extend_from_slice(&[0, 1, 0x78, 16]);
        if letters.starts_with('z') {
            body.push(data.len() as u8);
            body.extend_from_slice(data);
        }
        body.extend_from_slice(&[0x0c, 7, 8, 0x90, 1]);
        self.entry(&body)
    }

    fn fde(&mut self, cie: usize, rest: &[u8]) -> usize {
        let mut body = ((self.bytes.len() + 4 - cie) as u32).to_le_bytes().to_vec();
        body.extend_from_slice(rest);
        self.entry(&body)
    }

    /// An FDE of `size` bytes with `pcrel | sdata4` pointers that puts its start at `start`.
    fn near_fde(&mut self, cie: usize, start: u64, size: u32, instructions: &[u8]) -> usize {
        let field = ADDRESS.get() + self.bytes.len() as u64 + 8;
        let mut rest = (start.wrapping_sub(field) as u32).to_le_bytes().to_vec();
        rest.extend_from_slice(&size.to_le_bytes());
        rest.push(0);
        rest.extend_from_slice(instructions);
        self.fde(cie, &rest)
    }
}

fn starts(frames: &EhFrame) -> Vec<u64> {
    frames.fdes.iter().map(|(_, fde)| fde.start.get()).collect()
}

#[test]
fn the_usual_cie_and_fde() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    let at = section.near_fde(cie, 0x1000, 0x20, &[0x41, 0x0e, 16]);
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(frames.damaged, []);
    let cie = &frames.cies[CieId(0)];
    assert_eq!((cie.code_alignment, cie.data_alignment, cie.return_register), (1, -8, 16));
    assert_eq!(cie.initial.cfa, CfaRule::Offset(7, 8));
    assert_eq!(cie.initial.registers(), [(16, RegisterRule::Offset(-8))]);
    let fde = &frames.fdes[FdeId(0)];
    assert_eq!((fde.start, fde.size, fde.lsda), (InputAddr(0x1000), 0x20, None));
    assert_eq!(frames.address_of(fde), ADDRESS + at as u64);
    assert_eq!(frames.instructions(fde), [0x41, 0x0e, 16]);
    assert_eq!(frames.rows(fde).unwrap().len(), 2);
}

#[test]
fn personality_lsda_and_signal_frame() {
    let mut section = Section::default();
    // The personality field stands at 4 + 4 + 1 + "zPLRS\0" + 3 + 1 + 1 = 20.
    let cie = section.cie("zPLRS", &[0x9b, 0, 1, 0, 0, 0x1b, 0x1b]);
    let lsda_field = section.bytes.len() as u64 + 17;
    section.fde(cie, &[0, 0, 0, 1, 8, 0, 0, 0, 4, 0x10, 0, 0, 0]);
    let null = section.fde(cie, &[0, 0, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0, 0]);
    let frames = parse(&section.bytes).unwrap();
    let cie = &frames.cies[CieId(0)];
    assert!(cie.signal_frame);
    let personality = cie.personality.unwrap();
    assert!(personality.encoding.is_indirect());
    assert_eq!(personality.address, ADDRESS + 20 + 0x100);
    assert_eq!(frames.fdes[FdeId(0)].lsda, Some(ADDRESS + lsda_field + 0x10));
    assert_eq!(frames.fdes[FdeId(1)].lsda, None);
    assert_eq!(frames.fdes[FdeId(1)].offset as usize, null);
}

#[test]
fn other_pointer_encodings() {
    let cases: [(&[u8], &[u8]); 5] = [
        (&[0x00], &[0, 0x10, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]),
        (&[0x03], &[0, 0x10, 0, 0, 8, 0, 0, 0, 0]),
        (&[0x04], &[0, 0x10, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]),
        (&[0x01], &[0x80, 0x20, 8, 0]),
        (&[0x3b], &[0, 0xf0, 0xff, 0xff, 8, 0, 0, 0, 0]),
    ];
    for (encoding, rest) in cases {
        let mut section = Section::default();
        let cie = section.cie("zR", encoding);
        section.fde(cie, rest);
        let bases = Bases { text: None, data: Some(InputAddr(0x2000)) };
        let frames = EhFrame::parse(&section.bytes, ADDRESS, bases, Arch::X86_64.unwind_numbers()).unwrap();
        let fde = &frames.fdes[FdeId(0)];
        assert_eq!((fde.start, fde.size), (InputAddr(0x1000), 8), "{encoding:x?}");
    }
    // Without an augmentation there is no data and no length of it.
    let mut section = Section::default();
    let cie = section.cie("", &[]);
    section.fde(cie, &[0, 0x10, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0x0e, 24]);
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(frames.rows(&frames.fdes[FdeId(0)]).unwrap()[0].1.cfa, CfaRule::Offset(7, 24));
}

#[test]
fn zero_terminators_may_stand_anywhere() {
    let mut section = Section::default();
    let first = section.cie("zR", &[0x1b]);
    section.near_fde(first, 0x1000, 8, &[]);
    section.entry(&[]);
    section.near_fde(first, 0x2000, 8, &[]);
    let second = section.cie("zR", &[0x1b]);
    section.entry(&[]);
    section.near_fde(second, 0x3000, 8, &[]);
    section.bytes.extend_from_slice(&[0; 4 + 3]);
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(starts(&frames), [0x1000, 0x2000, 0x3000]);
    assert_eq!(frames.damaged, []);
}

#[test]
fn the_64_bit_length() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    section.bytes.extend_from_slice(&[0xff; 4]);
    section.bytes.extend_from_slice(&(4u64 + 9).to_le_bytes());
    let distance = (section.bytes.len() - cie) as u32;
    section.bytes.extend_from_slice(&distance.to_le_bytes());
    let field = ADDRESS.get() + section.bytes.len() as u64;
    section.bytes.extend_from_slice(&(0x1000u64.wrapping_sub(field) as u32).to_le_bytes());
    section.bytes.extend_from_slice(&[8, 0, 0, 0, 0]);
    section.near_fde(cie, 0x2000, 8, &[]);
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(starts(&frames), [0x1000, 0x2000]);
}

#[test]
fn a_damaged_entry_is_listed_and_skipped() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    let inside = section.near_fde(cie + 4, 0x900, 8, &[]);
    let short = section.fde(cie, &[1, 2, 3]);
    let tiny = section.entry(&[1]);
    let long_data = section.fde(cie, &[0, 0, 0, 0, 8, 0, 0, 0, 100]);
    let negative = section.fde(cie, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]);
    section.near_fde(cie, 0x1000, 8, &[]);
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(starts(&frames), [0x1000]);
    let damaged: Vec<_> = frames.damaged.iter().map(|d| d.offset as usize).collect();
    assert_eq!(damaged, [inside, short, tiny, long_data, negative]);
}

/// libgcc finds the code of entries under such a common entry, up to the first letter that it does not know.
#[test]
fn what_nobody_knows_is_no_damage() {
    let mut section = Section::default();
    let known = section.cie("zR", &[0x1b]);
    let behind = section.cie("zRQ", &[0x1b, 7]);
    let in_front = section.cie("zQR", &[7, 0x1b]);
    let other = section.cie("xyz", &[]);
    let entries = [
        section.near_fde(behind, 0x900, 8, &[]),
        section.fde(in_front, &[[0x40, 9, 0, 0, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0, 0, 0]].concat()),
        section.fde(other, &[0x50, 9]),
    ];
    section.near_fde(known, 0x1000, 8, &[]);
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(starts(&frames), [0x1000]);
    assert_eq!(frames.damaged, []);
    let extents = [Some((InputAddr(0x900), 8)), Some((InputAddr(0x940), 4)), None];
    let expected = entries.iter().zip(extents).map(|(&at, extent)| Foreign { offset: at as u32, extent });
    assert_eq!(frames.foreign, expected.collect::<Vec<_>>());
}

#[test]
fn bad_instructions_concern_their_function_only() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    section.near_fde(cie, 0x1000, 8, &[0x3f]);
    section.near_fde(cie, 0x2000, 8, &[0x0e, 24]);
    let frames = parse(&section.bytes).unwrap();
    let error = frames.rows(&frames.fdes[FdeId(0)]).unwrap_err();
    assert!(error.to_string().starts_with(".eh_frame+0x16: "), "{error}");
    assert!(frames.rows(&frames.fdes[FdeId(1)]).is_ok());
    assert_eq!(frames.copyable_instructions(&frames.fdes[FdeId(0)]), Some(&[0x3f][..]));
    assert_eq!(frames.copyable_instructions(&frames.fdes[FdeId(1)]), Some(&[0x0e, 24][..]));
}

#[test]
fn equal_neighbours_are_one_row() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    // remember; 1: offset 16; 2: offset 16 again; 3: restore.
    section.near_fde(cie, 0x1000, 8, &[0x0a, 0x41, 0x0e, 16, 0x41, 0x0e, 16, 0x41, 0x0b]);
    let frames = parse(&section.bytes).unwrap();
    let fde = &frames.fdes[FdeId(0)];
    let rows = frames.rows(fde).unwrap();
    let cfas: Vec<_> = rows.iter().map(|(offset, row)| (*offset, row.cfa.clone())).collect();
    let cfa = |offset| CfaRule::Offset(7, offset);
    assert_eq!(cfas, [(0, cfa(8)), (1, cfa(16)), (3, cfa(8))]);
}

#[test]
fn set_loc_is_relative_to_its_field_and_not_copyable() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    // The operand stands 18 bytes into the entry: length, CIE, start, size, augmentation length, opcode.
    let field = ADDRESS.get() + section.bytes.len() as u64 + 18;
    let [a, b, c, d] = (0x1004u64.wrapping_sub(field) as u32).to_le_bytes();
    section.near_fde(cie, 0x1000, 8, &[0x01, a, b, c, d, 0x0e, 24]);
    let frames = parse(&section.bytes).unwrap();
    let fde = &frames.fdes[FdeId(0)];
    let offsets: Vec<_> = frames.rows(fde).unwrap().iter().map(|&(offset, _)| offset).collect();
    assert_eq!(offsets, [0, 4]);
    assert_eq!(frames.copyable_instructions(fde), None);
}

#[test]
fn a_length_that_leads_out_of_the_section_is_an_error() {
    let mut section = Section::default();
    let cie = section.cie("zR", &[0x1b]);
    let last = section.near_fde(cie, 0x1000, 8, &[]);
    for keep in 0..section.bytes.len() {
        let whole = [0, last].contains(&keep);
        assert_eq!(parse(&section.bytes[..keep]).is_ok(), whole, "{keep} bytes");
    }
    let mut bytes = section.bytes;
    bytes.extend_from_slice(&[0xff; 12]);
    let error = parse(&bytes).unwrap_err().to_string();
    assert!(error.contains("longer than the section"), "{error}");
}

#[test]
fn hostile_sections_stay_linear() {
    // One CIE with a megabyte of instructions, referred to by 50,000 FDEs of 20 bytes: its row is evaluated once.
    let mut section = Section::default();
    let mut body = vec![0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b];
    body.resize(1 << 20, 0);
    let cie = section.entry(&body);
    for i in 0..50_000 {
        section.near_fde(cie, 0x1000_0000 + 16 * i, 8, &[]);
    }
    // One FDE of 200 KB that remembers, changes and steps as often as it can, over a full row.
    let mut instructions: Vec<u8> = (17..63).flat_map(|r| [0x08, r]).collect();
    for i in 0..1 << 16 {
        instructions.extend_from_slice(&[0x41, 0x0e, 8 * (1 + i as u8 % 8)]);
    }
    section.near_fde(cie, 0x2000_0000, 1 << 30, &instructions);
    let started = std::time::Instant::now();
    let frames = parse(&section.bytes).unwrap();
    assert_eq!(frames.fdes.len(), 50_001);
    let mut stored = 0;
    for (_, fde) in frames.fdes.iter() {
        if let Ok(rows) = frames.rows(fde) {
            stored += rows.iter().map(|(_, row)| 1 + row.registers().len()).sum::<usize>();
        }
    }
    assert!(stored <= 64 * section.bytes.len());
    // Quadratic work would take hours.
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
