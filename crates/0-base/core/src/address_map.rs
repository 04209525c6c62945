//! The address map: where each piece of the input stands in the output. `emit` writes it into the
//! output's section [`SECTION`]; `verify` reads it back as a hint that it checks, and profiles taken on an
//! optimized program are led back through it.
//!
//! Format, all numbers LEB128 (`~` marks zig-zag signed): version, function count, and for each function
//! `~Δentry`, fragment count, and for each fragment `~Δoutput`, `size`, block count, and for each block
//! `Δoutput_offset`, `kind` (0 = made by afterlink, 1 = from the input) and, for kind 1, `~Δinput`, `input_size`.
//! Δentry is against the previous function's entry, Δoutput against the end of the previous fragment of the
//! file, Δinput against the end of the previous block of the function (its entry at first).

use crate::varint::{Reader, write_signed, write_unsigned};
use crate::{Error, InputAddr, OutputAddr, Result};

/// The output's section that holds the map.
pub const SECTION: &str = ".afterlink.map";

/// Version of the format.
const VERSION: u64 = 1;

/// Every function that was written anew, in input order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMap {
    pub functions: Vec<FunctionMap>,
}

/// One function and the fragments it was written as; the first fragment starts with the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionMap {
    /// Input address of the function's entry.
    pub entry: InputAddr,
    pub fragments: Vec<FragmentMap>,
}

/// A run of consecutive blocks in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentMap {
    pub output: OutputAddr,
    /// Bytes in the output.
    pub size: u64,
    /// Blocks by ascending output offset; a block ends where the next starts.
    pub blocks: Vec<BlockMap>,
}

/// One basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMap {
    /// Start, from the start of the fragment.
    pub output_offset: u32,
    /// Start of the same block in the input; `None` for code that afterlink added (a counter on an edge).
    pub input: Option<InputAddr>,
    /// Bytes in the input, with its branch and the padding behind it; 0 for added code.
    pub input_size: u32,
}

impl AddressMap {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_unsigned(&mut out, VERSION);
        write_unsigned(&mut out, self.functions.len() as u64);
        let (mut entry, mut output) = (0u64, 0u64);
        for function in &self.functions {
            write_signed(&mut out, function.entry.get().wrapping_sub(entry) as i64);
            entry = function.entry.get();
            write_unsigned(&mut out, function.fragments.len() as u64);
            let mut input = entry;
            for fragment in &function.fragments {
                write_signed(&mut out, fragment.output.get().wrapping_sub(output) as i64);
                output = fragment.output.get().wrapping_add(fragment.size);
                write_unsigned(&mut out, fragment.size);
                write_unsigned(&mut out, fragment.blocks.len() as u64);
                let mut offset = 0;
                for block in &fragment.blocks {
                    // Invariant: blocks ascend, so the difference is never negative.
                    write_unsigned(&mut out, u64::from(block.output_offset - offset));
                    offset = block.output_offset;
                    write_unsigned(&mut out, u64::from(block.input.is_some()));
                    if let Some(address) = block.input {
                        write_signed(&mut out, address.get().wrapping_sub(input) as i64);
                        write_unsigned(&mut out, u64::from(block.input_size));
                        input = address.get().wrapping_add(u64::from(block.input_size));
                    }
                }
            }
        }
        out
    }

    /// Reads a map. Errors name [`SECTION`]; memory stays within a constant multiple of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        decode(bytes).ok_or_else(|| {
            Error::new("the address map is damaged").at(SECTION).next("write the file again from its input")
        })
    }
}

fn decode(bytes: &[u8]) -> Option<AddressMap> {
    let mut r = Reader::new(bytes);
    if r.unsigned()? != VERSION {
        return None;
    }
    let (mut entry, mut output) = (0u64, 0u64);
    let count = r.unsigned()?;
    let mut functions = Vec::new();
    for _ in 0..count {
        entry = entry.wrapping_add(r.signed()? as u64);
        let mut input = entry;
        let mut fragments = Vec::new();
        for _ in 0..r.unsigned()? {
            let start = output.wrapping_add(r.signed()? as u64);
            let size = r.unsigned()?;
            output = start.wrapping_add(size);
            let mut blocks = Vec::new();
            let mut output_offset = 0u32;
            for _ in 0..r.unsigned()? {
                output_offset = output_offset.checked_add(u32::try_from(r.unsigned()?).ok()?)?;
                let (mut address, mut input_size) = (None, 0);
                let is_input = match r.unsigned()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                if is_input {
                    input = input.wrapping_add(r.signed()? as u64);
                    address = Some(InputAddr(input));
                    input_size = u32::try_from(r.unsigned()?).ok()?;
                    input = input.wrapping_add(u64::from(input_size));
                }
                blocks.push(BlockMap { output_offset, input: address, input_size });
            }
            fragments.push(FragmentMap { output: OutputAddr(start), size, blocks });
        }
        functions.push(FunctionMap { entry: InputAddr(entry), fragments });
    }
    (r.remaining() == 0).then_some(AddressMap { functions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map() -> impl Strategy<Value = AddressMap> {
        let block = (0u32..64, proptest::option::of((0u64..1 << 40, 0u32..4096)));
        let fragment = (0u64..1 << 47, 0u64..1 << 32, proptest::collection::vec(block, 0..6));
        let function = (0u64..1 << 47, proptest::collection::vec(fragment, 0..4));
        proptest::collection::vec(function, 0..6).prop_map(|functions| AddressMap {
            functions: functions
                .into_iter()
                .map(|(entry, fragments)| FunctionMap {
                    entry: InputAddr(entry),
                    fragments: fragments
                        .into_iter()
                        .map(|(output, size, blocks)| {
                            let mut at = 0;
                            FragmentMap {
                                output: OutputAddr(output),
                                size,
                                blocks: blocks
                                    .into_iter()
                                    .map(|(step, input)| {
                                        at += step;
                                        BlockMap {
                                            output_offset: at,
                                            input: input.map(|i| InputAddr(i.0)),
                                            input_size: input.map_or(0, |i| i.1),
                                        }
                                    })
                                    .collect(),
                            }
                        })
                        .collect(),
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(map in map()) {
            prop_assert_eq!(AddressMap::decode(&map.encode()).unwrap(), map);
        }

        #[test]
        fn every_truncation_is_an_error(map in map(), cut in 0.0f64..1.0) {
            let bytes = map.encode();
            let keep = (bytes.len() as f64 * cut) as usize;
            prop_assert!(AddressMap::decode(&bytes[..keep]).is_err());
        }

        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = AddressMap::decode(&bytes);
        }
    }
}
