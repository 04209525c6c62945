//! Machine code to assembly text.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

/// The first instructions, one a line.
pub(crate) fn disassemble(bytes: &[u8], address: u64, count: usize) -> Vec<String> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    let mut lines = Vec::new();
    while lines.len() < count && decoder.can_decode() {
        let inst = decoder.decode();
        let mut text = format!("{:x}: ", inst.ip());
        if inst.is_invalid() {
            text.push_str("(bad)");
            lines.push(text);
            break;
        }
        formatter.format(&inst, &mut text);
        lines.push(text);
    }
    lines
}
