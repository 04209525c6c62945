//! What recordings are made into profiles by, whether they are a file or text: where the program was mapped in each process, which of
//! the recorded files it is, which event is used, and branch stacks.

mod branch_stack;
mod events;
mod files;
mod processes;

pub use branch_stack::{Entry, flag};
pub use events::{Candidate, choose, left_out, rank_of};
pub use files::{BuildId, Files, RecordedFile, of_program, padded, roles};
pub use processes::{Change, Mappings, Moment, Processes};

use crate::program::Program;
use crate::reading::Reading;
use crate::traces::{Agreement, Spot, Traces};
use afterlink_core::Result;
use branch_stack::{LeftOut, Stacks};
use processes::{file_offset, is_copy};

/// The samples of a recording on their way into a profile.
pub struct Samples<'a, 'p> {
    program: &'a Program<'p>,
    mappings: Mappings,
    traces: Traces,
    left_out: LeftOut,
    samples: u64,
    inside: u64,
    /// Inside of a copy of the program's code.
    in_copies: u64,
}

impl<'a, 'p> Samples<'a, 'p> {
    pub fn new(program: &'a Program<'p>, mappings: Mappings) -> Self {
        Self {
            program,
            mappings,
            traces: Traces::default(),
            left_out: LeftOut::default(),
            samples: 0,
            inside: 0,
            in_copies: 0,
        }
    }

    /// Counts a sample of `process` at `moment`: where it was, if that was not in the kernel, and its branches, the newest first. `all_kinds`
    /// says whether all taken branches are among them.
    pub fn add(
        &mut self,
        (process, moment): (u32, Moment),
        address: Option<u64>,
        branches: impl Iterator<Item = Entry>,
        all_kinds: bool,
    ) {
        self.samples += 1;
        let view = self.mappings.view(process, moment);
        if view.is_empty() {
            return;
        }
        let program = self.program;
        let place = |address: u64| program.address_of(file_offset(&view, address)?);
        let starts_piece = |spot: Spot| spot.is_some_and(|at| program.starts_piece(at));
        let mut stacks = Stacks { traces: &mut self.traces, all_kinds, left_out: &mut self.left_out };
        stacks.add(branches, &place, &starts_piece);
        if let Some((address, at)) = address.and_then(|address| Some((address, place(address)?))) {
            self.inside += 1;
            self.in_copies += u64::from(is_copy(&view, address));
            self.traces.add_sample(at, 1);
        }
    }

    /// Where in the program's file the address of a process was at that moment.
    pub fn place(&mut self, (process, moment): (u32, Moment), address: u64) -> Spot {
        let view = self.mappings.view(process, moment);
        self.program.address_of(file_offset(&view, address)?)
    }

    /// The process that the program ran in, if there was one only.
    pub fn only_process(&self) -> Option<u32> {
        self.mappings.only_process()
    }

    /// The profile, with what is to be said of it; `titles` are the events'.
    ///
    /// # Errors
    /// As of [`Traces::into_branches`].
    pub fn finish(self, titles: &[String]) -> Result<Reading> {
        let Self { program, traces, left_out, samples, inside, in_copies, .. } = self;
        let what = titles.join(", ");
        let copies = (in_copies > 0)
            .then(|| format!("{in_copies} samples are in memory that took the place of the program's code"));
        // Where a machine could not give stacks, they are empty.
        if !traces.has_branches() {
            let (profile, _) = traces.into_samples(program, titles)?;
            let advice = match inside {
                0 => ": if a library of its does the work, name that with --binary",
                _ => "",
            };
            let outcome = format!("{samples} samples of {what}, {inside} of them in the program{advice}");
            return Ok(Reading { profile, notes: [outcome].into_iter().chain(copies).collect() });
        }
        let (profile, agreement) = traces.into_branches(program)?;
        let Agreement { branches, .. } = agreement;
        let mut notes =
            vec![format!("{samples} samples of {what} with {branches} branches from or to the program")];
        if left_out.wrong_path > 0 {
            notes.push(format!("{} branches that were only predicted are left out", left_out.wrong_path));
        }
        notes.extend(copies);
        notes.extend(agreement.doubt());
        Ok(Reading { profile, notes })
    }
}
