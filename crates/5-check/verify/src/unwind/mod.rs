//! Unwinding: what `.eh_frame` says at each address of either file, as its readers understand it, and whether
//! corresponding instructions have the same.

pub(crate) mod comparison;
mod foreign;
mod in_place;
pub(crate) mod landing_pads;
pub(crate) mod language_data;
mod libgcc_reading;
mod personality;
mod records;
mod remainder;
mod routine_rows;
pub(crate) mod rows;
pub(crate) mod search_table;
pub(crate) mod table;
