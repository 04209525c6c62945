//! What instructions have in common with those of another build.

use crate::{Flow, Likeness};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The likeness of the instruction at the start of `bytes`; its constants are left out if it `names` an address.
pub(crate) fn likeness(bytes: &[u8], names: bool, flow: Flow) -> Option<Likeness> {
    let inst = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    if inst.is_invalid() {
        return None;
    }
    // A condition and its opposite lead the same two ways.
    let operation = match flow {
        Flow::Branch(condition, _) => 0x1_0000 | u32::from(condition.0 & !1),
        _ => inst.mnemonic() as u32,
    };
    let mut hasher = DefaultHasher::new();
    operation.hash(&mut hasher);
    (inst.has_rep_prefix(), inst.has_repne_prefix(), inst.has_lock_prefix()).hash(&mut hasher);
    if flow.displacement().is_none() {
        inst.memory_size().hash(&mut hasher);
        inst.op_kinds().for_each(|kind| class(kind).hash(&mut hasher));
        (0..inst.op_count()).for_each(|i| inst.op_register(i).size().hash(&mut hasher));
    }
    let shape = hasher.finish();
    details(&inst, names, &mut hasher);
    Some(Likeness { len: inst.len() as u8, flow, operation, shape, exact: hasher.finish() })
}

/// Constants count as one kind, however many bytes they are written in.
fn class(kind: OpKind) -> u8 {
    match kind {
        OpKind::Register => 0,
        OpKind::Memory => 1,
        _ => 2,
    }
}

fn details(inst: &Instruction, names: bool, hasher: &mut impl Hasher) {
    for i in 0..inst.op_count() {
        match inst.op_kind(i) {
            OpKind::Register => inst.op_register(i).hash(hasher),
            OpKind::Memory => {
                (inst.memory_base(), inst.memory_index(), inst.memory_index_scale()).hash(hasher);
                if !names && inst.memory_base() != Register::RIP {
                    inst.memory_displacement64().hash(hasher);
                }
            }
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {}
            _ if names => {}
            _ => inst.try_immediate(i).unwrap_or_default().hash(hasher),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Arch;

    fn of(bytes: &[u8], names: bool) -> (u32, u64, u64) {
        let found = Arch::X86_64.likeness(bytes, names).expect("it is an instruction");
        assert_eq!(usize::from(found.len), bytes.len());
        (found.operation, found.shape, found.exact)
    }

    #[test]
    fn likeness_goes_from_loose_to_strict() {
        let add_one = of(&[0x48, 0x83, 0xc0, 0x01], false); // add $1,%rax
        let add_two = of(&[0x48, 0x83, 0xc0, 0x02], false); // add $2,%rax
        let add_far = of(&[0x48, 0x81, 0xc1, 0x00, 0x10, 0x00, 0x00], false); // add $0x1000,%rcx
        let add_register = of(&[0x48, 0x01, 0xd8], false); // add %rbx,%rax
        assert_eq!((add_one.0, add_one.1), (add_two.0, add_two.1));
        assert_ne!(add_one.2, add_two.2);
        assert_eq!((add_one.0, add_one.1), (add_far.0, add_far.1));
        assert_ne!(add_one.2, add_far.2);
        assert_eq!(add_one.0, add_register.0);
        assert_ne!(add_one.1, add_register.1);
    }

    #[test]
    fn addresses_do_not_count() {
        // lea 0x10(%rip),%rax; lea 0x2000(%rip),%rax
        let (near, far) = ([0x48, 0x8d, 0x05, 0x10, 0, 0, 0], [0x48, 0x8d, 0x05, 0, 0x20, 0, 0]);
        assert_eq!(of(&near, true), of(&far, true));
        assert_eq!(of(&near, false), of(&far, false));
        // mov $0x401000,%edi; mov $0x402000,%edi
        let (one, other) = ([0xbf, 0, 0x10, 0x40, 0], [0xbf, 0, 0x20, 0x40, 0]);
        assert_eq!(of(&one, true), of(&other, true));
        assert_ne!(of(&one, false), of(&other, false));
        // call, near and far
        assert_eq!(of(&[0xe8, 1, 0, 0, 0], false), of(&[0xe8, 0, 0, 1, 0], false));
    }

    #[test]
    fn a_branch_is_like_its_opposite_however_long() {
        let (je, jne, jne_long) = ([0x74, 5], [0x75, 7], [0x0f, 0x85, 0, 1, 0, 0]);
        assert_eq!(of(&je, false), of(&jne, false));
        assert_eq!(of(&je, false), of(&jne_long, false));
        assert_ne!(of(&je, false), of(&[0x7c, 5], false)); // jl
    }
}
