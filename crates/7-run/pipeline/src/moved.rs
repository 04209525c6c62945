//! Which functions an output has moved, and what they are called.

use afterlink_core::{AddressMap, Error, InputAddr, Result, address_map};
use afterlink_image::Image;

/// Entries of the functions that an output has moved, by address.
pub(crate) fn moved_functions(output: &[u8]) -> Result<Vec<InputAddr>> {
    let image = Image::parse(output)?;
    let section = image.section_named(address_map::SECTION);
    let map = section.map_or(Ok(AddressMap::default()), |id| AddressMap::decode(image.section_bytes(id)))?;
    let mut moved: Vec<InputAddr> = map.functions.iter().map(|f| f.entry).collect();
    moved.sort_unstable();
    if moved.is_empty() {
        return Err(
            Error::new("no function of the program is moved").next("give a profile of it, or --scope all")
        );
    }
    Ok(moved)
}

/// The functions' names, as `--skip-functions` sees them; empty where there is none.
pub(crate) fn names_of(input: &[u8], entries: &[InputAddr]) -> Result<Vec<String>> {
    let image = Image::parse(input)?;
    let program = afterlink_recover::recover(&image)?;
    let name = |at| program.function_at(at).map_or(String::new(), |id| program.functions[id].name.to_owned());
    Ok(entries.iter().map(|&address| name(address)).collect())
}
