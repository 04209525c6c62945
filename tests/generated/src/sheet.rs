//! What a piece writes on: templates in which words in capitals are filled in.
//!
//! | word | becomes |
//! |---|---|
//! | `NN` | the piece's number |
//! | `EXPR` | a random expression of the unsigned `x`, which may call earlier pieces |
//! | `PURE` | the same without calls |
//! | `CONST` | a random number below 2^31 |
//! | `SMALL` | a random number from 1 to 31 |
//! | `KEEP` | (by the header) attributes that keep a function a function |

use std::fmt::Write;

use afterlink_hostile::random::Random;

use crate::settings::Settings;

pub struct Sheet<'a> {
    pub id: usize,
    pub random: &'a mut Random,
    pub settings: &'a Settings,
    /// Numbers of the pieces that may be called.
    pub callable: &'a [usize],
    /// What goes into a C file, into the assembly file, and to compiler and linker.
    pub c: String,
    pub assembly: String,
    pub options: Vec<&'static str>,
}

impl Sheet<'_> {
    /// Adds C code.
    pub fn c(&mut self, template: &str) {
        let text = self.fill(template);
        self.c.push_str(&text);
        self.c.push('\n');
    }

    /// Adds assembly code.
    pub fn assembly(&mut self, template: &str) {
        let text = self.fill(template);
        self.assembly.push_str(&text);
        self.assembly.push('\n');
    }

    pub fn one_of<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.random.below(items.len())]
    }

    /// True once in `n` times.
    pub fn chance(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    /// A number in the range, both ends included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.random.below(high - low + 1)
    }

    /// `count` times the text that `line` makes of a number.
    pub fn lines(&mut self, count: usize, mut line: impl FnMut(&mut Self, usize) -> String) -> String {
        (0..count).fold(String::new(), |mut all, i| {
            let text = line(self, i);
            writeln!(all, "{text}").expect("strings can be written");
            all
        })
    }

    fn fill(&mut self, template: &str) -> String {
        let mut text = template.replace("NN", &self.id.to_string());
        for word in ["EXPR", "PURE", "CONST", "SMALL"] {
            while let Some(at) = text.find(word) {
                let value = match word {
                    "EXPR" => self.expression(3, true),
                    "PURE" => self.expression(3, false),
                    "CONST" => format!("0x{:x}", self.random.number() >> 33),
                    _ => self.between(1, 31).to_string(),
                };
                text.replace_range(at..at + word.len(), &value);
            }
        }
        text
    }

    /// An expression without undefined behaviour.
    fn expression(&mut self, depth: usize, calls: bool) -> String {
        if depth == 0 || self.chance(6) {
            return if self.chance(3) { format!("{}u", self.random.number() >> 40) } else { "x".to_owned() };
        }
        let kind = self.random.below(if calls && !self.callable.is_empty() { 13 } else { 10 });
        let a = self.expression(depth - 1, calls);
        if kind >= 10 {
            return format!("CALL(piece_{}, {a})", self.random.pick(self.callable));
        }
        let b = self.expression(depth - 1, calls);
        let number = self.between(1, 31);
        match kind {
            0 => format!("({a} + {b})"),
            1 => format!("({a} - {b})"),
            2 => format!("({a} * {b})"),
            3 => format!("({a} ^ {b})"),
            4 => format!("({a} >> {number} | {b})"),
            5 => format!("({a} << {number} ^ {b})"),
            6 => format!("(~{a} & {b})"),
            7 => format!("({a} % {}u)", number + 2),
            8 => format!("({a} > {b} ? {b} : {a} + {number}u)"),
            _ => format!("({a} & {} ? {b} : ~{a})", 1u32 << number),
        }
    }
}
