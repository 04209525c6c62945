//! What code names, in words that another build of the program has too: numbers that stand for functions, data and texts.

use super::Build;
use crate::names::family_name;
use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_program::{BlockId, FuncId, Operand, Role, Target};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// How much of a text counts.
const TEXT: usize = 24;

pub(super) fn hash(value: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The numbers of one build.
pub(super) struct Names<'p, 'a> {
    image: &'p Image<'a>,
    functions: Vec<u64>,
    /// What the linker's relocations say of fields: the name of a symbol outside of the program, or of data.
    fields: FxHashMap<InputAddr, u64>,
}

impl<'p, 'a> Names<'p, 'a> {
    pub fn of(Build { image, program }: Build<'p, 'a>) -> Self {
        let functions = program.functions.iter().map(|(_, f)| hash(family_name(f.name.as_bytes()))).collect();
        let mut fields = FxHashMap::default();
        for (_, relocations) in image.kept_relocations() {
            for relocation in relocations.iter() {
                let named = image.symbols.get(relocation.symbol).filter(|s| !s.name().is_empty());
                if let Some(symbol) = named
                    && program.function_at(relocation.address).is_some()
                {
                    fields.insert(relocation.address, hash(family_name(symbol.name().as_bytes())));
                }
            }
        }
        Self { image, functions, fields }
    }

    /// Calls functions as `old` calls their pairs.
    pub fn adopt(&mut self, old: &Names, pairs: impl Iterator<Item = (FuncId, FuncId)>) {
        for (from, to) in pairs {
            self.functions[to.index()] = old.functions[from.index()];
        }
    }

    pub fn function(&self, id: FuncId) -> u64 {
        self.functions[id.index()]
    }

    /// What an operand with its field at `field` names; `None` if that says nothing.
    pub fn named(&self, field: InputAddr, operand: &Operand) -> Option<u64> {
        match operand.target {
            Target::Code(id, BlockId(0)) => Some(self.function(id)),
            Target::Input(address) if operand.role != Role::Data => {
                self.fields.get(&field).copied().or_else(|| self.text(address))
            }
            _ => None,
        }
    }

    /// What stands at a place that nobody writes to, if it is a text.
    fn text(&self, address: InputAddr) -> Option<u64> {
        let section = &self.image.sections[self.image.section_at(address)?];
        if section.is_writable() || section.is_code() {
            return None;
        }
        let left = section.end().since(address).min(TEXT as u64) as usize;
        let bytes = self.image.bytes_at(address, left)?;
        let text = bytes.split(|&byte| byte == 0).next()?;
        let is_text =
            text.len() >= 4 && text.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        is_text.then(|| hash(text))
    }
}
