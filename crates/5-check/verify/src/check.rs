//! What every check sees: both files, the input's facts, and where code went.

use crate::address_map::places::{Block, Place, Places};
use crate::input::code::{Code, Inst};
use crate::input::functions::Functions;
use crate::input::moved_stack::MovedStack;
use crate::input::references::References;
use crate::input::slots::Slots;
use crate::unwind::landing_pads::LandingPads;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::{Forget, SplitFiles};
use afterlink_image::{Image, SectionId};
use afterlink_isa::judgement::LONGEST;

/// Both files and what is known about them.
pub(crate) struct Check<'c, 'a> {
    pub input: &'c Image<'a>,
    pub output: &'c Image<'a>,
    /// Where the debug information of both stands: in themselves, or in files of their own.
    pub told: [&'c Image<'a>; 2],
    /// The section of the output that each one of the input became, by input index.
    pub sections: Vec<Option<SectionId>>,
    pub code: Code<'a>,
    pub functions: Functions,
    pub references: References,
    pub slots: Slots,
    pub moved_stack: MovedStack,
    pub places: Places<'a>,
    /// For whoever looks at a whole file once.
    pub forget: Forget<'c>,
    pub pads: LandingPads,
    /// Whether the output is marked for shadow stacks.
    pub has_shadow_stack: bool,
    /// Files beside the input, and beside the output, with debug information.
    pub files: [&'c dyn SplitFiles; 2],
}

impl Check<'_, '_> {
    /// Where an address of the input is to lead in the output.
    pub fn place(&self, address: u64) -> Place {
        self.places.of(&self.code, address)
    }

    /// Where the address `target` is to lead that the field or word at `field` holds.
    pub fn place_named(&self, field: u64, target: u64) -> Place {
        if self.references.is_sum_beyond_code(field) && !self.code.holds(target) {
            return Place::Same;
        }
        self.place(target)
    }

    /// Whether a call of `target` is known to come back with the stack elsewhere than where the call was.
    pub fn comes_back_elsewhere(&self, target: u64) -> bool {
        self.moved_stack.is_after(&self.code, self.slots.callee(&self.code, target))
    }

    /// Whether room for a return address is made in a context, a row of [`Places::contexts`].
    pub fn has_room(&self, context: u32) -> bool {
        let entry = self.places.contexts.all[context as usize].entry;
        entry.is_some_and(|entry| self.makes_room(&entry).is_some())
    }

    /// Bytes that make room for a return address, of a piece that leads into a context, behind the question with which it may start.
    pub fn makes_room(&self, entry: &Block) -> Option<usize> {
        let asked = self.behind_question(entry);
        let bytes = self.places.output_bytes(entry.output + asked);
        // The callee's own code, which may begin alike, stands behind it.
        let left = u64::from(entry.output_size) - asked;
        self.code.judgement.makes_room(bytes).filter(|room| *room as u64 <= left)
    }

    /// Bytes of the question with which a piece starts that leads into a context.
    pub fn behind_question(&self, entry: &Block) -> u64 {
        self.asked(entry).map_or(0, |asked| asked.size as u64)
    }

    /// Where the call of a context would have come back: behind the one instruction in front of what stood behind the call.
    pub fn comes_back(&self, context: u32) -> Option<u64> {
        let back = self.places.contexts.all[context as usize].back()?.output;
        Some(back + u64::from(self.code.judgement.decode(self.places.output_bytes(back))?.len))
    }

    /// Bytes behind the instructions of a piece in place of a call, at `output`, that put where the call would have come back to where the return address
    /// stands, if such stand there. They change the frame pointer.
    pub fn names_return_address(&self, context: u32, piece: &Block, output: u64, depth: i64) -> Option<u64> {
        let bytes = self.places.output_bytes(output);
        let (named, size) = self.code.judgement.names_return_address(bytes, output, depth)?;
        let is_within = output + size as u64 <= piece.output_end();
        let is_right = is_within && self.has_room(context) && self.comes_back(context) == Some(named);
        is_right.then_some(size as u64)
    }

    /// The bytes that an instruction of the input, at `address`, must have at `output`.
    ///
    /// # Errors
    /// A finding if it refers to moved code in a way that moving cannot keep.
    pub fn expected_bytes(
        &self,
        inst: &Inst,
        address: u64,
        output: u64,
    ) -> Result<[u8; LONGEST], Box<Finding>> {
        let len = usize::from(inst.len);
        let bytes = self.code.bytes(address, len).unwrap_or(&[]);
        let mut expected = [0; LONGEST];
        expected[..bytes.len()].copy_from_slice(bytes);
        let finding = |kind, what: String| Box::new(Finding::new(kind, what).input(address).output(output));
        if let Some((field, size)) = inst.field() {
            let target = inst.target(&self.code, address);
            let place = if self.references.means_data(address + field as u64) {
                target
            } else {
                self.operand_place(inst, address, output, target)?
            };
            let displacement = place.wrapping_sub(output + len as u64) as i64;
            let fits = if size == 1 {
                i8::try_from(displacement).is_ok()
            } else {
                i32::try_from(displacement).is_ok()
            };
            if !fits {
                let what = format!("{place:#x} cannot be reached from here");
                return Err(finding(FindingKind::Target, what));
            }
            expected[field..field + size].copy_from_slice(&displacement.to_le_bytes()[..size]);
        }
        for field in self.references.fields_in(address, inst.len) {
            let (at, size) = ((field.address - address) as usize, usize::from(field.size));
            match self.place_named(field.address, self.code.number(field.address, field.size).unwrap_or(0)) {
                Place::Same => {}
                Place::Moved(place) => match expected[..len].get_mut(at..at + size) {
                    Some(slot) => slot.copy_from_slice(&place.to_le_bytes()[..size]),
                    None => {
                        let what = "an absolute address reaches beyond the instruction".to_owned();
                        return Err(finding(FindingKind::Operand, what));
                    }
                },
                Place::Nowhere => {
                    let what =
                        "the instruction names a place in moved code that has no counterpart".to_owned();
                    return Err(finding(FindingKind::Operand, what));
                }
            }
        }
        Ok(expected)
    }

    fn operand_place(
        &self,
        inst: &Inst,
        address: u64,
        output: u64,
        target: u64,
    ) -> Result<u64, Box<Finding>> {
        let kind = if inst.has_rip() { FindingKind::Operand } else { FindingKind::Target };
        let field = inst.field().map_or(address, |(at, _)| address + at as u64);
        let fault = match self.place_named(field, target) {
            Place::Same => return Ok(target),
            Place::Moved(_) if self.reads_memory(inst, address) && self.code.holds(target) => {
                "reads the bytes of moved code"
            }
            Place::Moved(place) => return Ok(place),
            Place::Nowhere => "leads to a place in moved code that has no counterpart",
        };
        let what = format!("the instruction {fault}, at {target:#x}");
        Err(Box::new(Finding::new(kind, what).input(address).output(output).names(target)))
    }

    /// Whether the instruction reads or writes what its operand names, and does not only ask for code there.
    fn reads_memory(&self, inst: &Inst, address: u64) -> bool {
        inst.has_rip() && !inst.is_address_only() && !self.code.asks_for_code(address)
    }
}

#[cfg(test)]
impl<'c, 'a> Check<'c, 'a> {
    /// Of a file in which nothing has moved.
    pub fn of_unchanged(image: &'c Image<'a>) -> Self {
        let functions = Functions::read(image, &[]);
        let code = Code::decode(image, &functions, Vec::new());
        Self {
            has_shadow_stack: false,
            input: image,
            output: image,
            told: [image, image],
            sections: Vec::new(),
            places: Places::read(image, image, &code, &functions, Vec::new(), &mut Vec::new()),
            code,
            functions,
            references: References::read(image),
            slots: Slots::read(image),
            moved_stack: Default::default(),
            forget: &|| (),
            pads: Default::default(),
            files: [&afterlink_core::NoSplitFiles; 2],
        }
    }
}
