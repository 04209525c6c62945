//! Jump tables: what each looks like, where it stands, and where its entries lead.

pub(crate) mod counted;
pub(crate) mod relative;

use afterlink_core::InputAddr;
use afterlink_program::TableFormat;

/// A table, as the piece that names it uses it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub piece: usize,
    /// Where it starts.
    pub base: InputAddr,
    pub format: Option<TableFormat>,
    pub targets: Vec<InputAddr>,
}
