//! Damaged files: whatever the headers say, writing gives a file or an error, and never a panic or a giant.

use crate::programs::{gnu_cases, lld_cases};
use afterlink_elf::{LooseSection, NewSection, NewSymbol, OutputPlan, SectionRef, SymbolChange, SymbolMove};
use afterlink_image::{Image, elf};
use std::fs;

/// xorshift64*; small and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Uses everything that a plan offers; `None` if the image has no room for it.
fn full_plan<'a>(image: &'a Image<'a>) -> Option<OutputPlan<'a>> {
    let mut plan = OutputPlan::new(image);
    plan.counter_bytes = 4096;
    let address = afterlink_elf::free_address(image, plan.counter_bytes).ok()?;
    let (kind, flags) = (elf::SHT_PROGBITS.0, elf::SHF_EXECINSTR.0);
    let name = ".text.hot".into();
    plan.sections.push(NewSection { name, kind, flags, alignment: 16, address, bytes: vec![0xc3; 9] });
    plan.frame_header = Some(afterlink_elf::FrameHeader { address, size: 8 });
    plan.loose.push(LooseSection { name: ".afterlink.map".into(), kind, bytes: Box::new(vec![1; 9]) });
    let place = SymbolMove { address, size: 1, section: SectionRef::New(0) };
    let rows = image.symbols.len() as u32;
    plan.symbols.extend((1..rows).step_by(7).map(|row| (row, SymbolChange::Move(place))));
    plan.symbols.extend((2..rows).step_by(7).map(|row| (row, SymbolChange::Drop)));
    plan.dynamic_symbols.extend((1..image.dynamic_symbols.len() as u32).step_by(3).map(|row| (row, place)));
    for binding in [elf::STB_LOCAL.0, elf::STB_GLOBAL.0] {
        plan.added_symbols.push(NewSymbol { name: "n".into(), place, kind: 2, binding, after: Some(5) });
    }
    plan.build_id = Some(vec![7; image.build_id.len()]);
    plan.dynamic.extend(image.dynamic.entries.first().map(|entry| (entry.tag, 1)));
    Some(plan)
}

/// Puts a telling number somewhere in the headers or in the tables that they lead to.
fn damage(bytes: &mut [u8], random: &mut Random, places: &[(usize, usize)]) {
    let (start, size) = places[random.below(places.len())];
    let width = [1, 2, 4, 8][random.below(4)];
    let at = (start + random.below(size) / width * width).min(bytes.len() - 8);
    let value = match random.below(6) {
        0 => 0,
        1 => u64::MAX,
        2 => random.below(bytes.len()) as u64,
        3 => random.next() % 64,
        4 => 1 << random.below(64),
        _ => random.next(),
    };
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

#[test]
fn damaged_files_never_panic_and_never_explode() {
    let mut random = Random(0x5eed);
    let (mut written, mut refused) = (0, 0);
    for case in [&gnu_cases()[0], &gnu_cases()[1], &lld_cases()[0], &lld_cases()[1]] {
        let whole = fs::read(&case.program).unwrap();
        let headers = Image::parse(&whole).unwrap();
        let mut places = vec![(0, 64), (64, 56 * headers.segments.len())];
        places.push((headers.section_headers.get() as usize, 64 * headers.sections.len()));
        let tables = [headers.symbols.section, headers.dynamic_symbols.section];
        let tables = tables.iter().flatten().map(|&id| &headers.sections[id]);
        places.extend(tables.map(|s| (s.offset.get() as usize, s.size as usize)));
        for _ in 0..1500 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(3) {
                damage(&mut bytes, &mut random, &places);
            }
            let Ok(image) = Image::parse(&bytes) else { continue };
            match full_plan(&image).map(afterlink_elf::write) {
                Some(Ok(output)) => {
                    written += 1;
                    assert!(output.len() < 3 * bytes.len() + 65536, "{} bytes", output.len());
                    Image::parse(&output).expect("an output must be readable");
                }
                Some(Err(_)) | None => refused += 1,
            }
        }
    }
    // Both happen often, so the test tests something.
    assert!(written > 500 && refused > 30, "{written} written, {refused} refused");
}

#[test]
fn file_without_section_headers_is_refused_or_copied() {
    let mut bytes = fs::read(&gnu_cases()[0].program).unwrap();
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(image.sections.len(), 0);
    let error = afterlink_elf::write(full_plan(&image).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no section headers"), "{error}");
    let copy = afterlink_elf::write(OutputPlan::new(&image)).unwrap();
    assert_eq!(Image::parse(&copy).unwrap().segments, image.segments);
}
