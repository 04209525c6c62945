//! What the counters of an instrumented program stand for. `instrument` writes it into the program, the program's
//! start-up code copies it into the counter file, and a profile is worked out of it without the program.
//!
//! Each function is a network through which control flows. Its nodes are the world outside of it, and a way in and a
//! way out for each block; what flows into a node flows out of it. Only some edges have counters; the others
//! form a tree, and so follow from them (Knuth and Stevenson, "Optimal measurement points for program frequency
//! counts", 1973; Ball and Larus, "Optimally profiling and tracing programs", 1994). [`Function::edges`] is the one
//! place that says which edges a function has, for both sides.
//!
//! A call may never come back (`exit`, `longjmp`) or come back twice (`setjmp`). So a block with such calls
//! has two counters instead of one edge between its two nodes: what came in flows to the world, what goes on comes
//! from there.
//!
//! Where an indirect call or jump leads is counted by the address that it leads to. So the description tells where the functions
//! stand in the counting program, which counts addresses from its start. Each such site has [`SITE_WORDS`] words behind all
//! counters: [`TARGETS`] pairs of an address and a count, filled from the first on, and a count of all other targets.
//!
//! Format, all numbers LEB128 (`~` marks zig-zag signed): version; number of names, and each name's length and
//! bytes; number of functions, and for each one number of fragments and their names; number of target sets, and for
//! each one its length and its blocks, each `~Δ` to the one before; number of blocks, and each block: fragment,
//! `~Δoffset` to the block before, last, flags, target set, exit, and number of sites if the flags say so, `calls × 4 + successors`, for
//! each successor `(~Δ to the block) × 2 + counted`, for each call `Δoffset` and name, for each site `Δoffset`. Then the start of the
//! program, the number of entries, and for each name and `~Δaddress` to the one before; and at the end four bytes for each entry, which are
//! known last: how far from the start of the program it stands now.

use crate::varint::{Reader, write_signed, write_unsigned};
use crate::{Error, Result};

/// Version of the format.
const VERSION: u64 = 2;

/// Targets that each site counts apart.
pub const TARGETS: usize = 8;
/// Words of a site.
pub const SITE_WORDS: usize = 2 * TARGETS + 1;
/// Bytes of an entry's place.
pub const PLACE_BYTES: usize = 4;

/// The whole description. Counters are numbered in the order of functions, and in each in that of its edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Symbol names, as profiles spell them.
    pub names: Vec<Vec<u8>>,
    pub functions: Vec<Function>,
    pub entries: Entries,
}

/// Where functions start, for targets that are counted by their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Address in the input from which places are counted.
    pub base: u64,
    /// In the order in which they are given; most ascend.
    pub rows: Vec<Entry>,
}

/// A function's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As index into the names.
    pub name: u32,
    /// Its address in the input.
    pub input: u64,
    /// Where it stands in the counting program, in bytes from the base.
    pub place: u32,
}

/// A function; block 0 is its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The symbol at the start of each of its ranges, as index into the names.
    pub fragments: Vec<u32>,
    /// Blocks that indirect jumps may lead to.
    pub target_sets: Vec<Vec<u32>>,
    pub blocks: Vec<Block>,
}

/// A basic block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The range that it lies in, as index into [`Function::fragments`], and bytes from that one's start.
    pub fragment: u32,
    pub offset: u32,
    /// Bytes from the block's start to its last instruction.
    pub last: u32,
    /// Control may come in otherwise than from a block that has this one as a successor.
    pub entered: bool,
    /// Control may go elsewhere from its end.
    pub leaves: bool,
    /// It holds a call that may not come back, or more than once.
    pub may_stop: bool,
    /// Whether there is a counter at its start; unless it may stop, that is anywhere in it.
    pub counted: bool,
    /// Whether there is a counter behind its last call.
    pub tail_counted: bool,
    /// Which of [`Function::target_sets`] its indirect jump leads to.
    pub targets: Option<u32>,
    /// The function that its last instruction jumps to, as index into the names.
    pub exit: Option<u32>,
    /// Blocks that control may go on to directly, each once.
    pub successors: Vec<Successor>,
    pub calls: Vec<Call>,
    /// Indirect calls and jumps whose targets are counted, as bytes from the block's start; ascending.
    pub sites: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Successor {
    pub block: u32,
    pub counted: bool,
}

/// A direct call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Bytes from the block's start to the call.
    pub offset: u32,
    /// The callee, as index into the names.
    pub callee: u32,
}

/// A node of a function's network: the world, or a side of a block.
pub type Node = u32;

/// The world outside of the function.
pub const WORLD: Node = 0;

/// The way into a block.
pub fn way_in(block: u32) -> Node {
    1 + 2 * block
}

/// An edge of a function's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Node,
    pub to: Node,
    pub kind: EdgeKind,
    pub counted: bool,
}

/// What flows along an [`Edge`]. Those that can have no counter are never counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Control that comes into the block from elsewhere; cannot have a counter.
    Entered(u32),
    /// Executions of the block; if it may stop, of its start.
    Executed(u32),
    /// What goes on behind the last call of a block that may stop.
    Tail(u32),
    /// Control that leaves the function at the end of the block; cannot have a counter.
    Leaves(u32),
    /// Control that goes from the block to the successor of that number.
    Flow(u32, u32),
}

impl EdgeKind {
    /// Whether there is a place for a counter.
    pub fn is_countable(self) -> bool {
        !matches!(self, Self::Entered(_) | Self::Leaves(_))
    }
}

impl Function {
    /// Number of nodes of the network.
    pub fn node_count(&self) -> usize {
        1 + 2 * self.blocks.len()
    }

    /// The way out of a block. Where control may both stop and leave, what does either is not told apart, and only
    /// the counted successors say what went on.
    pub fn way_out(&self, block: u32) -> Node {
        let own = &self.blocks[block as usize];
        if own.may_stop && own.leaves { WORLD } else { way_in(block) + 1 }
    }

    /// All edges of the network, in the order of their counters.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(self.blocks.len() * 3);
        for (id, block) in (0u32..).zip(&self.blocks) {
            let out = self.way_out(id);
            let mut edge = |from, to, kind, counted| edges.push(Edge { from, to, kind, counted });
            if block.entered {
                edge(WORLD, way_in(id), EdgeKind::Entered(id), false);
            }
            let executed_to = if block.may_stop { WORLD } else { out };
            edge(way_in(id), executed_to, EdgeKind::Executed(id), block.counted);
            if block.may_stop && !block.leaves && !block.successors.is_empty() {
                edge(WORLD, out, EdgeKind::Tail(id), block.tail_counted);
            }
            if block.leaves && !block.may_stop {
                edge(out, WORLD, EdgeKind::Leaves(id), false);
            }
            for (i, successor) in (0u32..).zip(&block.successors) {
                edge(out, way_in(successor.block), EdgeKind::Flow(id, i), successor.counted);
            }
        }
        edges
    }
}

const ENTERED: u64 = 1;
const LEAVES: u64 = 2;
const MAY_STOP: u64 = 4;
const COUNTED: u64 = 8;
const TAIL_COUNTED: u64 = 16;
const HAS_TARGETS: u64 = 32;
const HAS_EXIT: u64 = 64;
const HAS_SITES: u64 = 128;

impl Description {
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.functions.iter().for_each(|function| writer.add(function));
        writer.finish(&self.names, &self.entries)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// If the bytes are damaged, or of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if reader.unsigned().is_some_and(|version| version != VERSION) {
            return Err(Error::new("the description of the counters is of another version of afterlink")
                .next("convert the file with the version that instrumented the program"));
        }
        read_description(&mut reader).filter(|_| reader.remaining() == 0).ok_or_else(|| {
            Error::new("the description of the counters is damaged")
                .next("run the instrumented program again")
        })
    }
}

/// Encodes a description function by function, so that not all need to be there at once.
#[derive(Default)]
pub struct Writer {
    count: u64,
    functions: Vec<u8>,
}

impl Writer {
    /// Adds a function, behind those that were added before.
    pub fn add(&mut self, function: &Function) {
        self.count += 1;
        write_function(&mut self.functions, function);
    }

    /// Adds the functions of another writer.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        self.functions.extend_from_slice(&other.functions);
    }

    /// The whole description; `names` are those that the functions have by number. It ends with the places of `entries`.
    pub fn finish(self, names: &[Vec<u8>], entries: &Entries) -> Vec<u8> {
        let mut out = Vec::new();
        write_unsigned(&mut out, VERSION);
        write_list(&mut out, names, |out, name| {
            write_unsigned(out, name.len() as u64);
            out.extend_from_slice(name);
        });
        write_unsigned(&mut out, self.count);
        out.extend_from_slice(&self.functions);
        write_unsigned(&mut out, entries.base);
        let mut before = 0u64;
        write_list(&mut out, &entries.rows, |out, entry| {
            write_unsigned(out, u64::from(entry.name));
            write_signed(out, entry.input.wrapping_sub(before) as i64);
            before = entry.input;
        });
        entries.rows.iter().for_each(|entry| out.extend_from_slice(&entry.place.to_le_bytes()));
        out
    }
}

fn write_function(out: &mut Vec<u8>, function: &Function) {
    write_list(out, &function.fragments, |out, &name| write_unsigned(out, u64::from(name)));
    write_list(out, &function.target_sets, |out, set| {
        let mut before = 0;
        write_list(out, set, |out, &block| {
            write_signed(out, i64::from(block) - before);
            before = i64::from(block);
        });
    });
    let (mut id, mut offset) = (0, 0);
    write_list(out, &function.blocks, |out, block| {
        write_block(out, id, offset, block);
        id += 1;
        offset = i64::from(block.offset);
    });
}

fn write_list<T>(out: &mut Vec<u8>, list: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    write_unsigned(out, list.len() as u64);
    list.iter().for_each(|item| write(out, item));
}

fn write_block(out: &mut Vec<u8>, id: i64, offset_before: i64, block: &Block) {
    write_unsigned(out, u64::from(block.fragment));
    write_signed(out, i64::from(block.offset) - offset_before);
    write_unsigned(out, u64::from(block.last));
    let flags = [
        (block.entered, ENTERED),
        (block.leaves, LEAVES),
        (block.may_stop, MAY_STOP),
        (block.counted, COUNTED),
        (block.tail_counted, TAIL_COUNTED),
        (block.targets.is_some(), HAS_TARGETS),
        (block.exit.is_some(), HAS_EXIT),
        (!block.sites.is_empty(), HAS_SITES),
    ];
    write_unsigned(out, flags.iter().map(|&(set, flag)| if set { flag } else { 0 }).sum());
    for field in block.targets.iter().chain(&block.exit) {
        write_unsigned(out, u64::from(*field));
    }
    if !block.sites.is_empty() {
        write_unsigned(out, block.sites.len() as u64);
    }
    // Invariant: a block has at most two direct successors.
    write_unsigned(out, (block.calls.len() * 4 + block.successors.len()) as u64);
    for successor in &block.successors {
        let delta = i64::from(successor.block) - id;
        let folded = (delta << 1 ^ delta >> 63) as u64;
        write_unsigned(out, folded << 1 | u64::from(successor.counted));
    }
    let mut before = 0;
    for call in &block.calls {
        write_unsigned(out, u64::from(call.offset - before));
        write_unsigned(out, u64::from(call.callee));
        before = call.offset;
    }
    let mut before = 0;
    for &site in &block.sites {
        write_unsigned(out, u64::from(site - before));
        before = site;
    }
}

fn read_description(reader: &mut Reader) -> Option<Description> {
    let names = read_list(reader, |reader| {
        let len = usize::try_from(reader.unsigned()?).ok()?;
        Some(reader.take(len)?.to_vec())
    })?;
    let count = names.len() as u64;
    let functions = read_list(reader, |reader| read_function(reader, count))?;
    let entries = read_entries(reader, count)?;
    Some(Description { names, functions, entries })
}

fn read_entries(reader: &mut Reader, names: u64) -> Option<Entries> {
    let base = reader.unsigned()?;
    let mut before = 0u64;
    let mut rows = read_list(reader, |reader| {
        let name = read_index(reader, names)?;
        before = before.wrapping_add(reader.signed()? as u64);
        Some(Entry { name, input: before, place: 0 })
    })?;
    for row in &mut rows {
        row.place = u32::from_le_bytes(reader.take(PLACE_BYTES)?.try_into().ok()?);
    }
    Some(Entries { base, rows })
}

/// Reads a list. Each item takes a byte or more, so that no damaged length makes this reserve much.
fn read_list<T>(reader: &mut Reader, mut read: impl FnMut(&mut Reader) -> Option<T>) -> Option<Vec<T>> {
    let len = usize::try_from(reader.unsigned()?).ok().filter(|&len| len <= reader.remaining())?;
    let mut list = Vec::with_capacity(len.min(1 << 16));
    for _ in 0..len {
        list.push(read(reader)?);
    }
    Some(list)
}

/// A number below `limit`.
fn read_index(reader: &mut Reader, limit: u64) -> Option<u32> {
    reader.unsigned().filter(|&index| index < limit)?.try_into().ok()
}

fn read_function(reader: &mut Reader, names: u64) -> Option<Function> {
    let fragments = read_list(reader, |reader| read_index(reader, names))?;
    let target_sets = read_list(reader, |reader| {
        let mut before = 0i64;
        read_list(reader, |reader| {
            before = before.checked_add(reader.signed()?)?;
            u32::try_from(before).ok()
        })
    })?;
    let limits = Limits { names, fragments: fragments.len() as u64, sets: target_sets.len() as u64 };
    let (mut id, mut offset) = (0, 0);
    let blocks = read_list(reader, |reader| {
        let block = read_block(reader, id, offset, &limits)?;
        id += 1;
        offset = i64::from(block.offset);
        Some(block)
    })?;
    let known = |block: u32| (block as usize) < blocks.len();
    let named = target_sets.iter().flatten().copied();
    let mut named = named.chain(blocks.iter().flat_map(|b| b.successors.iter().map(|s| s.block)));
    named.all(known).then_some(Function { fragments, target_sets, blocks })
}

struct Limits {
    names: u64,
    fragments: u64,
    sets: u64,
}

fn read_block(reader: &mut Reader, id: i64, offset_before: i64, limits: &Limits) -> Option<Block> {
    let fragment = read_index(reader, limits.fragments)?;
    let offset = u32::try_from(offset_before.checked_add(reader.signed()?)?).ok()?;
    let last = u32::try_from(reader.unsigned()?).ok()?;
    let flags = reader.unsigned().filter(|&flags| flags < 256)?;
    let has = |flag| flags & flag != 0;
    let targets = if has(HAS_TARGETS) { Some(read_index(reader, limits.sets)?) } else { None };
    let exit = if has(HAS_EXIT) { Some(read_index(reader, limits.names)?) } else { None };
    let site_count = if has(HAS_SITES) { reader.unsigned()? } else { 0 };
    let counts = reader.unsigned()?;
    let mut successors = Vec::new();
    for _ in 0..counts % 4 {
        let value = reader.unsigned()?;
        let folded = value >> 1;
        let delta = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        let block = u32::try_from(id.checked_add(delta)?).ok()?;
        successors.push(Successor { block, counted: value & 1 == 1 });
    }
    let mut calls = Vec::new();
    let mut before = 0u32;
    for _ in 0..counts / 4 {
        before = before.checked_add(u32::try_from(reader.unsigned()?).ok()?)?;
        calls.push(Call { offset: before, callee: read_index(reader, limits.names)? });
    }
    let mut sites = Vec::new();
    let mut before = 0u32;
    for _ in 0..site_count {
        before = before.checked_add(u32::try_from(reader.unsigned()?).ok()?)?;
        sites.push(before);
    }
    Some(Block {
        fragment,
        offset,
        last,
        entered: has(ENTERED),
        leaves: has(LEAVES),
        may_stop: has(MAY_STOP),
        counted: has(COUNTED),
        tail_counted: has(TAIL_COUNTED),
        targets,
        exit,
        successors,
        calls,
        sites,
    })
}

#[cfg(test)]
mod tests;
