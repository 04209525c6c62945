//! How functions are called in what people read.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// In place of a name.
pub const NO_SYMBOL: &str = "(no symbol)";

/// Longer ones are templates of templates: nobody reads them, and demangling may make them longer without end.
const LONGEST: usize = 240;

/// The name of a function, which may have none.
pub fn shown(name: &str) -> &str {
    if name.is_empty() { NO_SYMBOL } else { name }
}

/// A linker's name as its source spells it, C++ or Rust; any other as it is. What a compiler has put behind it (`.cold`, `.lto_priv.0`) and what tells names
/// of several files apart (`/1`) stays.
pub fn spelled(name: &str) -> Cow<'_, str> {
    let is_of_suffix = |c: char| c == '.' || c == '/';
    let (bare, suffix) = name.split_at(name.find(is_of_suffix).unwrap_or(name.len()));
    match rust_or_cpp(bare) {
        Some(spelled) => Cow::Owned(spelled + suffix),
        None => Cow::Borrowed(name),
    }
}

fn rust_or_cpp(name: &str) -> Option<String> {
    let mut spelled = Limited::default();
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(spelled, "{rust:#}").ok()?;
    } else {
        // Others would be read as types: `i` as int.
        let cpp = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name))?.ok()?;
        cpp.structured_demangle(&mut spelled, &cpp_demangle::DemangleOptions::default()).ok()?;
    }
    Some(spelled.0)
}

/// Text that is refused once it is longer than anybody reads: a name of substitutions may stand for one that is 2^n times as long.
#[derive(Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_as_in_the_source() {
        let names = [
            ("_ZNK3Odd4areaEv", "Odd::area() const"),
            ("_ZN3foo3barEi.cold", "foo::bar(int).cold"),
            ("_ZL5localv/file.cc/1", "local()/file.cc/1"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("exec_simple_query", "exec_simple_query"),
            ("i", "i"),
            ("_Zbroken", "_Zbroken"),
            ("", ""),
        ];
        for (name, expected) in names {
            assert_eq!(spelled(name), expected);
        }
    }

    /// Each template doubles what the substitutions stand for: 2^40 letters in all.
    #[test]
    fn names_that_grow_without_end_stay() {
        const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let number = |n: usize| match n {
            0 => "S_".to_owned(),
            _ => format!("S{}{}_", if n > 36 { "0" } else { "" }, DIGITS[(n - 1) % 36] as char),
        };
        let parts: String = (0..36).map(|n| format!("S0_I{0}{0}E", number(n + 1))).collect();
        let name = format!("_Z1f1a1pI{0}{0}E{parts}", "S_");
        assert_eq!(spelled(&name), name);
    }
}
