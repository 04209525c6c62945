//! One program in many random layouts: recovered once, written as often as wanted. For measuring how much of a
//! speed difference is mere layout.

use crate::check::{Check, write_proven};
use crate::companions::Outputs;
use crate::optimize::{leave_alone, recover};
use crate::{Silent, UnprovenFunction};
use afterlink_core::{Error, Result};
use afterlink_emit::{EmitOptions, fragment_sizes};
use afterlink_image::Image;
use afterlink_passes::jitter::jitter;
use afterlink_passes::shuffle::Shuffle;
use afterlink_program::{Placement, Program};

/// A program that can be laid out at random again and again.
pub struct Relayout<'a> {
    image: Image<'a>,
    program: Program<'a>,
    shuffle: Shuffle,
}

impl<'a> Relayout<'a> {
    /// Recovers the program.
    ///
    /// # Errors
    /// If it cannot be rewritten; it can still be measured as it is.
    pub fn new(input: &'a [u8]) -> Result<Self> {
        let (image, program) = recover(input, None, &[])?;
        let shuffle = Shuffle::new(&program, &fragment_sizes);
        if shuffle.is_empty() {
            return Err(Error::new("no function of this program can be moved"));
        }
        Ok(Self { image, program, shuffle })
    }

    /// Number of functions that move.
    pub fn functions(&self) -> usize {
        self.shuffle.len()
    }

    /// A layout that is proven. Functions with which it could not be are left alone from now on, and returned.
    ///
    /// # Errors
    /// If the output cannot be written or proven.
    pub fn prove(
        &mut self,
        layout: impl Fn(&Self) -> Result<Vec<u8>>,
    ) -> Result<(Vec<u8>, Vec<UnprovenFunction>)> {
        let input = self.image.bytes;
        let mut bytes = Vec::new();
        let outputs = Outputs { program: &mut bytes, debug: None, beside: None };
        let written = write_proven(input.into(), outputs, Check::Prove, &Silent, |left, outputs| {
            if leave_alone(&mut self.program, &left.functions) {
                self.shuffle = Shuffle::new(&self.program, &fragment_sizes);
            }
            outputs.program.clear()?;
            outputs.program.append(&layout(self)?)
        })?;
        Ok((bytes, written.left.functions))
    }

    /// The program with its functions in random order. Given the other build as `partner`, both sides' layouts of
    /// one seed agree in the place of each function that both have; without one, the program stands alone.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn shuffle(&self, partner: Option<&Relayout>, seed: u64) -> Result<Vec<u8>> {
        let placement = self.shuffle.shuffled(&partner.unwrap_or(self).shuffle, seed)?;
        self.emit(&placement, &format!("layout=shuffle\nseed={seed:#x}\n"))
    }

    /// The program in its own order, with other gaps between the functions and another start.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn jitter(&self, seed: u64) -> Result<Vec<u8>> {
        let mut placement = self.shuffle.in_own_order(&self.program);
        let sizes = fragment_sizes(&self.program, &placement);
        jitter(&mut placement, &sizes, seed);
        self.emit(&placement, &format!("layout=jitter\nseed={seed:#x}\n"))
    }

    fn emit(&self, placement: &Placement, note: &str) -> Result<Vec<u8>> {
        let options = EmitOptions { note: note.into(), ..EmitOptions::default() };
        afterlink_emit::emit(&self.image, &self.program, placement, &options)
    }
}

#[cfg(test)]
mod tests;
