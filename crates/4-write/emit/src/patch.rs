//! Changes to bytes that stay where they are: pointers in data, fields of code that does not move, and the
//! jumps left at the old entries of code that did.

use crate::addresses::Addresses;
use crate::encode::{displacement, input_offset, write_field};
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_image::Image;
use afterlink_isa::x86_64::{ENDBR64, JUMP_LONG, TRAP, decode, write_jump};
use afterlink_program::{Field, Function, PointerForm, Program};

/// Patches `contents`, a copy of the input file.
pub(crate) fn patch(
    image: &Image,
    program: &Program,
    addresses: &Addresses,
    trap_old_code: bool,
    contents: &mut [u8],
) {
    pointers(program, addresses, contents);
    for (id, function) in program.functions.iter() {
        if addresses.is_moved(id) {
            old_code(image, program, function, addresses, trap_old_code, contents);
        } else {
            fields(image, function, addresses, contents);
        }
    }
}

fn pointers(program: &Program, addresses: &Addresses, contents: &mut [u8]) {
    for pointer in &program.pointers {
        let target = addresses.target(pointer.target);
        let at = pointer.field.get() as usize;
        match pointer.form {
            PointerForm::Word64 => contents[at..at + 8].copy_from_slice(&target.get().to_le_bytes()),
            PointerForm::Word32 => {
                let value = u32::try_from(target.get()).expect("fixed addresses are below 2 GiB");
                contents[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            PointerForm::Relative32(base) => {
                let value = displacement(target, OutputAddr(base.get()));
                contents[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
}

fn fields(image: &Image, function: &Function, addresses: &Addresses, contents: &mut [u8]) {
    for reference in function.references.iter().chain(&function.terminator_references) {
        let target = addresses.referred(reference);
        // A one-byte branch to code that moved leads to the jump that stands there now.
        if target.get() == reference.target.get() || reference.form == Field::Relative8 {
            continue;
        }
        if let Some(at) = input_offset(image, reference.field) {
            write_field(contents, at, reference, OutputAddr(reference.field.get()), target);
        }
    }
}

/// Leaves a jump to the new place at each old entry. Bytes in between stay, so that even a jump into them that
/// nobody knew of still runs the code as it was; or they trap, to bring such a jump to light.
fn old_code(
    image: &Image,
    program: &Program,
    function: &Function,
    addresses: &Addresses,
    trap: bool,
    contents: &mut [u8],
) {
    if trap {
        for range in &function.ranges {
            if let Some(at) = input_offset(image, range.start) {
                contents[at..at + range.size as usize].fill(TRAP);
            }
        }
    }
    // Invariant: block 0 is the entry; labels and inner symbols are blocks too, but only the entry is public.
    let entry = function.entry();
    let Some(at) = input_offset(image, entry) else { return };
    let target = addresses.target(entry);
    let mut stub = Vec::new();
    // An indirect call that finds no mark where one stood would fault: the mark stays in any case.
    if image.bytes_at(entry, ENDBR64.len()) == Some(&ENDBR64[..]) {
        stub.extend_from_slice(&ENDBR64);
    }
    let room = room_at(image, program, entry, stub.len() as u64 + JUMP_LONG);
    let end = OutputAddr(entry.get()) + stub.len() as u64 + JUMP_LONG;
    write_jump(&mut stub, false, displacement(target, end));
    if stub.len() as u64 <= room {
        contents[at..at + stub.len()].copy_from_slice(&stub);
    } else if let Some(range) = function.ranges.first() {
        // Too short for a jump; such code holds no position-dependent field, so it may run where it is.
        let bytes = image.bytes_at(range.start, range.size as usize).expect("the function lies in the image");
        contents[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Bytes from `entry` on that a stub may overwrite: the function's own and, as far as it is `wanted`, the padding
/// behind it.
fn room_at(image: &Image, program: &Program, entry: InputAddr, wanted: u64) -> u64 {
    let next = program.extents.partition_point(|(range, _)| range.start <= entry);
    let own = program.extents[next - 1].0;
    let limit = program.extents.get(next).map_or(own.end() + wanted, |(range, _)| range.start);
    let mut end = own.end();
    while end < limit && end.since(entry) < wanted {
        let Some(bytes) = image.bytes_at(end, 1) else { break };
        let rest = image.bytes_at(end, limit.since(end).min(15) as usize).unwrap_or(bytes);
        match decode(rest).filter(|inst| inst.nop || rest[0] == TRAP) {
            Some(inst) => end = end + u64::from(inst.len),
            None => break,
        }
    }
    end.since(entry)
}
