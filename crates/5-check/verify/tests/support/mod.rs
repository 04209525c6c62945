//! Places in the programs of tests, and the judgement on a pair of them.

use afterlink_core::InputAddr;
use afterlink_core::address_map::{self, AddressMap};
use afterlink_image::Image;
use afterlink_verify::{Options, Verdict, verify};

pub fn address_of(bytes: &[u8], name: &str) -> u64 {
    let image = Image::parse(bytes).unwrap();
    image.symbols.iter().find(|s| s.name() == name).unwrap().address.get()
}

pub fn file_offset(bytes: &[u8], address: u64) -> usize {
    Image::parse(bytes).unwrap().file_offset(InputAddr(address)).unwrap().get() as usize
}

/// The map of an output.
pub fn map_of(output: &[u8]) -> AddressMap {
    let image = Image::parse(output).unwrap();
    let section = image.section_named(address_map::SECTION).unwrap();
    AddressMap::decode(image.section_bytes(section)).unwrap()
}

pub fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}
