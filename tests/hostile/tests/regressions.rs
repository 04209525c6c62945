//! Damage that once made afterlink panic, or let through an output that did not run.

use std::path::Path;

use afterlink_hostile::job::random_layout;
use afterlink_hostile::whole::{Outcome, run};
use afterlink_image::{Image, elf};
use afterlink_isa::Arch;
use afterlink_pipeline::{Optimized, Silent, optimize};
use afterlink_unwind::{Bases, EhFrame};
use afterlink_verify::{Options, verify};

/// A small position-independent program with a dynamic section; one at fixed addresses.
const PIE: &str = "lld-jump-table-relr";
const FIXED: &str = "ld-no-pie";

fn seed(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/image").join(name)).unwrap()
}

/// A program with some of its bytes changed.
struct Edit {
    bytes: Vec<u8>,
}

impl Edit {
    fn new(name: &str) -> Self {
        Self { bytes: seed(name) }
    }

    fn image(&self) -> Image<'_> {
        Image::parse(&self.bytes).unwrap()
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    /// Where a field of a section's header stands, by the field's offset in it.
    fn header(&self, section: &str, field: usize) -> usize {
        let image = self.image();
        let id = image.section_named(section).unwrap_or_else(|| panic!("there is no {section}"));
        image.section_headers.get() as usize + 64 * id.0 as usize + field
    }

    /// Address and place in the file of the function of that name.
    fn function(&self, name: &str) -> (u64, usize) {
        let image = self.image();
        let symbol =
            image.symbols.iter().find(|s| s.is_named(name)).unwrap_or_else(|| panic!("there is no {name}"));
        (symbol.address.get(), image.file_offset(symbol.address).unwrap().get() as usize)
    }

    /// The function with the most code.
    fn largest_function(&self) -> String {
        let image = self.image();
        image.symbols.iter().filter(|s| s.is_function()).max_by_key(|s| s.size).unwrap().name().to_owned()
    }

    #[track_caller]
    fn assert_error(&self, words: &[&str]) {
        let Outcome::Refused(error) = run(&self.bytes, 1) else { panic!("it was rewritten") };
        assert!(error.contains("; "), "no next step: {error}");
        assert!(words.iter().all(|w| error.contains(w)), "{words:?}: {error}");
    }

    #[track_caller]
    fn assert_proven(&self) {
        match run(&self.bytes, 1) {
            Outcome::Written { unproven, moved, .. } => {
                assert_eq!(unproven, []);
                assert!(moved > 0);
            }
            Outcome::Refused(error) | Outcome::Faulty(error) => panic!("{error}"),
        }
    }

    /// Where the unwind instructions of the code at `address` stand in the file, without padding.
    fn unwind_instructions(&self, address: u64) -> std::ops::Range<usize> {
        let image = self.image();
        let id = image.section_named(".eh_frame").unwrap();
        let bytes = image.section_bytes(id);
        let bases = Bases { text: None, data: None };
        let frames =
            EhFrame::parse(bytes, image.sections[id].address, bases, Arch::X86_64.unwind_numbers()).unwrap();
        let (_, fde) = frames.fdes.iter().find(|(_, f)| f.start.get() == address).unwrap();
        let instructions = frames.instructions(fde);
        let used = instructions.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        let start = instructions.as_ptr().addr() - self.bytes.as_ptr().addr();
        start..start + used
    }

    /// The reason for which a function is left alone.
    #[track_caller]
    fn refusal(&self, name: &str) -> afterlink_core::Refusal {
        let report = optimize(&self.bytes, Vec::new(), &random_layout(1), &Silent).unwrap().report;
        let of = |r: &&afterlink_pipeline::RefusalCount| r.functions.iter().any(|f| f.name == name);
        report.refused.iter().find(of).unwrap_or_else(|| panic!("{name} is not refused")).reason
    }
}

#[test]
fn the_seeds_are_rewritten_when_they_are_whole() {
    Edit::new(PIE).assert_proven();
    Edit::new(FIXED).assert_proven();
}

/// The kernel may enter anywhere; a block starts there, or the function stays.
#[test]
fn an_entry_point_inside_a_function() {
    for name in [PIE, FIXED] {
        for inside in 1..40 {
            let mut edit = Edit::new(name);
            let (address, _) = edit.function(&edit.largest_function());
            edit.put(24, &(address + inside).to_le_bytes());
            edit.assert_proven();
        }
    }
}

#[test]
fn start_up_functions_inside_a_function() {
    for tag in [elf::DT_INIT.0, elf::DT_FINI.0] {
        for inside in 1..40 {
            let mut edit = Edit::new(PIE);
            let (address, _) = edit.function(&edit.largest_function());
            let image = edit.image();
            // lld has written no such entry for some programs; any will do.
            let entry = image.dynamic.entries.iter().find(|e| e.tag == tag);
            let at = entry.map_or(image.dynamic.entries[0].offset, |e| e.offset).get() as usize;
            edit.put(at, &tag.to_le_bytes());
            edit.put(at + 8, &(address + inside).to_le_bytes());
            assert!(matches!(run(&edit.bytes, 1), Outcome::Written { .. } | Outcome::Refused(_)));
        }
    }
}

/// A header of kind "null" says nothing, whatever stands in its other fields.
#[test]
fn a_null_section_somewhere_outside() {
    let mut edit = Edit::new(FIXED);
    let header = edit.header(".comment", 0);
    edit.put(header + 4, &0u32.to_le_bytes());
    edit.put(header + 24, &u64::MAX.to_le_bytes());
    let image = edit.image();
    assert!(image.sections.ids().all(|id| image.section_bytes(id).len() < edit.bytes.len()));
    assert!(matches!(run(&edit.bytes, 1), Outcome::Written { .. } | Outcome::Refused(_)));
}

/// The program ran before, but its symbols were patched where the header said: in the middle of something else.
#[test]
fn a_loaded_section_whose_place_in_the_file_is_wrong() {
    for section in [".dynsym", ".dynstr", ".text", ".rodata"] {
        let mut edit = Edit::new(PIE);
        let at = edit.header(section, 24);
        edit.put(at, &0x3eu64.to_le_bytes());
        edit.assert_error(&[section, "do not agree"]);
    }
}

#[test]
fn relocations_that_belong_to_nothing() {
    let mut edit = Edit::new(FIXED);
    let at = edit.header(".rela.text", 44);
    edit.put(at, &0x20_0409u32.to_le_bytes());
    edit.assert_error(&[".rela.text"]);

    let mut edit = Edit::new(FIXED);
    let at = edit.header(".rela.text", 40);
    edit.put(at, &1u32.to_le_bytes());
    edit.assert_error(&[".rela.text", "symbol table"]);

    let mut edit = Edit::new(FIXED);
    let at = edit.header(".rela.text", 24);
    edit.put(at, &0u64.to_le_bytes());
    edit.assert_error(&[".text", "outside its section"]);
}

/// `lea` of something 2 GiB behind the program: moved code is further away from it than displacements reach.
#[test]
fn code_that_names_a_place_out_of_reach() {
    let mut edit = Edit::new(FIXED);
    let name = edit.largest_function();
    let (_, at) = edit.function(&name);
    let mut lea = vec![0x48, 0x8d, 0x05];
    lea.extend_from_slice(&(i32::MAX - 0x100).to_le_bytes());
    edit.put(at, &lea);
    lea[3..].copy_from_slice(&(i32::MIN + 0x100).to_le_bytes());
    assert_ne!(edit.refusal(&name), afterlink_core::Refusal::Excluded);
    assert!(matches!(run(&edit.bytes, 1), Outcome::Written { .. } | Outcome::Refused(_)));
    edit.put(at, &lea);
    assert!(matches!(run(&edit.bytes, 1), Outcome::Written { .. } | Outcome::Refused(_)));
}

/// A function that runs off its end stays, but a profile may still have counts of it.
#[test]
fn counts_of_a_function_that_was_not_built_to_its_end() {
    let mut edit = Edit::new(PIE);
    let name = edit.largest_function();
    let (_, at) = edit.function(&name);
    let size = edit.image().symbols.iter().find(|s| s.is_named(&name)).unwrap().size as usize;
    // `cmp; jne` to the start, and on into the next function.
    let end: [u8; 6] = [0x83, 0xf8, 0, 0x75, (4 - size as isize) as u8, 0x90];
    edit.put(at, &vec![0x90; size]);
    edit.put(at + size - 8, &[0x75, 3]);
    edit.put(at + size - end.len(), &end);
    assert_eq!(edit.refusal(&name), afterlink_core::Refusal::FallsThroughEnd);
    let text = format!("0 [unknown] 0 1 {name} 0 0 7\n1 {name} {:x} 1 {name} 0 0 9\n", size - 8);
    let profile = afterlink_profile::fdata::read(text.as_bytes()).unwrap();
    let report = optimize(&edit.bytes, vec![profile], &random_layout(1), &Silent).unwrap().report;
    assert_eq!(report.refused.iter().flat_map(|r| &r.functions).find(|f| f.name == name).unwrap().name, name);
}

/// Unwind rows that only start at multiples of four bytes can't follow moved code.
#[test]
fn unwind_entries_that_count_in_larger_steps() {
    let mut edit = Edit::new(PIE);
    let found = augmentations(&edit);
    assert!(!found.is_empty());
    found.iter().for_each(|at| edit.put(at + 3, &[4]));
    let name = edit.largest_function();
    assert_eq!(edit.refusal(&name), afterlink_core::Refusal::Unwind);
}

/// An instruction that nobody knows concerns its function only; the output has it, and all that stands behind it.
#[test]
fn unwind_instructions_that_nobody_knows() {
    const UNKNOWN: u8 = 0x3f;
    let edit = Edit::new(PIE);
    let name = edit.largest_function();
    let (address, _) = edit.function(&name);
    let instructions = edit.unwind_instructions(address);
    let mut refused = 0;
    for at in instructions {
        let mut edit = Edit::new(PIE);
        edit.put(at, &[UNKNOWN]);
        edit.assert_proven();
        let Optimized { bytes, report, .. } =
            optimize(&edit.bytes, Vec::new(), &random_layout(1), &Silent).unwrap();
        if !report.refused.iter().any(|r| r.functions.iter().any(|f| f.name == name)) {
            continue;
        }
        refused += 1;
        let output = Edit { bytes };
        for at in output.unwind_instructions(address) {
            let mut output = Edit { bytes: output.bytes.clone() };
            output.put(at, &[output.bytes[at] ^ UNKNOWN]);
            let verdict = verify(&edit.image(), &output.image(), &Options::default());
            assert!(!verdict.is_proven(), "a change at {at:#x} of the output");
        }
    }
    assert!(refused > 4, "refused in {refused} cases");
}

/// Where each common entry says how its entries are written: "zR", its end, and the factor of code, which is one.
fn augmentations(edit: &Edit) -> Vec<usize> {
    let image = edit.image();
    let id = image.section_named(".eh_frame").unwrap();
    let (start, size) = (image.sections[id].offset.get() as usize, image.sections[id].size as usize);
    let starts = (start..start + size - 5).filter(|&at| edit.bytes[at..at + 5] == [1, b'z', b'R', 0, 1]);
    starts.map(|at| at + 1).collect()
}

#[test]
fn unwind_entries_that_cannot_be_read() {
    let mut edit = Edit::new(PIE);
    let at = augmentations(&edit)[0];
    edit.put(at + 3, &[0]);
    edit.assert_error(&["unwind entry", "alignment factor", ".eh_frame+"]);
}

/// What is written in a way that nobody knows concerns the functions only that it is for.
#[test]
fn unwind_entries_with_unknown_letters() {
    let plain = Edit::new(PIE);
    let name = plain.largest_function();
    let mut refused = 0;
    for at in augmentations(&plain) {
        let mut edit = Edit::new(PIE);
        edit.put(at, b"y");
        match run(&edit.bytes, 1) {
            Outcome::Written { unproven, .. } => assert_eq!(unproven, []),
            Outcome::Refused(error) | Outcome::Faulty(error) => panic!("{error}"),
        }
        let report = optimize(&edit.bytes, Vec::new(), &random_layout(1), &Silent).unwrap().report;
        let own = report.refused.iter().find(|r| r.functions.iter().any(|f| f.name == name));
        refused += usize::from(own.is_some_and(|r| r.reason == afterlink_core::Refusal::Unwind));
    }
    assert_eq!(refused, 1, "one common entry is that of {name}");
}

/// What is refused before its end keeps no count of blocks that it does not have.
#[test]
fn a_function_that_names_nothing_and_falls_off_its_end() {
    let mut edit = Edit::new(PIE);
    let (_, at) = edit.function("_fini");
    // `rex.W ret`, and `in (%dx), %al; or %ah, disp(%rdi)`, which goes on behind the end.
    edit.put(at, &[0x48, 0xc3, 0xec, 0x08, 0xa7, 0x83, 0xc4, 0x08, 0xc3]);
    edit.assert_proven();
}
