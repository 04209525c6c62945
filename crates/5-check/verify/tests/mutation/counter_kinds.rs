//! The ways in which the code that instrumenting adds is broken. That a counter counts another edge does the program no
//! harm, so it is no mutant; nor is another name of the counter file.

use crate::kinds::{Mutant, Mutate, byte_of, flip, write, write_number};
use crate::sites::{CounterForm, CounterSite, MovedInst, Sites};
use afterlink_isa::Flow;
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{InstructionInfoFactory, OpAccess, Register};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const COUNTER_KINDS: [(&str, Mutate); 12] = [
    ("counter between compare and branch", flags_clobbered),
    ("counter before what may keep flags", kept_flags_clobbered),
    ("counter that keeps flags made one that does not", flags_form),
    ("counter through a register that is read", register_clobbered),
    ("counter outside of the counters", outside),
    ("counter that is no whole word", misaligned),
    ("counter's register not saved or not restored", not_restored),
    ("counter's flags not saved or not restored", flags_not_restored),
    ("counter that adds something else", other_step),
    ("byte of counter code", counter_byte),
    ("byte of start-up code", start_up_byte),
    ("byte of the description", description_byte),
];

fn counter(sites: &Sites, rng: &mut ChaCha8Rng, fits: impl Fn(&CounterSite) -> bool) -> Option<CounterSite> {
    let found: Vec<&CounterSite> = sites.counters.iter().filter(|c| fits(c)).collect();
    found.choose(rng).map(|c| **c)
}

/// Offset in the counter's code of each displacement that names the counter.
fn fields(counter: &CounterSite) -> &'static [usize] {
    match counter.form {
        CounterForm::Increment => &[3],
        CounterForm::Register => &[3, 14],
        CounterForm::Spill => &[9, 20],
        CounterForm::Locked => &[4],
        CounterForm::LockedSaved => &[10],
    }
}

/// `[counter] [compare] [branch]` becomes `[compare] [counter] [branch]`.
fn flags_clobbered(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let compare_behind = |counter: &CounterSite| {
        let at = sites.insts.iter().position(|i| i.address == counter.address + 7)?;
        let (compare, branch) = (sites.insts[at], sites.insts.get(at + 1)?);
        let opcode = sites.bytes[compare.offset..].iter().find(|&&byte| byte & 0xf0 != 0x40)?;
        // cmp and test with registers or with numbers; none of them names a place.
        let compares = matches!(opcode, 0x38..=0x3d | 0x80..=0x85 | 0xa8 | 0xa9);
        let carry = matches!(branch.inst.flow, Flow::Branch(condition, _) if condition.0 >> 1 == 1);
        let branches = matches!(branch.inst.flow, Flow::Branch(..)) && !carry;
        let adjacent = branch.address == compare.end() && compare.inst.operand.is_none();
        (compares && branches && adjacent).then_some(compare)
    };
    let found = counter(sites, rng, |c| c.form == CounterForm::Increment && compare_behind(c).is_some())?;
    put_behind(sites, &found, &compare_behind(&found)?)
}

/// The same where a shift by a register, which changes no flag if it shifts by zero, stands before the branch.
fn kept_flags_clobbered(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let compare_behind = |counter: &CounterSite| {
        let at = sites.insts.iter().position(|i| i.address == counter.address + 7)?;
        let [compare, shift, branch] = sites.insts.get(at..at + 3)? else { return None };
        let compares = matches!(sites.bytes[compare.offset], 0x81 | 0x83 | 0x3d);
        let shifts = sites.bytes[shift.offset] == 0xd3;
        let branches = matches!(branch.inst.flow, Flow::Branch(..)) && branch.address == shift.end();
        (compares && shifts && branches && shift.address == compare.end()).then_some(*compare)
    };
    let found = counter(sites, rng, |c| c.form == CounterForm::Increment && compare_behind(c).is_some())?;
    put_behind(sites, &found, &compare_behind(&found)?)
}

/// The counter changes places with the instruction behind it.
fn put_behind(sites: &Sites, found: &CounterSite, compare: &MovedInst) -> Mutant {
    let len = usize::from(compare.inst.len);
    let mut code = sites.bytes[compare.offset..compare.offset + len].to_vec();
    code.extend_from_slice(&[0x48, 0xff, 0x05]);
    let displacement = sites.word(found.offset + 3, 4) - len as i64;
    code.extend_from_slice(&displacement.to_le_bytes()[..4]);
    write(sites, found.offset, &code, format!("counter {:#x} behind the compare", found.address))
}

/// The one-instruction form where another was chosen, filled up with a nop.
fn flags_form(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let keeps = |c: &CounterSite| !matches!(c.form, CounterForm::Increment | CounterForm::Locked);
    let found = counter(sites, rng, keeps)?;
    let first = fields(&found)[0];
    let shift = first as i64 - 3;
    let mut code = vec![0x48, 0xff, 0x05];
    code.extend_from_slice(&(sites.word(found.offset + first, 4) + shift).to_le_bytes()[..4]);
    code.resize(found.len, 0x90);
    write(sites, found.offset, &code, format!("counter {:#x} changes flags", found.address))
}

/// Through a register that the instruction behind the counter reads, where rax was saved before.
fn register_clobbered(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let mut factory = InstructionInfoFactory::new();
    let mut read_behind = |counter: &CounterSite| -> Option<u8> {
        let next = sites.insts.iter().find(|i| i.address == counter.address + counter.len as u64)?;
        let inst = full(&sites.bytes[next.offset..][..usize::from(next.inst.len)], next.address)?;
        let used = factory.info(&inst).used_registers().iter();
        let read = used.filter(|u| matches!(u.access(), OpAccess::Read | OpAccess::ReadWrite));
        let general = read.map(|u| u.register().full_register());
        let general = general.filter(|r| (Register::RAX..=Register::R15).contains(r));
        // As a base, two registers would need another byte.
        let mut numbers = general.map(|r| (r as u32 - Register::RAX as u32) as u8);
        numbers.rfind(|number| number & 7 != 4)
    };
    let wide: Vec<(CounterSite, u8)> = sites
        .counters
        .iter()
        .filter(|c| c.form == CounterForm::Register)
        .filter_map(|c| Some((*c, read_behind(c)?)))
        .collect();
    let &(found, register) = wide.choose(rng)?;
    let (low, high) = (register & 7, register >> 3);
    let mut code = sites.bytes[found.offset..found.offset + found.len].to_vec();
    for start in [0, 11] {
        code[start] = 0x48 | high << 2;
        code[start + 2] = 0x05 | low << 3;
    }
    (code[7], code[9]) = (0x48 | high << 2 | high, 0x40 | low << 3 | low);
    write(sites, found.offset, &code, format!("counter {:#x} through register {register}", found.address))
}

/// The same counter code for another place.
fn lead_to(sites: &Sites, found: &CounterSite, place: u64, what: &str) -> Mutant {
    let mut code = sites.bytes[found.offset..found.offset + found.len].to_vec();
    for &field in fields(found) {
        let displacement = place.wrapping_sub(found.address + field as u64 + 4) as i64;
        code[field..field + 4].copy_from_slice(&displacement.to_le_bytes()[..4]);
    }
    write(sites, found.offset, &code, format!("counter {:#x} {what} {place:#x}", found.address))
}

fn place_of(sites: &Sites, found: &CounterSite) -> u64 {
    let field = fields(found)[0];
    (found.address + field as u64 + 4).wrapping_add(sites.word(found.offset + field, 4) as u64)
}

fn outside(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = counter(sites, rng, |_| true)?;
    let memory = &sites.output.sections[sites.output.section_named(".afterlink.counters")?];
    let data = &sites.output.sections[sites.output.section_named(".data")?];
    // Behind the counters come the words of targets, which are counters, too, for all that the program can tell.
    let (description, _) = sites.section(".afterlink.description")?;
    let (first, count) = (sites.word(description + 32, 8) as u64, sites.word(description + 40, 8) as u64);
    let end = memory.address.get() + first + 8 * count;
    let places = [
        memory.address.get() - 8,
        memory.address.get(),
        memory.address.get() + 128,
        memory.end().get(),
        end,
        data.address.get(),
        found.address & !7,
    ];
    lead_to(sites, &found, *places.choose(rng)?, "counts at")
}

fn misaligned(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = counter(sites, rng, |_| true)?;
    let step = rng.random_range(1..8);
    lead_to(sites, &found, place_of(sites, &found) + step, "counts at")
}

/// A nop instead of the push or pop, another register, or another step of the stack pointer.
fn not_restored(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = counter(sites, rng, |c| c.form == CounterForm::Spill)?;
    let changes =
        [(5, 0x90), (24, 0x90), (5, 0x51), (24, 0x59), (4, 0x88), (29, 0x88), (29, 0x78), (26, 0x8b)];
    let &(at, byte) = changes.choose(rng)?;
    write(sites, found.offset + at, &[byte], format!("byte {at} of counter {:#x}", found.address))
}

/// The same of the flags.
fn flags_not_restored(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = counter(sites, rng, |c| c.form == CounterForm::LockedSaved)?;
    let changes =
        [(5, 0x90), (14, 0x90), (5, 0x50), (14, 0x58), (4, 0x88), (19, 0x88), (19, 0x78), (16, 0x8b)];
    let &(at, byte) = changes.choose(rng)?;
    write(sites, found.offset + at, &[byte], format!("byte {at} of counter {:#x}", found.address))
}

/// Another number than one, or a store that goes to another counter than the load.
fn other_step(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = counter(sites, rng, |c| matches!(c.form, CounterForm::Register | CounterForm::Spill))?;
    let second = fields(&found)[1];
    if rng.random() {
        let step = *[2, 0xff, 0].choose(rng)?;
        return write(sites, found.offset + second - 4, &[step], format!("step of {:#x}", found.address));
    }
    let other = sites.word(found.offset + second, 4) + *[-8, 8].choose(rng)?;
    write_number(sites, found.offset + second, 4, other, "stored counter")
}

/// Any byte but those of the displacement.
fn counter_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = counter(sites, rng, |_| true)?;
    let fixed = |at: &usize| !fields(&found).iter().any(|&field| (field..field + 4).contains(at));
    let at = (0..found.len).filter(fixed).choose(rng)?;
    // The bits of a REX prefix that extend a register that the instruction does not have are read by nobody.
    flip(sites, rng, found.offset + at, &format!("byte {at} of counter {:#x}", found.address))
}

fn start_up_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(".text.afterlink")?;
    let code = &sites.bytes[start..start + size];
    let path = b"/where/counters/go";
    let named = code.windows(path.len()).position(|w| w == path)?;
    let at = rng.random_range(0..size);
    let in_path = (named..named + path.len()).contains(&at);
    if in_path { None } else { flip(sites, rng, start + at, "start-up code") }
}

fn description_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = byte_of(sites, rng, ".afterlink.description")?;
    flip(sites, rng, at, "description")
}
