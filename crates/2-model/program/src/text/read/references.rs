//! Names of functions to the functions, when all of them are known.

use super::Reader;
use crate::text::lexer::Name;
use crate::{BlockId, FuncId, Function, Landing, Target, Terminator};
use afterlink_core::Result;
use std::collections::HashMap;

/// Functions that are named, by a number of their own, and those that are there.
#[derive(Default)]
pub(super) struct References<'a> {
    numbers: HashMap<Name<'a>, FuncId>,
    /// Each name, and where it is used first.
    named: Vec<(Name<'a>, usize)>,
    declared: HashMap<Name<'a>, FuncId>,
    /// How many functions of that name there are.
    counts: HashMap<&'a str, u32>,
    /// For each number the function.
    functions: Vec<FuncId>,
}

impl<'a> References<'a> {
    /// The number of a name that is used at `place`.
    pub fn number(&mut self, name: Name<'a>, place: usize) -> FuncId {
        *self.numbers.entry(name).or_insert_with(|| {
            self.named.push((name, place));
            FuncId(self.named.len() as u32 - 1)
        })
    }

    /// Notes that a function is there.
    ///
    /// # Errors
    /// With the name that was to be expected, if another of its name is missing before it.
    pub fn declare(&mut self, name: Name<'a>, id: FuncId) -> Result<(), String> {
        let count = self.counts.entry(name.text).or_default();
        if name.ordinal != *count {
            let text = name.text;
            return Err(if *count == 0 { format!("`{text}`") } else { format!("`{text}~{count}`") });
        }
        *count += 1;
        self.declared.insert(name, id);
        Ok(())
    }

    /// The function for a number.
    pub fn function(&self, number: FuncId) -> FuncId {
        self.functions[number.0 as usize]
    }

    pub fn resolved(&self, target: Target) -> Target {
        match target {
            Target::Code(number, block) => Target::Code(self.function(number), block),
            other => other,
        }
    }
}

impl Reader<'_> {
    /// Puts functions in place of all numbers, and looks whether what is named is there.
    pub fn resolve(&mut self) -> Result<()> {
        for &(name, place) in &self.references.named {
            let Some(&id) = self.references.declared.get(&name) else {
                let what = format!("expected a function of the text, found `{}`, which is none", name.text);
                return Err(self.lexer.fault_at(place, &what));
            };
            self.references.functions.push(id);
        }
        let references = &self.references;
        for function in &mut self.functions {
            for_each_target(function, |target| *target = references.resolved(*target));
            function.folded_into = function.folded_into.map(|number| references.function(number));
        }
        for weights in &mut self.weights {
            weights.calls.iter_mut().for_each(|call| call.callee = references.function(call.callee));
        }
        self.pointers.iter_mut().for_each(|p| p.target = references.resolved(p.target));
        if let Some(placement) = &mut self.placement {
            placement.fragments.iter_mut().for_each(|f| f.function = references.function(f.function));
        }
        self.check_names()
    }

    /// # Errors
    /// If a function names a block, a table, a row or an unwind entry that the text lacks.
    fn check_names(&mut self) -> Result<()> {
        let sizes: Vec<u32> = self.functions.iter().map(|function| function.blocks.len() as u32).collect();
        let has = |id: FuncId, block: BlockId| sizes.get(id.0 as usize).is_some_and(|size| block.0 < *size);
        let mut missing: Option<(usize, String)> = None;
        for (i, function) in self.functions.iter_mut().enumerate() {
            let (own, tables) = (FuncId(i as u32), function.jump_tables.len());
            let mut note = |what: String| missing = missing.take().or(Some((i, what)));
            for_each_target(function, |target| match *target {
                Target::Block(block) if !has(own, block) => note(block.to_string()),
                Target::Code(id, block) if !has(id, block) => note(format!("{block} of another function")),
                Target::Table(table) if table as usize >= tables => note(format!("table {table}")),
                _ => {}
            });
            let listed = function.jump_tables.iter().flat_map(|table| &table.targets).chain(&function.labels);
            if let Some(block) = listed.into_iter().find(|block| !has(own, **block)) {
                note(block.to_string());
            }
            for (_, block) in function.blocks.iter() {
                if let Terminator::Indirect { table: Some(table) } = block.terminator
                    && table as usize >= tables
                {
                    note(format!("table {table}"));
                }
            }
            if let Some(pad) = function.landing_pads().into_iter().find(|pad| !has(own, *pad)) {
                note(pad.to_string());
            }
            for span in &function.unwind {
                if self.fdes.get(span.fde).is_none() {
                    note(span.fde.to_string());
                }
                let actions = function.exceptions.actions.len();
                for (_, landing) in span.landings.changes() {
                    if let Landing::Pad { action: Some(action), .. } = landing
                        && *action as usize >= actions
                    {
                        note(format!("action {action}"));
                    }
                }
                if let Some((_, row)) =
                    span.rows.changes().iter().find(|(_, row)| row.0 as usize >= self.rows.len())
                {
                    note(row.to_string());
                }
            }
        }
        let Some((function, what)) = missing else { return Ok(()) };
        let name = self.functions[function].name;
        Err(self.lexer.fault_at(self.places[function], &format!("{name} names {what}, which is not there")))
    }
}

/// Calls `visit` with everything that the function's code and terminators name.
fn for_each_target(function: &mut Function, mut visit: impl FnMut(&mut Target)) {
    let operands = function.operands.iter_mut().chain(&mut function.placed_operands);
    operands.for_each(|operand| visit(&mut operand.target));
    for (_, block) in function.blocks.iter_mut() {
        match &mut block.terminator {
            Terminator::Jump(target) | Terminator::LastCall(target) => visit(target),
            Terminator::FallThrough(next) => visit(&mut Target::Block(*next)),
            Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
                visit(taken);
                visit(&mut Target::Block(*next));
            }
            Terminator::Indirect { .. } | Terminator::Stop(_) => {}
        }
    }
}
