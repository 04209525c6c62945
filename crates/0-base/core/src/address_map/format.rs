//! The map's bytes.
//!
//! All numbers are LEB128 (`~` marks zig-zag signed). Version 2: version, number of chains, and for each its length and
//! `~Δcall`s; function count, and for each function `~Δentry`, fragment count, and for each fragment `~Δoutput`, `size`,
//! block count, and for each block `Δoutput_offset`, `kind` and what the kind needs (see [`Kind`]). A function without
//! fragments has 0 behind their count, or 1 and `~Δentry` of the function that it was folded into.
//!
//! Δentry is against the previous function's entry, Δoutput against the end of the previous fragment of the file, Δinput
//! against the end of the previous block of the function (its entry at first), Δcall against the previous call.
//!
//! Version 1 has neither chains nor folded functions, and only the kinds 0 and 1. It is read, too.

use super::{AddressMap, BlockMap, ChainId, FragmentMap, FunctionMap, Reason, SECTION};
use crate::varint::{Reader, write_signed, write_unsigned};
use crate::{Error, InputAddr, OutputAddr, Result};

const VERSION: u64 = 2;

/// Kinds of blocks. All but `INSERTED` have `~Δinput` and `input_size`; `INLINED` has its chain before them, and its Δinput is
/// against the function's entry.
struct Kind;

impl Kind {
    const INSERTED: u64 = 0;
    const COPIED: u64 = 1;
    const REPLACED: u64 = 2;
    const INLINED: u64 = 3;
    const DUPLICATED: u64 = 4;
}

impl AddressMap {
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = MapWriter::new();
        self.functions.iter().for_each(|function| writer.add(function));
        writer.finish(&self.chains)
    }

    /// Reads a map. Errors name [`SECTION`]; memory stays within a constant multiple of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (mut reader, chains) = MapReader::new(bytes)?;
        let mut functions = Vec::new();
        while let Some(function) = reader.next()? {
            functions.push(function);
        }
        Ok(Self { functions, chains })
    }
}

/// Writes a map function by function, in input order: of a large program it has millions of pieces.
pub struct MapWriter {
    functions: Writer,
    count: u64,
}

impl Default for MapWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl MapWriter {
    pub fn new() -> Self {
        Self { functions: Writer::new(VERSION), count: 0 }
    }

    pub fn add(&mut self, function: &FunctionMap) {
        self.functions.function(function);
        self.count += 1;
    }

    /// The map's bytes, with the chains that its functions name.
    pub fn finish(self, chains: &[Vec<InputAddr>]) -> Vec<u8> {
        let mut writer = Writer::new(VERSION);
        writer.head(chains, self.count);
        let mut out = self.functions.out;
        out.splice(..0, writer.out);
        out
    }
}

/// Reads a map function by function. Errors name [`SECTION`].
pub struct MapReader<'a> {
    r: Reader<'a>,
    version: u64,
    entry: u64,
    /// End of the last fragment.
    output: u64,
    /// Functions that are still to come.
    left: u64,
    chains: usize,
}

impl<'a> MapReader<'a> {
    /// A reader of the functions, and the chains that they name.
    pub fn new(bytes: &'a [u8]) -> Result<(Self, Vec<Vec<InputAddr>>)> {
        Self::head(Reader::new(bytes)).ok_or_else(damaged)
    }

    fn head(mut r: Reader<'a>) -> Option<(Self, Vec<Vec<InputAddr>>)> {
        let version = r.unsigned()?;
        if version == 0 || version > VERSION {
            return None;
        }
        let chains = if version == 1 { Vec::new() } else { read_chains(&mut r)? };
        let left = r.unsigned()?;
        Some((Self { r, version, entry: 0, output: 0, left, chains: chains.len() }, chains))
    }

    /// The next function; `None` behind the last one.
    #[expect(clippy::should_implement_trait, reason = "an iterator would go on behind an error")]
    pub fn next(&mut self) -> Result<Option<FunctionMap>> {
        if self.left == 0 {
            return if self.r.remaining() == 0 { Ok(None) } else { Err(damaged()) };
        }
        self.left -= 1;
        self.function().map(Some).ok_or_else(damaged)
    }

    fn function(&mut self) -> Option<FunctionMap> {
        self.entry = self.entry.wrapping_add(self.r.signed()? as u64);
        read_function(&mut self.r, self.version, self.entry, &mut self.output, self.chains)
    }
}

/// Hands each function of a map to `visit`, and says whether the map is what a writer of its version would have written:
/// whether each number is as short as it can be.
pub fn is_plain(bytes: &[u8], mut visit: impl FnMut(&FunctionMap)) -> Result<bool> {
    let (mut reader, chains) = MapReader::new(bytes)?;
    let mut writer = Writer::new(reader.version);
    writer.head(&chains, reader.left);
    let (mut rest, mut plain) = (bytes, true);
    loop {
        let (read, behind) = rest.split_at(rest.len() - reader.r.remaining());
        plain &= read == writer.out;
        rest = behind;
        let Some(function) = reader.next()? else { return Ok(plain) };
        visit(&function);
        writer.out.clear();
        writer.function(&function);
    }
}

fn damaged() -> Error {
    Error::new("the address map is damaged").at(SECTION).next("write the file again from its input")
}

struct Writer {
    out: Vec<u8>,
    version: u64,
    /// Entry of the last function.
    entry: u64,
    /// End of the last fragment.
    output: u64,
}

impl Writer {
    fn new(version: u64) -> Self {
        Self { out: Vec::new(), version, entry: 0, output: 0 }
    }

    /// What stands before so many functions.
    fn head(&mut self, chains: &[Vec<InputAddr>], functions: u64) {
        write_unsigned(&mut self.out, self.version);
        if self.version > 1 {
            self.chains(chains);
        }
        write_unsigned(&mut self.out, functions);
    }

    fn chains(&mut self, chains: &[Vec<InputAddr>]) {
        write_unsigned(&mut self.out, chains.len() as u64);
        let mut last = 0u64;
        for chain in chains {
            write_unsigned(&mut self.out, chain.len() as u64);
            for call in chain {
                write_signed(&mut self.out, call.get().wrapping_sub(last) as i64);
                last = call.get();
            }
        }
    }

    fn function(&mut self, function: &FunctionMap) {
        let entry = function.entry.get();
        write_signed(&mut self.out, entry.wrapping_sub(self.entry) as i64);
        self.entry = entry;
        write_unsigned(&mut self.out, function.fragments.len() as u64);
        if function.fragments.is_empty() && self.version > 1 {
            write_unsigned(&mut self.out, u64::from(function.folded_into.is_some()));
            if let Some(into) = function.folded_into {
                write_signed(&mut self.out, into.get().wrapping_sub(entry) as i64);
            }
        }
        let mut input = entry;
        for fragment in &function.fragments {
            write_signed(&mut self.out, fragment.output.get().wrapping_sub(self.output) as i64);
            self.output = fragment.output.get().wrapping_add(fragment.size);
            write_unsigned(&mut self.out, fragment.size);
            write_unsigned(&mut self.out, fragment.blocks.len() as u64);
            let mut offset = 0;
            for block in &fragment.blocks {
                // Invariant: blocks ascend, so the difference is never negative.
                write_unsigned(&mut self.out, u64::from(block.output_offset - offset));
                offset = block.output_offset;
                self.block(block, entry, &mut input);
            }
        }
    }

    fn block(&mut self, block: &BlockMap, entry: u64, input: &mut u64) {
        let out = &mut self.out;
        let (kind, base) = match block.reason {
            Reason::Inserted => return write_unsigned(out, Kind::INSERTED),
            Reason::Copied => (Kind::COPIED, *input),
            Reason::Replaced => (Kind::REPLACED, *input),
            Reason::Duplicated => (Kind::DUPLICATED, *input),
            Reason::Inlined(_) => (Kind::INLINED, entry),
        };
        write_unsigned(out, kind);
        if let Reason::Inlined(chain) = block.reason {
            write_unsigned(out, u64::from(chain.0));
        }
        // Invariant: only inserted code has no input.
        let address = block.input.expect("the block comes from the input").get();
        write_signed(out, address.wrapping_sub(base) as i64);
        write_unsigned(out, u64::from(block.input_size));
        if kind != Kind::INLINED {
            *input = address.wrapping_add(u64::from(block.input_size));
        }
    }
}

fn read_chains(r: &mut Reader) -> Option<Vec<Vec<InputAddr>>> {
    let mut last = 0u64;
    let mut chains = Vec::new();
    for _ in 0..r.unsigned()? {
        let mut chain = Vec::new();
        for _ in 0..r.unsigned()? {
            last = last.wrapping_add(r.signed()? as u64);
            chain.push(InputAddr(last));
        }
        // A chain without a call says nothing, and any number of them would fit into few bytes.
        if chain.is_empty() {
            return None;
        }
        chains.push(chain);
    }
    Some(chains)
}

fn read_function(
    r: &mut Reader,
    version: u64,
    entry: u64,
    output: &mut u64,
    chains: usize,
) -> Option<FunctionMap> {
    let count = r.unsigned()?;
    let mut function = FunctionMap { entry: InputAddr(entry), ..FunctionMap::default() };
    if count == 0 && version > 1 {
        match r.unsigned()? {
            0 => {}
            1 => function.folded_into = Some(InputAddr(entry.wrapping_add(r.signed()? as u64))),
            _ => return None,
        }
    }
    let mut input = entry;
    for _ in 0..count {
        let start = output.wrapping_add(r.signed()? as u64);
        let size = r.unsigned()?;
        *output = start.wrapping_add(size);
        let mut blocks = Vec::new();
        let mut offset = 0u32;
        for _ in 0..r.unsigned()? {
            offset = offset.checked_add(u32::try_from(r.unsigned()?).ok()?)?;
            blocks.push(read_block(r, version, entry, &mut input, offset, chains)?);
        }
        function.fragments.push(FragmentMap { output: OutputAddr(start), size, blocks });
    }
    Some(function)
}

fn read_block(
    r: &mut Reader,
    version: u64,
    entry: u64,
    input: &mut u64,
    output_offset: u32,
    chains: usize,
) -> Option<BlockMap> {
    let kind = r.unsigned()?;
    let reason = match kind {
        Kind::INSERTED => Reason::Inserted,
        Kind::COPIED => Reason::Copied,
        Kind::REPLACED if version > 1 => Reason::Replaced,
        Kind::DUPLICATED if version > 1 => Reason::Duplicated,
        Kind::INLINED if version > 1 => {
            let chain = u32::try_from(r.unsigned()?).ok()?;
            ((chain as usize) < chains).then_some(Reason::Inlined(ChainId(chain)))?
        }
        _ => return None,
    };
    if reason == Reason::Inserted {
        return Some(BlockMap { output_offset, input: None, input_size: 0, reason });
    }
    let base = if kind == Kind::INLINED { entry } else { *input };
    let address = base.wrapping_add(r.signed()? as u64);
    let input_size = u32::try_from(r.unsigned()?).ok()?;
    if kind != Kind::INLINED {
        *input = address.wrapping_add(u64::from(input_size));
    }
    Some(BlockMap { output_offset, input: Some(InputAddr(address)), input_size, reason })
}
