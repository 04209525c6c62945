//! A text form to what it was written from.

mod code;
mod exceptions;
mod frames;
mod function;
mod placement;
mod references;

use super::Listing;
use super::lexer::Lexer;
use crate::{
    Basis, CodeBytes, DataPointer, Function, FunctionWeights, LinkerStub, Placement, PointerForm, Program,
    Weights,
};
use afterlink_core::{Error, FileOffset, IdVec, InputAddr, Result};
use afterlink_isa::Arch;
use afterlink_unwind::{Cie, Fde};
use afterlink_unwind::{CieId, EhFrame, FdeId, RowTable};
use code::Field;
use references::References;
use std::borrow::Cow;

/// Reads a whole text.
///
/// # Errors
/// One, with line and column and what was expected there, if the text is damaged or names what it does not hold.
pub fn read(text: &str) -> Result<Listing<'_>> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::new("the text is larger than 4 GiB").next("write fewer functions (--functions)"));
    }
    let mut reader = Reader::start(Lexer::new(text))?;
    while !reader.lexer.is_at_end() {
        reader.part()?;
    }
    reader.finish()
}

/// What was read so far. Functions are named by their number in `references`.
struct Reader<'a> {
    lexer: Lexer<'a>,
    arch: Arch,
    is_counted: bool,
    functions: Vec<Function<'a>>,
    /// Where each function starts in the text.
    places: Vec<usize>,
    weights: Vec<FunctionWeights>,
    references: References<'a>,
    code: Vec<(InputAddr, Vec<u8>)>,
    /// Fields whose bytes the text leaves to their targets.
    fields: Vec<Field>,
    pointers: Vec<DataPointer>,
    known_places: Vec<InputAddr>,
    stored_places: Vec<InputAddr>,
    linker_stubs: Vec<LinkerStub>,
    rows: RowTable,
    cies: IdVec<CieId, Cie>,
    fdes: IdVec<FdeId, Fde>,
    placement: Option<Placement>,
}

impl<'a> Reader<'a> {
    fn start(mut lexer: Lexer<'a>) -> Result<Self> {
        lexer.need("program")?;
        let arches = Arch::ALL;
        let arch = lexer.parsed("a processor, `x86-64` or `aarch64`", |word| {
            arches.into_iter().find(|arch| arch.name() == word)
        })?;
        let is_counted = lexer.take("counted");
        Ok(Self {
            lexer,
            arch,
            is_counted,
            functions: Vec::new(),
            places: Vec::new(),
            weights: Vec::new(),
            references: References::default(),
            code: Vec::new(),
            fields: Vec::new(),
            pointers: Vec::new(),
            known_places: Vec::new(),
            stored_places: Vec::new(),
            linker_stubs: Vec::new(),
            rows: RowTable::new(),
            cies: IdVec::new(),
            fdes: IdVec::new(),
            placement: None,
        })
    }

    fn part(&mut self) -> Result<()> {
        if self.lexer.take("function") {
            self.function()
        } else if self.lexer.take("bytes") {
            self.bytes()
        } else if self.lexer.take("pointer") {
            let field = FileOffset(self.lexer.number("a place in the file")?);
            let (form, target) = (self.form()?, self.target()?);
            self.pointers.push(DataPointer { field, form, target });
            Ok(())
        } else if self.lexer.take("known") {
            let place = self.lexer.address()?;
            self.known_places.push(place);
            Ok(())
        } else if self.lexer.take("stored") {
            let place = self.lexer.address()?;
            self.stored_places.push(place);
            Ok(())
        } else if self.lexer.take("stub") {
            let (address, slot) = (self.lexer.address()?, self.lexer.address()?);
            self.linker_stubs.push(LinkerStub { address, slot });
            Ok(())
        } else if self.lexer.take("placement") {
            self.placement()
        } else if self.is_frames_part() {
            self.frames_part()
        } else {
            self.lexer.expected("a part of a program (`function`, `pointer`, `row0`, `placement`, …)")
        }
    }

    fn form(&mut self) -> Result<PointerForm> {
        if self.lexer.take("rel32") {
            return Ok(PointerForm::Relative32(self.lexer.address()?));
        }
        self.lexer.parsed("the form of a pointer (`word64`, `word32`, `rel32`)", |word| match word {
            "word64" => Some(PointerForm::Word64),
            "word32" => Some(PointerForm::Word32),
            _ => None,
        })
    }

    fn finish(mut self) -> Result<Listing<'a>> {
        self.resolve()?;
        self.fill_fields()?;
        let runs = self.code.into_iter().map(|(start, bytes)| (start, Cow::Owned(bytes))).collect();
        let code = CodeBytes::joined(runs).map_err(|at| {
            Error::new(format!("the text has two different bytes for {:#x}", at.0)).next("drop one of them")
        })?;
        self.known_places.sort_unstable();
        self.stored_places.sort_unstable();
        self.linker_stubs.sort_unstable();
        let frames = EhFrame::without_section(self.cies, self.fdes, self.arch.unwind_numbers());
        let weights = if self.is_counted { self.weights } else { Vec::new() };
        Ok(Listing {
            program: Program {
                code,
                pointers: self.pointers,
                known_places: self.known_places,
                stored_places: self.stored_places,
                linker_stubs: self.linker_stubs,
                rows: self.rows,
                ..Program::of(self.arch, self.functions.into(), frames)
            },
            weights: Weights { functions: weights.into(), basis: Basis::Counted },
            placement: self.placement,
        })
    }
}
