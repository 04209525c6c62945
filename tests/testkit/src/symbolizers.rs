//! What symbolizers say of an instruction in a program, and of the same instruction in an output: the function, the calls that a
//! compiler inlined, the file, the line, the column.
//!
//! Which instruction is the same is taken from the output's address map, and from the code of both files: in a piece that was copied,
//! the instructions correspond one by one, up to where the two differ.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afterlink_core::address_map::{self, AddressMap, BlockMap, Reason};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, SectionKind};

/// An instruction in both files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub input: u64,
    pub output: u64,
    /// Behind a cut: not in the part of the function that holds its entry.
    pub is_apart: bool,
    /// Of code that stands for more than one function.
    pub is_folded: bool,
}

/// A command that says what an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbolizer {
    /// Of binutils: everything but columns.
    Addr2line,
    /// Of LLVM.
    Llvm,
    /// Of elfutils.
    Elfutils,
}

/// The kind of differences that debug information has no part in.
pub const SYMBOL: &str = "symbol";

/// The kind of differences in a file's name alone. binutils 2.40 takes the primary file where a table of version 5 relies on the
/// file that tables begin with; afterlink writes tables that say it.
pub const FILE: &str = "file";

/// A place of which something else is said.
#[derive(Clone, Debug)]
pub struct Difference {
    pub place: Place,
    pub input: String,
    pub output: String,
}

/// The executable sections of a file: their addresses, and their bytes.
type Code<'f> = Vec<(u64, &'f [u8])>;

type Elf<'f> = ElfFile64<'f, LittleEndian>;

fn code<'f>(file: &Elf<'f>) -> Code<'f> {
    let code = file.sections().filter(|s| s.kind() == SectionKind::Text);
    code.filter_map(|s| Some((s.address(), s.data().ok()?))).collect()
}

/// The instructions of `size` bytes; none if they are not all there.
fn instructions(code: &Code, start: u64, size: u64) -> Vec<Instruction> {
    let bytes = code.iter().find_map(|(address, bytes)| {
        let from = usize::try_from(start.checked_sub(*address)?).ok()?;
        bytes.get(from..from.checked_add(usize::try_from(size).ok()?)?)
    });
    Decoder::with_ip(64, bytes.unwrap_or_default(), start, DecoderOptions::NONE).into_iter().collect()
}

/// Every instruction of code that was copied, where it was and where it is, by ascending place in the output.
///
/// # Errors
/// A file that cannot be read, or an output without a map.
pub fn places(input: &Path, output: &Path) -> Result<Vec<Place>, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let (old, new) = (read(input)?, read(output)?);
    let parse = |path: &Path, bytes| Elf::parse(bytes).map_err(|e| format!("{}: {e}", path.display()));
    let (old, new) = (parse(input, &*old)?, parse(output, &*new)?);
    let map = new.section_by_name(address_map::SECTION).ok_or("the output has no address map")?;
    let map = AddressMap::decode(map.data().map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let (old, new) = (code(&old), code(&new));
    let folded: BTreeSet<_> = map.functions.iter().filter_map(|f| f.folded_into).collect();
    let mut places = Vec::new();
    for function in &map.functions {
        for (number, fragment) in function.fragments.iter().enumerate() {
            let ends =
                fragment.blocks.iter().skip(1).map(|b| u64::from(b.output_offset)).chain([fragment.size]);
            for (block, end) in fragment.blocks.iter().zip(ends) {
                let start = fragment.output.get() + u64::from(block.output_offset);
                let size = end - u64::from(block.output_offset);
                for (input, output) in pairs(&old, &new, block, start, size) {
                    let is_folded = folded.contains(&function.entry);
                    places.push(Place { input, output, is_apart: number > 0, is_folded });
                }
            }
        }
    }
    places.sort_unstable_by_key(|p| p.output);
    Ok(places)
}

/// The instructions of one piece that correspond.
fn pairs(old: &Code, new: &Code, block: &BlockMap, start: u64, size: u64) -> Vec<(u64, u64)> {
    let (Some(input), Reason::Copied) = (block.input, block.reason) else { return Vec::new() };
    let old = instructions(old, input.get(), u64::from(block.input_size));
    let new = instructions(new, start, size);
    let same = old.iter().zip(&new).take_while(|(a, b)| a.mnemonic() == b.mnemonic());
    // Padding belongs to nobody.
    let same = same.filter(|(a, _)| !matches!(a.mnemonic(), Mnemonic::Nop | Mnemonic::Int3));
    same.map(|(a, b)| (a.ip(), b.ip())).collect()
}

/// So many of them, at even distances.
pub fn sample(places: &[Place], number: usize) -> Vec<Place> {
    let number = number.min(places.len());
    (0..number).map(|i| places[i * places.len() / number]).collect()
}

impl Symbolizer {
    /// What is said of each address. `folder` takes the list of addresses.
    fn answers(self, program: &Path, addresses: &[u64], folder: &Path) -> Result<Vec<String>, String> {
        let list: PathBuf = folder.join("addresses");
        let text: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
        std::fs::write(&list, text).map_err(|e| format!("{}: {e}", list.display()))?;
        let list = File::open(&list).map_err(|e| format!("{}: {e}", list.display()))?;
        let mut command = match self {
            Self::Addr2line => Command::new("addr2line"),
            Self::Llvm => Command::new("llvm-symbolizer-22"),
            Self::Elfutils => Command::new("eu-addr2line"),
        };
        match self {
            Self::Addr2line => command.args(["-a", "-f", "-i", "-e"]).arg(program),
            Self::Elfutils => command.args(["-a", "-f", "-i", "-e"]).arg(program),
            // Linkage names would be those of symbols, of which one place may have several.
            Self::Llvm => command.args(["--inlines", "--functions=short", "-e"]).arg(program),
        };
        let outcome = command.stdin(list).stderr(Stdio::inherit()).output();
        let outcome = outcome.map_err(|e| format!("{self:?}: {e}"))?;
        let text = String::from_utf8_lossy(&outcome.stdout);
        let mut answers: Vec<String> = Vec::new();
        match self {
            Self::Llvm => answers.extend(text.split_terminator("\n\n").map(str::to_owned)),
            Self::Addr2line | Self::Elfutils => {
                for line in text.lines() {
                    match answers.last_mut() {
                        _ if line.starts_with("0x") => answers.push(String::new()),
                        Some(answer) => answer.extend([line, "\n"]),
                        None => return Err(format!("{self:?} begins with {line}")),
                    }
                }
            }
        }
        if answers.len() == addresses.len() {
            Ok(answers)
        } else {
            Err(format!("{self:?}: {} answers to {} addresses", answers.len(), addresses.len()))
        }
    }

    /// The places of which it says something else in the output. `folder` takes its questions.
    ///
    /// # Errors
    /// The command does not run, or does not answer to each address.
    pub fn differences(
        self,
        input: &Path,
        output: &Path,
        places: &[Place],
        folder: &Path,
    ) -> Result<Vec<Difference>, String> {
        let of_input: Vec<u64> = places.iter().map(|p| p.input).collect();
        let of_output: Vec<u64> = places.iter().map(|p| p.output).collect();
        let of_input = self.answers(input, &of_input, folder)?;
        let of_output = self.answers(output, &of_output, folder)?;
        let all = places.iter().zip(of_input).zip(of_output);
        Ok(all
            .filter(|((_, input), output)| input != output)
            .map(|((place, input), output)| Difference { place: *place, input, output })
            .collect())
    }
}

impl Difference {
    /// What is another: what comes of symbols alone; the functions' names; how many calls were inlined; the line; or the file alone.
    ///
    /// Symbols tell a part of a function from the whole (`work.cold`), and that name is taken before debug information's, too. Of code
    /// without lines they are all there is.
    pub fn kind(&self) -> &'static str {
        let (input, output): (Vec<_>, Vec<_>) = (self.input.lines().collect(), self.output.lines().collect());
        if input.len() != output.len() {
            return "inlined calls";
        }
        let names = input.iter().zip(&output).step_by(2);
        let places = input.iter().zip(&output).skip(1).step_by(2);
        let numbers = |text: &str| text.split_once(':').map(|parts| parts.1.to_owned());
        let has_no_lines = |text: &str| text.ends_with(":?") || text.ends_with(":0:0");
        if places.clone().all(|(a, b)| has_no_lines(a) && has_no_lines(b)) {
            return SYMBOL;
        }
        let part = |name: &str| name.strip_suffix(".cold").or(name.strip_suffix(".warm")).map(str::to_owned);
        let whole = |name: &str| part(name).unwrap_or_else(|| name.to_owned());
        let outermost = names.clone().next_back().map(|last| whole(last.0));
        // addr2line names inlined calls by the part's symbol, too.
        let is_part = |name: &str| part(name).is_some() && part(name) == outermost;
        if names.clone().any(|(a, b)| whole(a) != whole(b) && !is_part(b)) {
            "name"
        } else if places.clone().any(|(a, b)| numbers(a) != numbers(b)) {
            "line"
        } else if places.clone().any(|(a, b)| a != b) {
            FILE
        } else {
            SYMBOL
        }
    }
}
