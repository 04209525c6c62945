//! An output of a small program, and what the checker says of it.

use afterlink_core::InputAddr;
use afterlink_core::address_map::{self, AddressMap};
use afterlink_image::Image;
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, Scope, Silent};
use afterlink_verify::{Options, Verdict, verify};

/// The program with all that can move moved, in its own order, and nothing proven.
pub fn optimized(input: &[u8]) -> Vec<u8> {
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).unwrap().bytes
}

pub fn address_of(file: &[u8], name: &str) -> u64 {
    Image::parse(file).unwrap().symbols.iter().find(|s| s.name() == name).unwrap().address.get()
}

/// Whether the function of that name stands elsewhere in the output.
pub fn moves(name: &str, input: &[u8], output: &[u8]) -> bool {
    let entry = InputAddr(address_of(input, name));
    let image = Image::parse(output).unwrap();
    let map = image
        .section_named(address_map::SECTION)
        .map(|id| AddressMap::decode(image.section_bytes(id)).unwrap());
    map.is_some_and(|map| map.functions.iter().any(|function| function.entry == entry))
}

pub fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}
