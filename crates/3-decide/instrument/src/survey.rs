//! What all functions tell together, found before any is planned. Each is read for that, and read again when it is planned:
//! what is read of a whole program takes ten times the bytes of its code.

use crate::foreign::Foreign;
use crate::names::Names;
use afterlink_analyze::entered::Entered;
use afterlink_analyze::liveness::Convention;
use afterlink_analyze::scan::{Scan, Scanner, Step};
use afterlink_analyze::{conventions, held, returns};
use afterlink_core::{IdVec, InputAddr};
use afterlink_image::Image;
use afterlink_program::{Block, FuncId, Function, Program, Target, Terminator};
use rayon::prelude::*;

/// What all functions tell together.
pub(crate) struct Survey<'i> {
    scanner: Scanner<'i>,
    pub names: Names,
    pub entered: Entered,
    /// Functions of whose entry somebody has the address.
    pub held: IdVec<FuncId, bool>,
    pub conventions: IdVec<FuncId, Convention>,
    returns: IdVec<FuncId, bool>,
    image: &'i Image<'i>,
    pub foreign: Foreign,
}

/// What one function tells of others.
struct Told {
    callees: Option<Vec<FuncId>>,
    /// Those that may pass flags to it.
    pass_flags: Vec<FuncId>,
    /// Where its ranges start, and what it calls or leaves to.
    named: Vec<InputAddr>,
}

impl<'i> Survey<'i> {
    /// With `all_entries`, the names of all functions are kept.
    pub fn of(image: &'i Image<'i>, program: &Program, moved: &[FuncId], all_entries: bool) -> Self {
        let scanner = Scanner::new(image);
        let tell = |&id: &FuncId| {
            let scan = scanner.scan(&program.functions[id]);
            scan.map(|scan| tell(program, id, &scan))
        };
        let tell_all = || moved.par_iter().map(tell).collect::<Vec<_>>();
        let (told, (mut names, entered)) =
            rayon::join(tell_all, || (Names::new(image, program), Entered::find(program)));
        let mut callees: IdVec<FuncId, Option<Vec<FuncId>>> = program.functions.ids().map(|_| None).collect();
        let mut conventions: IdVec<FuncId, Convention> =
            program.functions.iter().map(|(_, f)| conventions::of_function(program, f)).collect();
        let mut named = Vec::new();
        for (&id, told) in moved.iter().zip(told) {
            let Some(told) = told else { continue };
            callees[id] = told.callees;
            told.pass_flags.into_iter().for_each(|id| conventions[id] = Convention::PassesFlags);
            if !is_signal_frame(program, &program.functions[id]) {
                named.extend(told.named);
            }
        }
        if all_entries {
            named.extend(program.functions.iter().map(|(_, function)| function.entry()));
        }
        names.keep(named);
        let returns = returns::surely(&callees);
        let foreign = Foreign::of(image);
        let held = held::entries(program);
        Self { scanner, names, entered, held, conventions, returns, image, foreign }
    }

    /// What the function's instructions do; `None` if nothing may be added to it.
    pub fn scan(&self, program: &Program, function: &Function) -> Option<Scan> {
        if is_signal_frame(program, function) { None } else { self.scanner.scan(function) }
    }

    /// The bytes of a block's body.
    pub fn body(&self, block: &Block) -> Option<&'i [u8]> {
        self.image.bytes_at(block.input, block.body as usize)
    }

    /// Whether a step is a call that may not come back.
    pub fn stops(&self, program: &Program, step: &Step) -> bool {
        match step.callee {
            Some(callee) => {
                returns::function_starting_at(program, callee).is_none_or(|callee| !self.returns[callee])
            }
            None => step.kind.is_call(),
        }
    }
}

fn tell(program: &Program, id: FuncId, scan: &Scan) -> Told {
    let function = &program.functions[id];
    let mut named: Vec<InputAddr> = function.ranges.iter().map(|range| range.start).collect();
    named.extend(scan.all().iter().filter_map(|step| step.callee));
    for (_, block) in function.blocks.iter() {
        if let Terminator::Jump(target)
        | Terminator::Branch { taken: target, .. }
        | Terminator::ShortBranch { taken: target, .. } = block.terminator
            && !matches!(target, Target::Block(_))
        {
            named.extend(program.input_of(target, id));
        }
    }
    named.sort_unstable();
    named.dedup();
    Told {
        callees: returns::callees(program, id, scan),
        pass_flags: conventions::flags_expected(program, function, scan),
        named,
    }
}

/// The unwinder knows such code by its bytes.
fn is_signal_frame(program: &Program, function: &Function) -> bool {
    function.unwind.iter().any(|s| program.eh_frame.cies[program.eh_frame.fdes[s.fde].cie].signal_frame)
}
