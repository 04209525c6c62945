//! What becomes of exceptions in a function.

use super::{Writer, put};
use crate::{Function, Landing, UnwindSpan};
use afterlink_unwind::ExceptionType;

impl Writer<'_, '_> {
    /// What landing pads are told.
    pub fn exceptions(&mut self, function: &Function) {
        let table = &function.exceptions;
        for chain in &table.actions {
            self.text.push_str("action");
            for filter in chain {
                put!(self, " {filter}");
            }
            self.text.push('\n');
        }
        for (number, found) in &table.types {
            match found {
                ExceptionType::Any => {
                    put!(self, "type {number} any\n");
                }
                ExceptionType::At(place) => {
                    put!(self, "type {number} at {place:#x}\n");
                }
                ExceptionType::In(place) => {
                    put!(self, "type {number} in {place:#x}\n");
                }
            }
        }
        for (place, list) in &table.lists {
            put!(self, "list {place}:");
            for number in list {
                put!(self, " {number}");
            }
            self.text.push('\n');
        }
    }

    /// Where exceptions of a span lead.
    pub fn landings(&mut self, span: &UnwindSpan) {
        for (i, (at, landing)) in span.landings.changes().iter().enumerate() {
            put!(self, "{} {at} ", if i > 0 { "," } else { " landings:" });
            match landing {
                Landing::Caller => self.text.push_str("caller"),
                Landing::Nowhere => self.text.push_str("nowhere"),
                Landing::Pad { block, action } => {
                    put!(self, "{block}");
                    if let Some(action) = action {
                        put!(self, " action {action}");
                    }
                }
            }
        }
    }
}
