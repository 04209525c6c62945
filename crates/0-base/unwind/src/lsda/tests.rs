use super::*;
use afterlink_core::OutputAddr;
use proptest::prelude::*;

const SECTION_AT: InputAddr = InputAddr(0x4000);
const FUNCTION: (InputAddr, u64) = (InputAddr(0x1000), 0x100);

fn read(section: &[u8]) -> Result<Lsda> {
    read_filled(section, |_| false)
}

fn read_filled(section: &[u8], is_filled: impl Fn(InputAddr) -> bool) -> Result<Lsda> {
    let place = LsdaPlace { section, address: SECTION_AT, area: SECTION_AT, function: FUNCTION };
    Lsda::read(place, is_filled)
}

fn fault(section: &[u8]) -> String {
    read(section).expect_err("it is damaged").what
}

/// What gcc writes for a call that is caught by type, one that is caught in any case, and one without a handler.
const GCC: [u8; 32] = [
    0xff, 0x9b, 29, 0x01, 12, // types behind the actions, call sites in ULEB128
    0x10, 5, 0x40, 1, //
    0x20, 5, 0x50, 3, //
    0x30, 5, 0, 0, //
    2, 0, // catches the second type
    1, 0x7d, // catches the first type, then as above
    0, 0, 0, // alignment
    0x10, 0, 0, 0, // the second type
    0, 0, 0, 0, // the first one: any
];

#[test]
fn what_gcc_writes() {
    let area = read(&GCC).unwrap();
    let site = |start, landing_pad: Option<u64>, action| CallSite {
        start,
        size: 5,
        landing_pad: landing_pad.map(InputAddr),
        action,
    };
    let sites =
        [site(0x10, Some(0x1040), Some(0)), site(0x20, Some(0x1050), Some(1)), site(0x30, None, None)];
    assert_eq!(area.call_sites, sites);
    assert_eq!(area.table.actions, [vec![2], vec![1, 2]]);
    let field = SECTION_AT + 24;
    let types = [(1, ExceptionType::Any), (2, ExceptionType::In(field + 0x10))];
    assert_eq!(area.table.types, types.into());
}

#[test]
fn lists_and_bases() {
    // Pads count from an address, call sites have four bytes, types are addresses, and a list names two.
    let mut section = vec![0x03, 0x00, 0x20, 0, 0, 0x03, 28, 0x03, 13];
    for number in [0u32, 0x20, 8] {
        section.extend_from_slice(&number.to_le_bytes());
    }
    section.extend_from_slice(&[1, 0x7d, 0]);
    section.extend_from_slice(&[0, 0, 0]);
    section.extend_from_slice(&[0x00, 0x70, 0, 0, 0x00, 0x60, 0, 0]);
    section.extend_from_slice(&[9, 9, 1, 2, 0]);
    let area = read(&section).unwrap();
    assert_eq!(area.call_sites[0].landing_pad, Some(InputAddr(0x2008)));
    assert_eq!(area.table.actions, [[-3]]);
    assert_eq!(area.table.lists, [(2, vec![1, 2])].into());
    let at = |place| ExceptionType::At(InputAddr(place));
    assert_eq!(area.table.types, [(1, at(0x6000)), (2, at(0x7000))].into());
}

#[test]
fn whole_addresses_are_read_where_they_stand() {
    let mut section = vec![0xff, 0x00, 24, 0x01, 4, 0, 8, 0x40, 1, 1, 0];
    section.extend_from_slice(&[0; 8]);
    section.extend_from_slice(&[0; 8]);
    let types = |area: Lsda| area.table.types[&1];
    assert_eq!(types(read(&section).unwrap()), ExceptionType::Any);
    let field = SECTION_AT + 19;
    let filled = read_filled(&section, |word| word == field).unwrap();
    assert_eq!(types(filled), ExceptionType::In(field));
    section[19] = 5;
    assert_eq!(types(read(&section).unwrap()), ExceptionType::In(field));
    // Four bytes are none that the dynamic linker fills.
    section[1] = 0x03;
    assert!(read_filled(&section, |_| true).is_err());
}

#[test]
fn what_cannot_be_told_is_an_error() {
    assert!(fault(&[]).contains("outside of its section"));
    assert!(fault(&[0x80, 0, 0, 0, 0]).contains("kept in a word"));
    assert!(fault(&[0xff, 0xff, 0x11, 0]).contains("unknown way"));
    assert!(fault(&[0xff, 0xff, 0x01, 4]).contains("behind the section"));
    assert!(fault(&[0xff, 0xff, 0x01, 8, 4, 4, 0, 0, 6, 4, 0, 0]).contains("overlap"));
    assert!(fault(&[0xff, 0xff, 0x01, 5, 0, 0x81, 2, 0, 0]).contains("beyond the function"));
    assert!(fault(&[0xff, 0xff, 0x01, 4, 0, 4, 0, 1, 0, 0]).contains("no landing pad"));
    assert!(fault(&[0xff, 0xff, 0x01, 4, 0, 4, 4, 1, 1, 0]).contains("there are none"));
    assert!(fault(&[0xff, 0xff, 0x01, 4, 0, 4, 4, 1, 0, 0x7f]).contains("circle"));
    assert!(fault(&[0xff, 0xff, 0x01, 4, 0, 4, 4, 1, 0, 0x70]).contains("leads out"));
    assert!(fault(&[0xff, 0x1b, 8, 0x01, 4, 0, 4, 4, 1, 9, 0]).contains("in front"));
    assert!(fault(&[0xff, 0x01, 6, 0x01, 0]).contains("types are stored"));
}

#[test]
fn tables_of_two_parts_are_joined_if_they_agree() {
    let mut table = ExceptionTable::default();
    table.types.insert(1, ExceptionType::Any);
    table.action(&[1]);
    let mut other = ExceptionTable::default();
    other.types.insert(2, ExceptionType::At(InputAddr(8)));
    other.action(&[2]);
    other.action(&[1]);
    assert_eq!(table.join(&other), Some(vec![1, 0]));
    assert_eq!(table.actions, [[1], [2]]);
    other.types.insert(1, ExceptionType::At(InputAddr(16)));
    assert_eq!(table.join(&other), None);
}

fn read_back(bytes: &[u8], address: OutputAddr, run: OutputAddr) -> Lsda {
    let address = InputAddr(address.get());
    let function = (InputAddr(run.get()), 1 << 20);
    Lsda::read(LsdaPlace { section: bytes, address, area: address, function }, |_| false).unwrap()
}

/// A table with one action of each kind; types are of one kind.
fn table(is_indirect: bool) -> ExceptionTable {
    let mut table = ExceptionTable::default();
    let place = |at: u64| {
        let at = InputAddr(at);
        if is_indirect { ExceptionType::In(at) } else { ExceptionType::At(at) }
    };
    table.types.extend([(1, place(0x9000)), (2, ExceptionType::Any), (5, place(0x7000))]);
    table.lists.extend([(0, vec![1, 5]), (3, vec![]), (1, vec![5])]);
    for chain in [&[0][..], &[1], &[5, 0], &[-1], &[-4, 2], &[2, 1, 5, 0]] {
        table.action(chain);
    }
    table
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        indirect in any::<bool>(),
        rows in proptest::collection::vec((0u32..40, 1u32..90, proptest::option::of(-3i64..200), 0usize..7), 0..30),
    ) {
        let table = table(indirect);
        let (run, address) = (OutputAddr(0x10_0000), OutputAddr(0x20_0000));
        let mut at = 0;
        let mut sites = Vec::new();
        for (gap, size, pad, action) in rows {
            let landing_pad = pad.map(|pad| OutputAddr(run.get().wrapping_add_signed(pad * 16)));
            let action = (action < 6 && landing_pad.is_some()).then_some(action as u32);
            sites.push(OutputCallSite { start: at + gap, size, landing_pad, action });
            at += gap + size;
        }
        let bytes = write_lsda(&sites, &table, run, address).unwrap();
        let area = read_back(&bytes, address, run);
        prop_assert_eq!(area.call_sites.len(), sites.len());
        for (found, wanted) in area.call_sites.iter().zip(&sites) {
            prop_assert_eq!((found.start, found.size), (wanted.start, wanted.size));
            prop_assert_eq!(found.landing_pad.map(InputAddr::get), wanted.landing_pad.map(OutputAddr::get));
            let found = found.action.map(|row| &area.table.actions[row as usize]);
            prop_assert_eq!(found, wanted.action.map(|row| &table.actions[row as usize]));
        }
        for (number, found) in &area.table.types {
            prop_assert_eq!(Some(found), table.types.get(number));
        }
        for (place, found) in &area.table.lists {
            prop_assert_eq!(Some(found), table.lists.get(place));
        }
    }
}

/// As found by fuzzing: a distance of 0 says that any type is caught.
#[test]
fn no_type_stands_in_its_own_field() {
    let (run, address) = (OutputAddr(0x1000), OutputAddr(0x4000));
    let written = |place| {
        let types = [(1, ExceptionType::In(InputAddr(place)))].into();
        let table = ExceptionTable { actions: vec![vec![1]], types, ..ExceptionTable::default() };
        let site = OutputCallSite { start: 0, size: 1, landing_pad: Some(OutputAddr(8)), action: Some(0) };
        write_lsda(&[site], &table, run, address)
    };
    let field = address.get() + written(0x9000).expect("a word elsewhere").len() as u64 - 4;
    let area = read_back(&written(0x9000).expect("as before"), address, run);
    assert_eq!(area.table.types, [(1, ExceptionType::In(InputAddr(0x9000)))].into());
    assert_eq!(written(field), None);
}

#[test]
fn a_pad_where_the_run_starts_has_a_base_in_front_of_it() {
    let (run, address) = (OutputAddr(0x1000), OutputAddr(0x3000));
    let site = OutputCallSite { start: 8, size: 8, landing_pad: Some(run), action: None };
    let bytes = write_lsda(&[site], &ExceptionTable::default(), run, address).unwrap();
    assert_eq!(bytes[0], 0x1b);
    assert_eq!(read_back(&bytes, address, run).call_sites[0].landing_pad, Some(InputAddr(0x1000)));
    let far = OutputCallSite { landing_pad: Some(OutputAddr(1 << 40)), ..site };
    let near = OutputCallSite { landing_pad: Some(OutputAddr(8)), ..site };
    assert_eq!(write_lsda(&[far, near], &ExceptionTable::default(), run, address), None);
}

#[test]
fn lists_that_overlap_are_written_only_if_they_agree() {
    let site =
        |start, row| OutputCallSite { start, size: 1, landing_pad: Some(OutputAddr(8)), action: Some(row) };
    let sites = [site(0, 0), site(1, 1)];
    let any = |number| (number, ExceptionType::Any);
    let written = |first: Vec<u32>, second: Vec<u32>| {
        let lists = [(0, first), (1, second)].into();
        let table =
            ExceptionTable { actions: vec![vec![-1], vec![-2]], types: [any(4), any(6)].into(), lists };
        write_lsda(&sites, &table, OutputAddr(0x1000), OutputAddr(0x4000))
    };
    let area = read(&written(vec![4, 6], vec![6]).unwrap()).unwrap();
    assert_eq!(area.table.lists, [(0, vec![4, 6]), (1, vec![6])].into());
    // As found by fuzzing: the 4 was stored in two bytes, and the second list began at the second.
    assert_eq!(written(vec![6], vec![4, 6]), None);
    assert_eq!(written(vec![4, 6], vec![4]), None);
}
