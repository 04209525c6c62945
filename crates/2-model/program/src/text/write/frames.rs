//! Unwind rows and entries.

use super::function::Sized;
use super::{Writer, put};
use afterlink_core::index::Id;
use afterlink_unwind::{CfaRule, Cie, Expression, Fde, RegisterRule, Row, RowId};

impl Writer<'_, '_> {
    pub fn frames(&mut self) {
        let (frames, rows) = (&self.view.program.eh_frame, &self.view.program.rows);
        for id in (0..rows.len()).map(RowId::from_index) {
            let Some(number) = self.names.row(id) else { continue };
            put!(self, "{}{number} ", if number.0 == 0 { "\n" } else { "" });
            self.row(&rows[id]);
        }
        for (id, cie) in frames.cies.iter() {
            let Some(number) = self.names.cie(id) else { continue };
            put!(self, "{number} ");
            self.cie(cie);
        }
        for (id, fde) in frames.fdes.iter() {
            let Some(number) = self.names.fde(id) else { continue };
            put!(self, "{number} ");
            self.fde(fde);
        }
    }

    fn row(&mut self, row: &Row) {
        self.text.push_str("cfa ");
        match &row.cfa {
            CfaRule::Unspecified => self.text.push_str("none"),
            CfaRule::Offset(register, offset) => {
                put!(self, "r{register} + {offset}");
            }
            CfaRule::Expression(expression) => self.expression(expression),
        }
        if row.args_size > 0 {
            put!(self, ", args {}", row.args_size);
        }
        for (register, rule) in row.registers() {
            put!(self, ", r{register} = ");
            self.rule(rule);
        }
        self.text.push('\n');
    }

    fn rule(&mut self, rule: &RegisterRule) {
        match rule {
            RegisterRule::Undefined => self.text.push_str("undefined"),
            RegisterRule::SameValue => self.text.push_str("same"),
            RegisterRule::Offset(offset) => {
                put!(self, "[cfa + {offset}]");
            }
            RegisterRule::ValOffset(offset) => {
                put!(self, "cfa + {offset}");
            }
            RegisterRule::Register(register) => {
                put!(self, "r{register}");
            }
            RegisterRule::Expression(expression) => {
                self.text.push('[');
                self.expression(expression);
                self.text.push(']');
            }
            RegisterRule::ValExpression(expression) => self.expression(expression),
        }
    }

    fn expression(&mut self, expression: &Expression) {
        self.text.push_str("expression [");
        self.hex(expression.bytes());
        self.text.push(']');
    }

    fn cie(&mut self, cie: &Cie) {
        let (code, data) = (cie.code_alignment, cie.data_alignment);
        put!(self, "at {:#x} code {code} data {data} return {}", cie.offset, cie.return_register);
        put!(self, " pointers {:#x}", cie.fde_encoding.0);
        if cie.has_augmentation_data {
            self.text.push_str(" augmented");
        }
        let flags =
            [(cie.signal_frame, "signal"), (cie.signs_with_key_b, "key-b"), (cie.has_tagged_frame, "tagged")];
        for (_, flag) in flags.iter().filter(|(is_set, _)| *is_set) {
            put!(self, " {flag}");
        }
        if let Some(lsda) = cie.lsda_encoding {
            put!(self, " lsda {:#x}", lsda.0);
        }
        if let Some(personality) = cie.personality {
            put!(self, " personality {:#x} {:#x}", personality.encoding.0, personality.address);
        }
        self.text.push(' ');
        self.row(&cie.initial);
    }

    fn fde(&mut self, fde: &Fde) {
        let Some(cie) = self.names.cie(fde.cie) else { return };
        put!(self, "at {:#x} {cie} {}", fde.offset, Sized(fde.start, fde.size));
        if let Some(lsda) = fde.lsda {
            put!(self, " lsda {lsda:#x}");
        }
        if !fde.is_found {
            self.text.push_str(" unfound");
        }
        self.text.push('\n');
    }
}
