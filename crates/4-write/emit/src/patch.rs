//! Changes to bytes that stay where they are: pointers in data, fields of code that does not move, and the
//! jumps left at the old entries of code that did.

use crate::EmitOptions;
use crate::addresses::Addresses;
use crate::encode::{displacement, input_offset, write_operand};
use afterlink_core::OutputAddr;
use afterlink_elf::Patches;
use afterlink_image::{Image, SHADOW_STACK};
use afterlink_isa::Encoding;
use afterlink_program::{FuncId, Function, JumpTable, PointerForm, Program, Target};

/// Adds the changes to `patches`.
pub(crate) fn patch(
    image: &Image,
    program: &Program,
    addresses: &Addresses,
    options: &EmitOptions,
    patches: &mut Patches,
) {
    pointers(program, addresses, patches);
    if options.drop_shadow_stack {
        drop_shadow_stack(image, patches);
    }
    for (id, function) in program.functions.iter() {
        if addresses.is_moved(id) {
            tables(image, id, function, addresses, patches);
            old_code(image, function, addresses, options.trap_old_code, patches);
        } else if !function.is_read {
            fields(image, id, function, addresses, patches);
        }
    }
}

/// Takes the mark for shadow stacks off.
fn drop_shadow_stack(image: &Image, patches: &mut Patches) {
    for at in image.shadow_stack_marks() {
        let at = at.get() as usize;
        patches.write(at, &[image.bytes[at] & !(SHADOW_STACK as u8)]);
    }
}

fn pointers(program: &Program, addresses: &Addresses, patches: &mut Patches) {
    for pointer in &program.pointers {
        // Pointers in data name no block as their own function's.
        let target = addresses.of(pointer.target, FuncId(0));
        let at = pointer.field.get() as usize;
        match pointer.form {
            PointerForm::Word64 => patches.write(at, &target.get().to_le_bytes()),
            PointerForm::Word32 => {
                let value = u32::try_from(target.get()).expect("fixed addresses are below 2 GiB");
                patches.write(at, &value.to_le_bytes());
            }
            PointerForm::Relative32(base) => {
                let value = displacement(target, OutputAddr(base.get()));
                patches.write(at, &value.to_le_bytes());
            }
        }
    }
}

/// Writes the jump tables of a function that moved and that stay where they are.
fn tables(image: &Image, id: FuncId, function: &Function, addresses: &Addresses, patches: &mut Patches) {
    for table in function.jump_tables.iter().filter(|table| table.place.is_none()) {
        if let (Some(at), Some(size)) = (input_offset(image, table.base), table.size()) {
            let mut bytes = image.bytes[at..at + size as usize].to_vec();
            write_table(id, table, addresses, &mut bytes);
            patches.write(at, &bytes);
        }
    }
}

/// Writes a jump table of a function that moved to the start of `bytes`. What counted from the table counts from where it
/// stands now.
pub(crate) fn write_table(id: FuncId, table: &JumpTable, addresses: &Addresses, bytes: &mut [u8]) {
    let Some(format) = table.format else { return };
    let base = match format.base {
        Some(base) if base == table.base => addresses.table(table),
        Some(base) => OutputAddr(base.get()),
        None => OutputAddr(0),
    };
    let entries = bytes.chunks_exact_mut(usize::from(format.entry));
    for (entry, &block) in entries.zip(&table.targets) {
        let distance = addresses.block(id, block).since(base) as i64;
        // Invariant: `check_reach` has found everything in reach of everything.
        let value = format.entry_value(distance).expect("an entry reaches its target");
        entry.copy_from_slice(&value.to_le_bytes()[..entry.len()]);
    }
}

fn fields(image: &Image, id: FuncId, function: &Function, addresses: &Addresses, patches: &mut Patches) {
    for (field, operand) in function.input_operands() {
        // A one-byte branch to code that moved leads to the jump that stands there now.
        if operand.encoding == Encoding::Relative8 {
            continue;
        }
        let moved_to = match operand.target {
            Target::Code(to, _) if addresses.is_moved(to) => addresses.of(operand.target, id),
            _ => continue,
        };
        if let Some(at) = input_offset(image, field) {
            let mut bytes = image.bytes[at..at + usize::from(operand.encoding.size())].to_vec();
            write_operand(&mut bytes, operand, OutputAddr(field.get()), moved_to);
            patches.write(at, &bytes);
        }
    }
}

/// Leaves a jump to the new place at each old entry. Bytes in between stay, so that even a jump into them that
/// nobody knew of still runs the code as it was; or they trap, to bring such a jump to light.
fn old_code(image: &Image, function: &Function, addresses: &Addresses, trap: bool, patches: &mut Patches) {
    if trap {
        for range in &function.ranges {
            if let Some(at) = input_offset(image, range.start) {
                patches.trap(at..at + range.size as usize);
            }
        }
    }
    // Invariant: block 0 is the entry; labels and inner symbols are blocks too, but only the entry is public.
    let entry = function.entry();
    let Some(at) = input_offset(image, entry) else { return };
    let target = addresses.target(entry);
    let mut stub = Vec::new();
    let code = image.bytes_at(entry, function.ranges[0].size as usize).unwrap_or(&[]);
    let place = OutputAddr(entry.get());
    image.arch.write_entry_stub(&mut stub, code, |end| displacement(target, place + end));
    if function.has_stub_room {
        patches.write(at, &stub);
        return;
    }
    // What somebody finds there is the old code, which goes on in old code.
    for range in &function.ranges {
        let at = input_offset(image, range.start).expect("the function lies in the file");
        patches.restore(at..at + range.size as usize);
    }
}
