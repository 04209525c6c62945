//! What is written of a program, and under which names and numbers.

use crate::text::View;
use crate::text::words::is_plain_name;
use crate::{FuncId, LinkerStub, Program, Role, Target};
use afterlink_core::{IdVec, index::Id};
use afterlink_unwind::{CieId, FdeId, RowId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

/// Which functions are listed, and what they are called.
pub(super) struct Names<'a> {
    /// `None` of a function that is not listed; else how many before it have its name.
    ordinals: IdVec<FuncId, Option<u32>>,
    names: IdVec<FuncId, &'a str>,
    fdes: Numbers<FdeId>,
    cies: Numbers<CieId>,
    rows: Numbers<RowId>,
}

/// New numbers for those that are used, in their old order.
type Numbers<K> = Option<BTreeMap<K, K>>;

impl<'a> Names<'a> {
    pub fn of(view: &View<'_, 'a>) -> Self {
        let program = view.program;
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut ordinals = IdVec::new();
        for (_, function) in program.functions.iter() {
            let is_listed = view.only.is_none_or(|only| only(function));
            ordinals.push(is_listed.then(|| {
                let count = seen.entry(function.name).or_default();
                *count += 1;
                *count - 1
            }));
        }
        let names = program.functions.iter().map(|(_, function)| function.name).collect();
        let mut all = Self { ordinals, names, fdes: None, cies: None, rows: None };
        if view.only.is_some() {
            let listed = || program.functions.iter().filter(|(id, _)| all.is_listed(*id));
            let spans = || listed().flat_map(|(_, function)| &function.unwind);
            let fdes: BTreeSet<FdeId> = spans().map(|span| span.fde).collect();
            let in_place = listed().flat_map(|(_, function)| &function.in_place);
            let in_place = in_place.flat_map(|c| c.rows.iter().map(|(_, row)| *row).chain([c.ending]));
            let rows = spans().flat_map(|s| s.rows.changes()).map(|(_, row)| *row).chain(in_place).collect();
            all.cies = Some(numbered(fdes.iter().map(|fde| program.eh_frame.fdes[*fde].cie).collect()));
            all.rows = Some(numbered(rows));
            all.fdes = Some(numbered(fdes));
        }
        all
    }

    pub fn is_listed(&self, id: FuncId) -> bool {
        self.ordinals.get(id).is_some_and(Option::is_some)
    }

    /// Whether a pointer concerns what is listed.
    pub fn is_in_listed(&self, target: Target, program: &Program) -> bool {
        match target {
            Target::Code(id, _) => self.is_listed(id),
            Target::Input(address) => program.function_at(address).is_none_or(|id| self.is_listed(id)),
            _ => true,
        }
    }

    /// The stubs that listed functions call.
    pub fn called_stubs(&self, view: &View) -> Vec<LinkerStub> {
        let program = view.program;
        let listed = program.functions.iter().filter(|(id, _)| self.is_listed(*id));
        let calls = listed.flat_map(|(id, function)| {
            let calls = function.operands.iter().filter(|o| o.role == Role::Call);
            calls.filter_map(move |o| program.input_of(o.target, id))
        });
        let called: BTreeSet<_> = calls.collect();
        program.linker_stubs.iter().copied().filter(|stub| called.contains(&stub.address)).collect()
    }

    pub fn name(&self, id: FuncId) -> Name<'a> {
        Name { text: self.names[id], ordinal: self.ordinals[id].unwrap_or(0) }
    }

    pub fn fde(&self, id: FdeId) -> Option<FdeId> {
        renumbered(&self.fdes, id)
    }

    pub fn cie(&self, id: CieId) -> Option<CieId> {
        renumbered(&self.cies, id)
    }

    pub fn row(&self, id: RowId) -> Option<RowId> {
        renumbered(&self.rows, id)
    }
}

fn numbered<K: Id>(used: BTreeSet<K>) -> BTreeMap<K, K> {
    used.into_iter().enumerate().map(|(number, old)| (old, K::from_index(number))).collect()
}

fn renumbered<K: Id>(numbers: &Numbers<K>, id: K) -> Option<K> {
    match numbers {
        None => Some(id),
        Some(numbers) => numbers.get(&id).copied(),
    }
}

/// A function's name as it is written.
pub(super) struct Name<'a> {
    text: &'a str,
    ordinal: u32,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain_name(self.text) {
            f.write_str(self.text)?;
        } else {
            write!(f, "{}", Quoted(self.text))?;
        }
        if self.ordinal > 0 { write!(f, "~{}", self.ordinal) } else { Ok(()) }
    }
}

/// A name between quotes, with as many `#` around as keep them apart from its own.
pub(super) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hashes = String::new();
        while self.0.contains(&format!("\"{hashes}")) {
            hashes.push('#');
        }
        write!(f, "{hashes}\"{}\"{hashes}", self.0)
    }
}
