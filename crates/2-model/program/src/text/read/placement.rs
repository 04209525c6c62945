//! The order in which the program is to be written.

use super::Reader;
use crate::{CodeSection, Fragment, NewData, Placement, SectionId};
use afterlink_core::{IdVec, Result};

impl Reader<'_> {
    pub fn placement(&mut self) -> Result<()> {
        let mut placement = Placement { sections: IdVec::new(), fragments: Vec::new(), data: IdVec::new() };
        while self.lexer.take("section") {
            let name = self.lexer.name("a section's name")?.text.to_owned();
            self.lexer.need("align")?;
            let alignment = self.alignment()?;
            self.lexer.need("suffix")?;
            let suffix = self.lexer.name("a suffix")?.text.to_owned();
            placement.sections.push(CodeSection { name, alignment, suffix });
        }
        while self.lexer.take("fragment") {
            let fragment = self.fragment(placement.sections.len())?;
            placement.fragments.push(fragment);
        }
        while self.lexer.take("new-data") {
            let data = self.new_data()?;
            placement.data.push(data);
        }
        self.placement = Some(placement);
        Ok(())
    }

    fn fragment(&mut self, sections: usize) -> Result<Fragment> {
        let function = self.function_name("a function")?;
        let section = self.lexer.parsed("the number of a section", |word| {
            word.parse().ok().filter(|number| (*number as usize) < sections).map(SectionId)
        })?;
        let alignment = if self.lexer.take("align") { self.alignment()? } else { 1 };
        let padding = if self.lexer.take("pad") { self.lexer.number("bytes")? } else { 0 };
        let runs_on = self.lexer.take("runs-on");
        self.lexer.need_mark(b':')?;
        let mut fragment =
            Fragment { alignment, padding, runs_on, ..Fragment::packed(function, section, Vec::new()) };
        while self.at_block() {
            fragment.blocks.push(self.block_id()?);
            if self.lexer.take("at") {
                fragment.places.resize(fragment.blocks.len() - 1, None);
                fragment.places.push(Some(self.lexer.number("bytes from a line's start")?));
            }
        }
        if !fragment.places.is_empty() {
            fragment.places.resize(fragment.blocks.len(), None);
        }
        Ok(fragment)
    }

    fn new_data(&mut self) -> Result<NewData> {
        let name = self.lexer.name("a section's name")?.text.to_owned();
        self.lexer.need("align")?;
        let alignment = self.alignment()?;
        let writable = self.lexer.take("writable");
        self.lexer.need_mark(b':')?;
        let bytes = self.lexer.bytes();
        Ok(NewData { name, alignment, writable, bytes })
    }
}
