//! An output of a small program, and what the checker says of it.

use afterlink_core::InputAddr;
use afterlink_core::address_map::{self, AddressMap, Lookup};
use afterlink_image::Image;
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, Scope, Silent};
use afterlink_verify::{Options, Verdict, verify};

/// The program with all that can move moved, in its own order, and nothing proven.
pub fn optimized(input: &[u8]) -> Vec<u8> {
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).unwrap().bytes
}

pub fn address_of(file: &[u8], name: &str) -> InputAddr {
    Image::parse(file).unwrap().symbols.iter().find(|s| s.name() == name).unwrap().address
}

/// Where the function of that name stands in the output, if it has moved.
pub fn place_of(name: &str, input: &[u8], output: &[u8]) -> Option<u64> {
    let image = Image::parse(output).unwrap();
    let map = image.section_bytes(image.section_named(address_map::SECTION)?);
    Some(Lookup::new(AddressMap::decode(map).unwrap()).copy_of(address_of(input, name))?.get())
}

pub fn moves(name: &str, input: &[u8], output: &[u8]) -> bool {
    place_of(name, input, output).is_some()
}

pub fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}
