//! A program as binutils see it: instructions, functions, local labels and relocations.

use crate::build::print;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// An instruction as `objdump` prints it.
pub struct Line {
    pub mnemonic: String,
    pub operands: String,
}

pub struct Listing {
    pub lines: BTreeMap<u64, Line>,
    /// Functions: name, start, size.
    pub functions: Vec<(String, u64, u64)>,
    /// Local labels, by source and name.
    pub labels: Labels,
    /// Kept relocations of code: place, type, symbol plus addend.
    pub relocations: Vec<(u64, String, u64)>,
}

impl Line {
    /// The last operand as an address.
    pub fn target(&self) -> u64 {
        let last = self.operands.rsplit(", ").next().unwrap();
        u64::from_str_radix(last.split(' ').next().unwrap(), 16).unwrap()
    }

    pub fn is_branch(&self) -> bool {
        self.mnemonic.starts_with("b.") || matches!(self.mnemonic.as_str(), "cbz" | "cbnz" | "tbz" | "tbnz")
    }

    /// Whether control cannot go on behind it.
    pub fn ends(&self) -> bool {
        matches!(self.mnemonic.as_str(), "b" | "br" | "ret" | "retaa")
    }
}

impl Listing {
    pub fn read(program: &Path) -> Self {
        let mut lines = BTreeMap::new();
        for line in print("aarch64-linux-gnu-objdump", &["-d", "-z"], program).lines() {
            let mut parts = line.splitn(4, '\t');
            let address = parts.next().and_then(|a| a.trim().strip_suffix(':')?.parse_hex());
            let (Some(address), Some(word)) = (address, parts.next()) else { continue };
            if word.trim().len() == 8 {
                let mnemonic = parts.next().unwrap_or("").trim().to_owned();
                let operands = parts.next().unwrap_or("").split("//").next().unwrap().trim().to_owned();
                lines.insert(address, Line { mnemonic, operands });
            }
        }
        let (functions, labels) = read_symbols(program);
        Self { lines, functions, labels, relocations: read_relocations(program) }
    }
}

trait ParseHex {
    fn parse_hex(&self) -> Option<u64>;
}

impl ParseHex for str {
    fn parse_hex(&self) -> Option<u64> {
        u64::from_str_radix(self, 16).ok()
    }
}

type Functions = Vec<(String, u64, u64)>;
type Labels = HashMap<(String, String), u64>;

/// `Num: Value Size Type Bind Vis Ndx Name`
fn read_symbols(program: &Path) -> (Functions, Labels) {
    let (mut functions, mut labels) = (Functions::new(), HashMap::new());
    let text = print("aarch64-linux-gnu-readelf", &["-sW"], program);
    let table = text.split("Symbol table '.symtab'").nth(1).unwrap();
    let mut source = String::new();
    for line in table.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, value, size, kind, _, _, section, name, ..] = columns[..] else { continue };
        let Some(value) = value.parse_hex() else { continue };
        if kind == "FILE" {
            source = name.to_owned();
        } else if kind == "FUNC" && section != "UND" && size != "0" {
            // Large sizes are printed in hexadecimal.
            let size = size.strip_prefix("0x").map_or_else(|| size.parse().ok(), ParseHex::parse_hex);
            functions.push((name.to_owned(), value, size.unwrap()));
        } else if name.starts_with(".L") {
            labels.insert((source.clone(), name.to_owned()), value);
        }
    }
    functions.sort_by_key(|f| f.1);
    (functions, labels)
}

/// `Offset Info Type Value Name + Addend`, in the sections for code.
fn read_relocations(program: &Path) -> Vec<(u64, String, u64)> {
    let text = print("aarch64-linux-gnu-readelf", &["-rW"], program);
    let mut relocations = Vec::new();
    let of_code = text.split("Relocation section '").filter(|s| s.starts_with(".rela.text'"));
    for line in of_code.flat_map(str::lines) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [place, _, kind, value, _, sign, addend] = columns[..] else { continue };
        let (Some(place), Some(value), Some(addend)) =
            (place.parse_hex(), value.parse_hex(), addend.parse_hex())
        else {
            continue;
        };
        let sum = if sign == "-" { value.wrapping_sub(addend) } else { value + addend };
        relocations.push((place, kind.to_owned(), sum));
    }
    relocations
}
