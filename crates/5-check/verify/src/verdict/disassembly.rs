//! Addresses to assembly text, for findings.

use afterlink_image::Image;
use afterlink_isa::judgement::{Judgement, LONGEST};

/// Instructions shown for one place.
const LINES: usize = 4;

/// The instructions from `address` on, one a line; empty if none is loaded there.
pub(crate) fn at(image: &Image, address: u64) -> Vec<String> {
    let address = afterlink_core::InputAddr(address);
    let is_code = image.section_at(address).is_some_and(|id| image.sections[id].is_code());
    let Some(start) = image.file_offset(address).filter(|_| is_code) else { return Vec::new() };
    let bytes = image.bytes.get(start.get() as usize..).unwrap_or(&[]);
    let bytes = &bytes[..bytes.len().min(LINES * LONGEST)];
    Judgement::of(image.arch).disassemble(bytes, address.get(), LINES)
}
