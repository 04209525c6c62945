//! The smallest useful rewriting: a new function in `.text.hot`, and a jump to it at the start of `answer`.

use afterlink_elf::{
    FrameHeader, LooseSection, NewDynamicSymbol, NewSection, NewSymbol, OutputPlan, SectionRef, SymbolChange,
    SymbolMove, counter_address, free_address,
};
use afterlink_image::{Image, Symbol, elf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    No,
    Yes,
}

pub const COUNTER_BYTES: u64 = 0x3000;

/// Plan in which `answer` is 42, or 40 and the number of its calls.
pub fn plan_new_code<'a>(image: &'a Image<'a>, counting: Counting) -> OutputPlan<'a> {
    let mut plan = OutputPlan::new(image);
    plan.counter_bytes = if counting == Counting::Yes { COUNTER_BYTES } else { 0 };
    let hot = free_address(image, plan.counter_bytes).unwrap();
    let code = match counting {
        Counting::No => vec![0xb8, 42, 0, 0, 0, 0xc3],
        Counting::Yes => {
            // The last counter, so that all of the memory has to be there.
            let counter = counter_address(image).get() + COUNTER_BYTES - 8;
            counting_code(counter.wrapping_sub(hot.get()))
        }
    };
    let answer = image.symbols.iter().find(|s| s.is_named("answer")).unwrap();
    let start = image.file_offset(answer.address).unwrap().get() as usize;
    let distance = (hot.get().wrapping_sub(answer.address.get() + 5) as u32).to_le_bytes();
    plan.patches.write(start, &[0xe9]);
    plan.patches.write(start + 1, &distance);
    let size = code.len() as u64;
    let flags = (elf::SHF_ALLOC | elf::SHF_EXECINSTR).0;
    let kind = elf::SHT_PROGBITS.0;
    plan.sections.push(NewSection {
        name: ".text.hot".into(),
        kind,
        flags,
        alignment: 64,
        address: hot,
        bytes: code,
    });
    add_frame_header(&mut plan, (hot + size).align_up(4));
    let place = SymbolMove { address: hot, size, section: SectionRef::New(0) };
    change_symbols(&mut plan, &answer, place);
    let id: Vec<u8> = image.build_id.iter().map(|b| b ^ 0xff).collect();
    plan.build_id = (!id.is_empty()).then_some(id);
    for name in [".afterlink.map", ".note.afterlink"] {
        let note = b"\x0a\0\0\0\x04\0\0\0\x01\0\0\0afterlink\0\0\0text".to_vec();
        let is_note = name == ".note.afterlink";
        let kind = if is_note { elf::SHT_NOTE.0 } else { elf::SHT_PROGBITS.0 };
        plan.loose.push(LooseSection {
            name: name.into(),
            kind,
            bytes: Box::new(if is_note { note } else { vec![1, 2, 3] }),
        });
    }
    plan
}

/// `inc qword [rip+counter]; mov eax, [rip+counter]; add eax, 40; ret`
fn counting_code(distance: u64) -> Vec<u8> {
    let mut code = vec![0x48, 0xff, 0x05];
    code.extend((distance.wrapping_sub(7) as u32).to_le_bytes());
    code.extend([0x8b, 0x05]);
    code.extend((distance.wrapping_sub(13) as u32).to_le_bytes());
    code.extend([0x83, 0xc0, 40, 0xc3]);
    code
}

/// The old frames under a new header: the old header's search table moved, or none where there is no header.
fn add_frame_header(plan: &mut OutputPlan<'_>, address: afterlink_core::OutputAddr) {
    let image = plan.image;
    let frames = image.sections[image.section_named(".eh_frame").unwrap()].address;
    let to_frames = frames.get().wrapping_sub(address.get() + 4) as u32;
    let bytes = match image.section_named(".eh_frame_hdr") {
        None => [&[1, 0x1b, 0xff, 0xff], &to_frames.to_le_bytes()[..]].concat(),
        Some(id) => {
            let mut bytes = image.section_bytes(id).to_vec();
            assert_eq!(bytes[..4], [1, 0x1b, 3, 0x3b]);
            bytes[4..8].copy_from_slice(&to_frames.to_le_bytes());
            let moved = address.get().wrapping_sub(image.sections[id].address.get()) as u32;
            for entry in bytes[12..].chunks_exact_mut(4) {
                let old = u32::from_le_bytes(entry.try_into().unwrap());
                entry.copy_from_slice(&old.wrapping_sub(moved).to_le_bytes());
            }
            bytes
        }
    };
    plan.frame_header = Some(FrameHeader { address, size: bytes.len() as u64 });
    plan.renames.extend(image.section_named(".eh_frame_hdr").map(|id| (id, ".eh_frame_hdr.input".into())));
    let kind = elf::SHT_PROGBITS.0;
    plan.sections.push(NewSection {
        name: ".eh_frame_hdr".into(),
        kind,
        flags: 2,
        alignment: 4,
        address,
        bytes,
    });
}

/// Names of the symbols that the plan adds.
pub const ADDED: [&str; 4] = ["answer.cold", "last.local", "new.global", "first.counter"];

fn change_symbols(plan: &mut OutputPlan<'_>, answer: &Symbol<'_>, place: SymbolMove) {
    plan.symbols.push((answer.index, SymbolChange::Move(place)));
    // The dynamic symbol stays, as if only a part of the function had moved, which has its name too.
    if let Some(exported) = plan.image.dynamic_symbols.iter().find(|s| s.is_named("answer")) {
        plan.added_dynamic_symbols.push(NewDynamicSymbol { of: exported.index, place });
    }
    let step = plan.image.symbols.iter().find(|s| s.is_named("step")).map(|s| s.index);
    for (name, binding, after) in [
        ("answer.cold", elf::STB_LOCAL, step),
        ("last.local", elf::STB_LOCAL, None),
        ("new.global", elf::STB_GLOBAL, None),
    ] {
        plan.added_symbols.push(NewSymbol {
            name: name.into(),
            place,
            kind: elf::STT_FUNC.0,
            binding: binding.0,
            after,
        });
    }
    if plan.counter_bytes > 0 {
        let address = counter_address(plan.image);
        plan.added_symbols.push(NewSymbol {
            name: "first.counter".into(),
            place: SymbolMove { address, size: 8, section: SectionRef::Counters },
            kind: elf::STT_OBJECT.0,
            binding: elf::STB_GLOBAL.0,
            after: None,
        });
    }
}
