//! Functions that a symbol without a section may mean, in a program at fixed addresses: its value is a number (a constant of the link, or an
//! alias that the linker was told of by `--defsym`), and nothing tells a number that happens to be a function's address from that address.

use crate::code::Code;
use afterlink_core::Refusal;
use afterlink_image::elf;

pub(crate) fn refuse(code: &mut Code) {
    let image = code.image;
    if image.link_kind.is_position_independent() {
        // No such number is the address of anything where the program is loaded.
        return;
    }
    let symbols = image.symbols.iter().chain(image.dynamic_symbols.iter());
    for symbol in symbols.filter(|s| s.section == elf::SHN_ABS.0 && s.kind != elf::STT_FILE.0) {
        if let Some(piece) = code.piece_at(symbol.address) {
            code.refuse(piece, Refusal::AbsoluteSymbol);
        }
    }
}
