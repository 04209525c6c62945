//! Unwind information: how the frame of the caller is found from any instruction of a function.
//!
//! [`EhFrame`] takes the bytes of an `.eh_frame` apart into CIEs and FDEs and evaluates the instructions of
//! an FDE to [`Row`]s; [`write_eh_frame`] makes a new section of rows; [`EhFrameHdr`] and
//! [`write_eh_frame_hdr`] do the same for the search table beside it. Reader and writer mirror each other:
//! what one writes the other reads back as equal rows. [`Lsda`] and [`write_lsda`] do it for what exceptions do in a function.
//!
//! Formats: DWARF 5, section 6.4 (call frame information); Linux Standard Base, chapter 10.6 (`.eh_frame`,
//! `.eh_frame_hdr`, pointer encodings). Where the two leave room, the behaviour of libgcc's unwinder counts.
//!
//! Input is not trusted: a damaged entry is listed and skipped, time and memory stay linear in the size of the
//! section (a row holds at most [`row::MAX_RULES`] rules and [`row::MAX_EXPRESSION_BYTES`] expression bytes,
//! and no row is stored without an instruction of its own).

mod cursor;
mod difference;
mod dwarf;
pub mod eh_frame;
pub mod eh_frame_hdr;
mod evaluate;
pub mod expression;
mod instruction;
pub mod lsda;
pub mod pointer;
pub mod row;
pub mod write;

pub use eh_frame::{Cie, CieId, Damaged, EhFrame, Fde, FdeId, Foreign, Personality};
pub use eh_frame_hdr::{EhFrameHdr, eh_frame_hdr_size, write_eh_frame_hdr};
pub use expression::Expression;
pub use lsda::{CallSite, ExceptionTable, ExceptionType, Lsda, LsdaPlace, OutputCallSite, write_lsda};
pub use pointer::{Bases, PointerEncoding};
pub use row::{CfaRule, Register, RegisterRule, Row, RowId, RowTable, row_at};
pub use write::{FdeBody, OutputCie, OutputFde, OutputPersonality, WrittenFrames, write_eh_frame};
