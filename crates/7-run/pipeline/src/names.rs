//! How functions are called in what people read.

/// In place of a name.
pub const NO_SYMBOL: &str = "(no symbol)";

/// The name of a function, which may have none.
pub fn shown(name: &str) -> &str {
    if name.is_empty() { NO_SYMBOL } else { name }
}
