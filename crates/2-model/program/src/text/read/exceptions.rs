//! What becomes of exceptions in a function.

use super::Reader;
use crate::{Function, Landing, Stream};
use afterlink_core::Result;
use afterlink_unwind::ExceptionType;

impl Reader<'_> {
    /// What landing pads are told.
    pub fn exceptions(&mut self, function: &mut Function) -> Result<()> {
        let is_filter = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        while self.lexer.take("action") {
            let mut chain = Vec::new();
            while is_filter(self.lexer.peek()) {
                chain.push(self.lexer.signed("a filter")?);
            }
            function.exceptions.actions.push(chain);
        }
        while self.lexer.take("type") {
            let number = self.lexer.number("a type's number")?;
            let found = if self.lexer.take("any") {
                ExceptionType::Any
            } else if self.lexer.take("at") {
                ExceptionType::At(self.lexer.address()?)
            } else if self.lexer.take("in") {
                ExceptionType::In(self.lexer.address()?)
            } else {
                return self.lexer.expected("where the type is (`any`, `at`, `in`)");
            };
            function.exceptions.types.insert(number, found);
        }
        while self.lexer.take("list") {
            let place = self.lexer.number("a list's place")?;
            self.lexer.need_mark(b':')?;
            let mut list = Vec::new();
            while is_filter(self.lexer.peek()) {
                list.push(self.lexer.number("a type's number")?);
            }
            function.exceptions.lists.insert(place, list);
        }
        Ok(())
    }

    /// Where exceptions of a span lead.
    pub fn landings(&mut self) -> Result<Stream<Landing>> {
        let mut landings: Vec<(u32, Landing)> = Vec::new();
        if self.lexer.take("landings") {
            self.lexer.need_mark(b':')?;
            loop {
                let place = self.lexer.place();
                let at = self.lexer.number("bytes from the start")?;
                if landings.last().is_some_and(|(last, _)| *last >= at) {
                    return Err(self.lexer.expected_at(place, "landings in order"));
                }
                landings.push((at, self.landing()?));
                if !self.lexer.take_mark(b',') {
                    break;
                }
            }
        }
        Ok(landings.into_iter().collect())
    }

    fn landing(&mut self) -> Result<Landing> {
        if self.lexer.take("caller") {
            return Ok(Landing::Caller);
        }
        if self.lexer.take("nowhere") {
            return Ok(Landing::Nowhere);
        }
        let block = self.block_id()?;
        let action =
            if self.lexer.take("action") { Some(self.lexer.number("an action's number")?) } else { None };
        Ok(Landing::Pad { block, action })
    }
}
