//! Writes the bytes of fragments, when all addresses are final.

use crate::addresses::Addresses;
use crate::counters::write_counter;
use crate::shape::{Ending, Exit, ExitKind, Shape, counters_of};
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_image::Image;
use afterlink_isa::x86_64::{TRAP, write_branch, write_jump, write_short_branch};
use afterlink_program::{
    Block, Counter, Field, Fragment, FuncId, Function, Part, Placement, Program, Reference, Target,
};
use rayon::prelude::*;

pub(crate) struct Encoder<'e, 'p, 'a> {
    pub image: &'e Image<'a>,
    pub program: &'p Program<'a>,
    pub addresses: &'e Addresses<'p, 'a>,
    /// Where counter 0 stands.
    pub counters_at: OutputAddr,
}

impl Encoder<'_, '_, '_> {
    /// The bytes of one of the two sections. What is between fragments traps.
    pub fn section(&self, placement: &Placement, shapes: &[Shape], part: Part) -> Vec<u8> {
        let (start, size) = self.addresses.sections[part as usize];
        let mut bytes = vec![TRAP; size as usize];
        let mut rest = &mut bytes[..];
        let mut at = start;
        let mut jobs = Vec::new();
        for (i, fragment) in placement.fragments.iter().enumerate().filter(|(_, f)| f.part == part) {
            let address = self.addresses.fragments[i];
            let (_, tail) = rest.split_at_mut(address.since(at) as usize);
            let (own, tail) = tail.split_at_mut(shapes[i].size() as usize);
            at = address + shapes[i].size();
            rest = tail;
            jobs.push((fragment, &shapes[i], address, own));
        }
        jobs.into_par_iter().for_each(|(fragment, shape, address, own)| {
            let mut out = Vec::with_capacity(own.len());
            let counters = counters_of_function(&placement.counters, fragment.function);
            self.fragment(&mut out, fragment, shape, address, counters);
            own.copy_from_slice(&out);
        });
        bytes
    }

    fn fragment(
        &self,
        out: &mut Vec<u8>,
        fragment: &Fragment,
        shape: &Shape,
        address: OutputAddr,
        counters: &[Counter],
    ) {
        let function = &self.program.functions[fragment.function];
        for (&id, ending) in fragment.blocks.iter().zip(&shape.endings) {
            let block = &function.blocks[id];
            let here = counters_of(counters, id);
            self.body(out, function, block, address, here);
            self.ending(out, fragment.function, block, ending, address);
        }
    }

    /// Copies the body with its position-dependent fields worked out anew, counters put in.
    fn body(
        &self,
        out: &mut Vec<u8>,
        function: &Function,
        block: &Block,
        address: OutputAddr,
        counters: &[Counter],
    ) {
        let bytes = self.image.bytes_at(block.input, block.body as usize).unwrap_or(&[]);
        let mut copied = 0usize;
        let mut references = function.references_of(block).iter().peekable();
        let cuts = counters.iter().map(|c| (c.offset as usize, Some(c))).chain([(bytes.len(), None)]);
        for (cut, counter) in cuts {
            let base = out.len() - copied;
            out.extend_from_slice(&bytes[copied..cut]);
            copied = cut;
            while let Some(reference) = references.next_if(|r| r.field < block.input + cut as u64) {
                let at = base + reference.field.since(block.input) as usize;
                write_field(out, at, reference, address + at as u64, self.addresses.referred(reference));
            }
            if let Some(counter) = counter {
                let here = address + out.len() as u64;
                let target = self.counters_at + u64::from(counter.index) * 8;
                write_counter(out, counter.form, |end| displacement(target, here + u64::from(end)));
            }
        }
    }

    fn ending(
        &self,
        out: &mut Vec<u8>,
        function: FuncId,
        block: &Block,
        ending: &Ending,
        address: OutputAddr,
    ) {
        for exit in ending.branch.iter().chain(&ending.jump) {
            let end = address + out.len() as u64 + exit.size();
            let target = match exit.target {
                Target::Block(id) => self.addresses.block(function, id),
                Target::Code(address) => self.addresses.target(address),
            };
            self.exit(out, exit, block, displacement(target, end));
        }
    }

    fn exit(&self, out: &mut Vec<u8>, exit: &Exit, block: &Block, displacement: i32) {
        match exit.kind {
            ExitKind::Jump => write_jump(out, exit.short, displacement),
            ExitKind::Branch(condition) => write_branch(out, condition, exit.short, displacement),
            ExitKind::ShortBranch(opcode) => {
                let at = block.input + u64::from(block.body);
                let opcode =
                    self.image.bytes_at(at, usize::from(opcode)).expect("the block lies in the image");
                write_short_branch(out, opcode, displacement);
            }
        }
    }
}

/// The counters of one function; `counters` are in function order.
pub(crate) fn counters_of_function(counters: &[Counter], function: FuncId) -> &[Counter] {
    let from = counters.partition_point(|c| c.function < function);
    let to = counters.partition_point(|c| c.function <= function);
    &counters[from..to]
}

/// Writes a field that stands at `out[at..]` and at `address` in the output.
pub(crate) fn write_field(
    out: &mut [u8],
    at: usize,
    reference: &Reference,
    address: OutputAddr,
    target: OutputAddr,
) {
    match reference.form {
        Field::Relative32 { end } | Field::Data32 { end } => {
            let value = displacement(target, address + u64::from(end));
            out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        // Invariant: only `patch` meets one-byte fields, and leaves them.
        Field::Relative8 => unreachable!("a one-byte field is never moved"),
        Field::Absolute32 => {
            let value = u32::try_from(target.get()).expect("fixed addresses are below 2 GiB");
            out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        Field::Absolute64 => out[at..at + 8].copy_from_slice(&target.get().to_le_bytes()),
    }
}

/// Distance from `end` to `target`.
pub(crate) fn displacement(target: OutputAddr, end: OutputAddr) -> i32 {
    // Invariant: `emit` has checked that the program spans less than 2 GiB.
    i32::try_from(target.since(end) as i64).expect("the program spans less than 2 GiB")
}

/// The bytes at an input address, for whoever patches in place.
pub(crate) fn input_offset(image: &Image, address: InputAddr) -> Option<usize> {
    image.file_offset(address).map(|o| o.get() as usize)
}
