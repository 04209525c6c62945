//! Writes the bytes of fragments, when all addresses are final.

use crate::addresses::Addresses;
use crate::shape::{Ending, Exit, Shape};
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_image::Image;
use afterlink_isa::{self as isa, TargetSite};
use afterlink_program::{Block, Chunk, Fragment, FuncId, Operand, Placement, Program, SectionId};
use rayon::prelude::*;

/// What code that counts targets names.
#[derive(Clone, Copy)]
pub(crate) struct Targets {
    /// Where the routine stands.
    pub routine: OutputAddr,
    /// Where the first site's counts stand, in bytes from what targets are counted from, and how many each has.
    pub first_site: u32,
    pub site_size: u32,
}

pub(crate) struct Encoder<'e, 'p, 'a> {
    pub image: &'e Image<'a>,
    pub program: &'p Program<'a>,
    pub addresses: &'e Addresses<'p, 'a>,
    /// Where counter 0 stands.
    pub counters_at: OutputAddr,
    /// What counts targets, if anything does.
    pub targets: Option<Targets>,
}

impl Encoder<'_, '_, '_> {
    /// The bytes of one section. What is between fragments traps.
    pub fn section(&self, placement: &Placement, shapes: &[Shape], section: SectionId) -> Vec<u8> {
        let (start, size) = self.addresses.sections[section];
        let mut bytes = vec![0; size as usize];
        self.image.arch.fill_with_traps(&mut bytes);
        let mut rest = &mut bytes[..];
        let mut at = start;
        let mut jobs = Vec::new();
        for (i, fragment) in placement.fragments.iter().enumerate().filter(|(_, f)| f.section == section) {
            let address = self.addresses.fragments[i];
            let (_, tail) = rest.split_at_mut(address.since(at) as usize);
            let (own, tail) = tail.split_at_mut(shapes[i].size() as usize);
            at = address + shapes[i].size();
            rest = tail;
            jobs.push((fragment, &shapes[i], address, own));
        }
        jobs.into_par_iter().for_each(|(fragment, shape, address, own)| {
            let mut out = Vec::with_capacity(own.len());
            self.fragment(&mut out, fragment, shape, address);
            own.copy_from_slice(&out);
        });
        bytes
    }

    fn fragment(&self, out: &mut Vec<u8>, fragment: &Fragment, shape: &Shape, address: OutputAddr) {
        let function = &self.program.functions[fragment.function];
        for (i, (&id, ending)) in fragment.blocks.iter().zip(&shape.endings(function, fragment)).enumerate() {
            let block = &function.blocks[id];
            for chunk in function.chunks_of(block) {
                self.chunk(out, fragment.function, block, chunk, address);
            }
            self.ending(out, fragment.function, block, ending, address);
            let gap = (shape.offsets[i + 1] - shape.end_of(i)) as usize;
            let end = out.len();
            out.resize(end + gap, 0);
            self.image.arch.fill_with_traps(&mut out[end..]);
        }
        self.image.arch.write_nops(out, shape.nops);
    }

    /// Appends a chunk; `address` is the fragment's.
    fn chunk(&self, out: &mut Vec<u8>, id: FuncId, block: &Block, chunk: Chunk, address: OutputAddr) {
        let function = &self.program.functions[id];
        let base = out.len();
        match chunk {
            Chunk::Input(chunk) => {
                let bytes = self.input(block.input + u64::from(chunk.from), chunk.size);
                out.extend_from_slice(bytes);
                let operands = function.operands_of(block).iter();
                for operand in operands.filter(|o| (chunk.from..chunk.end()).contains(&o.at)) {
                    self.operand(out, base + (operand.at - chunk.from) as usize, id, operand, address);
                }
            }
            Chunk::Counter { index, form } => {
                let here = address + base as u64;
                let target = self.counters_at + u64::from(index) * 8;
                self.image.arch.write_counter(out, form, |end| displacement(target, here + u64::from(end)));
            }
            Chunk::Targets { site, call, .. } => self.targets(out, id, block, (site, call), address),
            Chunk::Inlined(row) => {
                let code = &function.inlined[row as usize];
                out.extend_from_slice(self.input(code.start, code.size));
                for operand in &function.operands[code.operands.range()] {
                    self.operand(out, base + operand.at as usize, id, operand, address);
                }
            }
            Chunk::InPlace(row) => {
                let code = &function.in_place[row as usize];
                out.extend_from_slice(self.input(code.start, code.copied));
                out.extend_from_slice(&code.added);
                for operand in &function.operands[code.operands.range()] {
                    self.operand(out, base + operand.at as usize, id, operand, address);
                }
                if let Some(at) = code.names_back {
                    let field = base + at as usize;
                    let end = address + (field + 4) as u64;
                    let distance = displacement(self.addresses.behind(id, code.back), end);
                    out[field..field + 4].copy_from_slice(&distance.to_le_bytes());
                }
            }
            Chunk::New(row) | Chunk::Back(row) | Chunk::Prefetch(row) => {
                let code = &function.new_code[row as usize];
                out.extend_from_slice(&code.bytes);
                for operand in &function.operands[code.operands.range()] {
                    self.operand(out, base + operand.at as usize, id, operand, address);
                }
            }
        }
    }

    /// Appends the code that counts, as the site of that number, where the indirect call or jump at `call` of the block leads.
    fn targets(
        &self,
        out: &mut Vec<u8>,
        id: FuncId,
        block: &Block,
        (site, call): (u32, u32),
        address: OutputAddr,
    ) {
        // Invariant: who puts in such code asks for the routine.
        let targets = self.targets.expect("the program counts targets");
        let base = out.len();
        let here = address + base as u64;
        let bytes = self.input(block.input + u64::from(call), block.body - call);
        let site = TargetSite { call: bytes, place: targets.first_site + site * targets.site_size };
        let arch = self.image.arch;
        let fields =
            arch.write_target_code(out, site, |end| displacement(targets.routine, here + u64::from(end)));
        let field = arch.target_field(bytes).map(|at| call + at);
        let operands = self.program.functions[id].operands_of(block).iter();
        for operand in operands.filter(|operand| Some(operand.at) == field) {
            for at in &fields {
                self.operand(out, base + *at as usize, id, operand, address);
            }
        }
    }

    fn input(&self, start: InputAddr, size: u32) -> &[u8] {
        self.image.bytes_at(start, size as usize).expect("the code lies in the image")
    }

    /// Works out an operand anew, whose field stands at `out[at..]`.
    fn operand(&self, out: &mut [u8], at: usize, id: FuncId, operand: &Operand, address: OutputAddr) {
        let target = self.addresses.of(operand.target, id);
        write_operand(&mut out[at..], operand, address + at as u64, target);
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
            let end = address + out.len() as u64 + exit.size(self.image.arch);
            let target = self.addresses.of(exit.target(block), function);
            self.exit(out, exit, block, displacement(target, end));
        }
    }

    fn exit(&self, out: &mut Vec<u8>, exit: &Exit, block: &Block, displacement: i32) {
        let opcode = match exit.kind {
            isa::Exit::ShortBranch(size) => self.input(block.input + u64::from(block.body), size.into()),
            _ => &[],
        };
        self.image.arch.write_exit(out, exit.kind, exit.short, opcode, displacement);
    }
}

/// Writes an operand whose field starts `out` and stands at `address` in the output.
pub(crate) fn write_operand(out: &mut [u8], operand: &Operand, address: OutputAddr, target: OutputAddr) {
    let written = operand.encoding.write(out, address.get(), target.get());
    // Invariant: `emit` has checked that everything is in reach of everything.
    written.unwrap_or_else(|e| panic!("{:?} at {address} reaches {target}", e.encoding));
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
