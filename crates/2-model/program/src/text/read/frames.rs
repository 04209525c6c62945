//! Unwind rows and entries.

use super::Reader;
use crate::text::lexer::index;
use afterlink_core::{InputAddr, Result};
use afterlink_unwind::{
    CfaRule, Cie, CieId, Expression, Fde, Personality, PointerEncoding, Register, RegisterRule, Row,
};

impl Reader<'_> {
    pub fn is_frames_part(&mut self) -> bool {
        let word = self.lexer.peek();
        ["row", "cie", "fde"].iter().any(|prefix| index(word, prefix).is_some())
    }

    /// A row, a CIE or an FDE.
    pub fn frames_part(&mut self) -> Result<()> {
        let place = self.lexer.place();
        let expected = [("row", self.rows.len()), ("cie", self.cies.len()), ("fde", self.fdes.len())]
            .map(|(prefix, number)| format!("{prefix}{number}"));
        let Some(kind) = expected.iter().position(|word| self.lexer.take(word)) else {
            return self
                .lexer
                .expected(&format!("`{}`, `{}` or `{}`", expected[0], expected[1], expected[2]));
        };
        match kind {
            0 => {
                let row = self.row()?;
                let (before, id) = (self.rows.len(), self.rows.intern(&row));
                if self.rows.len() == before {
                    return Err(self.lexer.expected_at(place, &format!("a row other than {id}")));
                }
            }
            1 => {
                let cie = self.cie()?;
                self.cies.push(cie);
            }
            _ => {
                let fde = self.fde()?;
                self.fdes.push(fde);
            }
        }
        Ok(())
    }

    fn row(&mut self) -> Result<Row> {
        self.lexer.need("cfa")?;
        let cfa = if self.lexer.take("none") {
            CfaRule::Unspecified
        } else if self.lexer.take("expression") {
            CfaRule::Expression(self.expression()?)
        } else {
            let register = self.register()?;
            self.lexer.need_mark(b'+')?;
            CfaRule::Offset(register, self.lexer.signed("an offset")?)
        };
        let mut row = Row::new(cfa);
        while self.lexer.take_mark(b',') {
            if self.lexer.take("args") {
                row.args_size = self.lexer.number("bytes of arguments")?;
            } else {
                let register = self.register()?;
                self.lexer.need_mark(b'=')?;
                let rule = self.rule()?;
                row.set_rule(register, Some(rule));
            }
        }
        Ok(row)
    }

    fn rule(&mut self) -> Result<RegisterRule> {
        if self.lexer.take("undefined") {
            Ok(RegisterRule::Undefined)
        } else if self.lexer.take("same") {
            Ok(RegisterRule::SameValue)
        } else if self.lexer.take("expression") {
            Ok(RegisterRule::ValExpression(self.expression()?))
        } else if self.lexer.take("cfa") {
            self.lexer.need_mark(b'+')?;
            Ok(RegisterRule::ValOffset(self.lexer.signed("an offset")?))
        } else if self.lexer.take_mark(b'[') {
            let rule = if self.lexer.take("expression") {
                RegisterRule::Expression(self.expression()?)
            } else {
                self.lexer.need("cfa")?;
                self.lexer.need_mark(b'+')?;
                RegisterRule::Offset(self.lexer.signed("an offset")?)
            };
            self.lexer.need_mark(b']')?;
            Ok(rule)
        } else {
            Ok(RegisterRule::Register(self.register()?))
        }
    }

    fn expression(&mut self) -> Result<Expression> {
        self.lexer.need_mark(b'[')?;
        let bytes = self.lexer.bytes();
        self.lexer.need_mark(b']')?;
        Ok(Expression::new(&bytes))
    }

    fn register(&mut self) -> Result<Register> {
        self.lexer.parsed("a register (`r7`)", |word| Register::try_from(index(word, "r")?).ok())
    }

    fn cie(&mut self) -> Result<Cie> {
        self.lexer.need("at")?;
        let offset = self.lexer.number("a place in the section")?;
        self.lexer.need("code")?;
        let code_alignment = self.lexer.number("bytes")?;
        self.lexer.need("data")?;
        let data_alignment = self.lexer.signed("bytes")?;
        self.lexer.need("return")?;
        let return_register = self.lexer.number("a register's number")?;
        self.lexer.need("pointers")?;
        let fde_encoding = self.pointer_encoding()?;
        let has_augmentation_data = self.lexer.take("augmented");
        let signal_frame = self.lexer.take("signal");
        let signs_with_key_b = self.lexer.take("key-b");
        let has_tagged_frame = self.lexer.take("tagged");
        let lsda_encoding = if self.lexer.take("lsda") { Some(self.pointer_encoding()?) } else { None };
        let personality = if self.lexer.take("personality") {
            Some(Personality { encoding: self.pointer_encoding()?, address: self.lexer.address()? })
        } else {
            None
        };
        Ok(Cie {
            offset,
            code_alignment,
            data_alignment,
            return_register,
            signal_frame,
            fde_encoding,
            lsda_encoding,
            personality,
            initial: self.row()?,
            has_augmentation_data,
            signs_with_key_b,
            has_tagged_frame,
        })
    }

    fn pointer_encoding(&mut self) -> Result<PointerEncoding> {
        Ok(PointerEncoding(self.lexer.number("how a pointer is stored")?))
    }

    fn fde(&mut self) -> Result<Fde> {
        self.lexer.need("at")?;
        let offset = self.lexer.number("a place in the section")?;
        let place = self.lexer.place();
        let cie = CieId(self.lexer.index("cie", "a CIE (`cie0`)")?);
        if self.cies.get(cie).is_none() {
            return Err(self.lexer.expected_at(place, "a CIE that stands before it"));
        }
        let extent: (InputAddr, u64) = self.lexer.sized()?;
        let lsda = if self.lexer.take("lsda") { Some(self.lexer.address()?) } else { None };
        let is_found = !self.lexer.take("unfound");
        let mut fde = Fde::new(offset, cie, extent, lsda);
        fde.is_found = is_found;
        Ok(fde)
    }
}
