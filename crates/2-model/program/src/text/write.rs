//! A program to its text form.

mod code;
mod exceptions;
mod frames;
mod function;
mod names;
mod placement;

use super::View;
use crate::{FuncId, PointerForm};
use afterlink_core::InputAddr;
use afterlink_isa::Disassembler;
use names::Names;
use std::io;

/// Text is handed on in pieces of about this many bytes.
const PIECE: usize = 1 << 20;

/// Writes what `view` shows.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(view: &View, out: &mut impl io::Write) -> io::Result<()> {
    let names = Names::of(view);
    let mut writer = Writer {
        view,
        names: &names,
        text: String::new(),
        disassembler: Disassembler::new(view.program.arch),
    };
    writer.header();
    for (id, _) in view.program.functions.iter().filter(|(id, _)| names.is_listed(*id)) {
        writer.function(id);
        if writer.text.len() >= PIECE {
            out.write_all(writer.text.as_bytes())?;
            writer.text.clear();
        }
    }
    writer.surroundings();
    writer.frames();
    writer.placement();
    out.write_all(writer.text.as_bytes())
}

/// The text so far, and what it is written from.
struct Writer<'w, 'a> {
    view: &'w View<'w, 'a>,
    names: &'w Names<'a>,
    text: String,
    disassembler: Disassembler,
}

/// Appends formatted text: memory takes anything.
macro_rules! put {
    ($writer:expr, $($words:tt)*) => {
        let _ = std::fmt::Write::write_fmt(&mut $writer.text, format_args!($($words)*));
    };
}
use put;

impl Writer<'_, '_> {
    fn header(&mut self) {
        let counted = if self.view.weights.functions.is_empty() { "" } else { " counted" };
        put!(self, "program {}{counted}\n", self.view.program.arch.name());
    }

    /// What stands in data and elsewhere, and concerns the listed functions.
    fn surroundings(&mut self) {
        let program = self.view.program;
        let listed = |address: InputAddr| program.function_at(address).map(|id| self.names.is_listed(id));
        let is_of_interest = |address| listed(address).unwrap_or(self.view.only.is_none());
        let of_interest = |places: &[InputAddr]| -> Vec<InputAddr> {
            places.iter().copied().filter(|&place| is_of_interest(place)).collect()
        };
        let known = of_interest(&program.known_places);
        let stored = of_interest(&program.stored_places);
        let stubs: Vec<_> = match self.view.only {
            None => program.linker_stubs.clone(),
            Some(_) => self.names.called_stubs(self.view),
        };
        let pointers: Vec<_> =
            program.pointers.iter().filter(|p| self.names.is_in_listed(p.target, program)).collect();
        if !(known.is_empty() && stored.is_empty() && stubs.is_empty() && pointers.is_empty()) {
            self.text.push('\n');
        }
        for pointer in pointers {
            put!(self, "pointer {:#x} {} ", pointer.field.get(), form(pointer.form));
            self.target(pointer.target, FuncId(0));
            self.text.push('\n');
        }
        for place in known {
            put!(self, "known {place:#x}");
            self.say_where(place);
        }
        for place in stored {
            put!(self, "stored {place:#x}");
            self.say_where(place);
        }
        for stub in stubs {
            put!(self, "stub {:#x} {:#x}\n", stub.address, stub.slot);
        }
    }

    /// Ends a line with the name of the function that starts there.
    fn say_where(&mut self, place: InputAddr) {
        let program = self.view.program;
        if let Some((id, block)) = program.block_at(place) {
            let name = program.functions[id].name.replace(['\n', '\r'], " ");
            put!(self, " ; {name}:{block}");
        }
        self.text.push('\n');
    }

    fn hex(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (i, byte) in bytes.iter().enumerate() {
            if i > 0 {
                self.text.push(' ');
            }
            self.text.push(DIGITS[usize::from(byte >> 4)] as char);
            self.text.push(DIGITS[usize::from(byte & 15)] as char);
        }
    }
}

fn form(form: PointerForm) -> String {
    match form {
        PointerForm::Word64 => "word64".into(),
        PointerForm::Word32 => "word32".into(),
        PointerForm::Relative32(base) => format!("rel32 {base:#x}"),
    }
}
