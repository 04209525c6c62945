//! The decoder of AArch64 against binutils: libraries of the cross compiler and random words are disassembled by
//! `aarch64-linux-gnu-objdump`, and both must say the same of every word: whether it is an instruction, what it does to control
//! and to where, and what its operand names. `AFTERLINK_AARCH64_FILES` may name further files.

use afterlink_isa::{Access, Arch, Flow, Inst};
use rand::{RngExt, SeedableRng};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A word as objdump prints it.
struct Line {
    address: u64,
    word: u32,
    mnemonic: String,
    operands: String,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, '\t');
        let address = parts.next()?.trim().strip_suffix(':')?;
        let word = parts.next()?.trim();
        let operands = |text: &str| text.split("//").next().unwrap_or("").trim().to_owned();
        (word.len() == 8).then_some(())?;
        Some(Self {
            address: u64::from_str_radix(address, 16).ok()?,
            word: u32::from_str_radix(word, 16).ok()?,
            mnemonic: parts.next()?.trim().to_owned(),
            operands: operands(parts.next().unwrap_or("")),
        })
    }

    fn is_undefined(&self) -> bool {
        self.mnemonic == ".inst" || self.operands.contains("undefined")
    }

    /// The last operand, as an address.
    fn target(&self) -> u64 {
        let last = self.operands.rsplit(", ").next().unwrap_or("");
        let number = last.split(' ').next().unwrap_or("").trim_start_matches("0x");
        u64::from_str_radix(number, 16).unwrap_or_else(|_| panic!("{:#x}: {}", self.address, self.operands))
    }
}

/// What happens to control, without the numbers.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Next,
    Jump,
    Branch,
    Call,
    IndirectJump,
    IndirectCall,
    Return,
    Fault,
}

fn kind(flow: Flow) -> Kind {
    match flow {
        Flow::Next => Kind::Next,
        Flow::Jump(_) => Kind::Jump,
        Flow::Branch(..) => Kind::Branch,
        Flow::Call(_) => Kind::Call,
        Flow::IndirectJump => Kind::IndirectJump,
        Flow::IndirectCall => Kind::IndirectCall,
        Flow::Return => Kind::Return,
        Flow::Fault => Kind::Fault,
        other => panic!("{other:?} is not AArch64's"),
    }
}

fn expected(line: &Line) -> Kind {
    match line.mnemonic.as_str() {
        "b" | "b.al" | "b.nv" | "bc.al" | "bc.nv" => Kind::Jump,
        "bl" => Kind::Call,
        "cbz" | "cbnz" | "tbz" | "tbnz" => Kind::Branch,
        m if m.starts_with("b.") || m.starts_with("bc.") => Kind::Branch,
        "br" | "braa" | "brab" | "braaz" | "brabz" => Kind::IndirectJump,
        "blr" | "blraa" | "blrab" | "blraaz" | "blrabz" => Kind::IndirectCall,
        "ret" if !line.operands.is_empty() => Kind::IndirectJump,
        "ret" | "retaa" | "retab" => Kind::Return,
        "brk" | "hlt" | "udf" | "eret" | "eretaa" | "eretab" | "drps" | "dcps1" | "dcps2" | "dcps3" => {
            Kind::Fault
        }
        _ => Kind::Next,
    }
}

/// What does not agree.
fn difference(line: &Line, inst: &Inst) -> Option<String> {
    let (found, wanted) = (kind(inst.flow), expected(line));
    if found != wanted {
        return Some(format!("{found:?}, not {wanted:?}"));
    }
    let end = line.address + u64::from(inst.len);
    let mut named = inst.flow.displacement().map(|d| end.wrapping_add(d as u64));
    let mut reference = match wanted {
        Kind::Jump | Kind::Branch | Kind::Call => Some(line.target()),
        _ => None,
    };
    if let Some(field) = inst.flow_field {
        let read = field.encoding.read(&line.word.to_le_bytes(), line.address);
        assert_eq!(read, named, "the field and the displacement agree");
    }
    // Not those with a base, nor SVE's `adr`.
    let names = matches!(line.mnemonic.as_str(), "adr" | "adrp" | "ldr" | "ldrsw" | "prfm")
        && !line.operands.contains('[');
    match inst.operand {
        Some(operand) if operand.base.is_none() => named = Some(operand.target(end)),
        Some(operand) => {
            let memory = line.operands.split('[').next_back().unwrap_or("").trim_end_matches(']');
            let number = memory.split_once('#').map_or("0", |(_, number)| number);
            let number = number
                .strip_prefix("0x")
                .map_or_else(|| number.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
            (named, reference) = (Some(operand.target(end)), number);
            let stores = line.mnemonic.starts_with("str");
            assert_eq!(stores, operand.access == Access::Store, "{} {}", line.mnemonic, line.operands);
        }
        None => {}
    }
    if names {
        reference = Some(line.target());
    }
    let nop = line.mnemonic == "nop";
    (named != reference || nop != inst.nop)
        .then(|| format!("{named:x?}, not {reference:x?}, nop {}", inst.nop))
}

#[derive(Default, Debug)]
struct Counts {
    words: u64,
    differences: Vec<String>,
    /// Instructions to objdump only.
    missed: Vec<String>,
    /// Instructions to the decoder only, and whether one changes control.
    extra: u64,
}

fn compare(arguments: &[&str]) -> Counts {
    let mut objdump = Command::new("aarch64-linux-gnu-objdump")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("install binutils-aarch64-linux-gnu, or run ./test.sh");
    let mut counts = Counts::default();
    for line in BufReader::new(objdump.stdout.take().unwrap()).lines() {
        let Some(line) = Line::parse(&line.unwrap()) else { continue };
        counts.words += 1;
        let text = format!("{:#x}: {:08x} {} {}", line.address, line.word, line.mnemonic, line.operands);
        match (Arch::Aarch64.decode(&line.word.to_le_bytes()), line.is_undefined()) {
            (None, true) => {}
            (None, false) => counts.missed.push(text),
            (Some(inst), true) => {
                counts.extra += 1;
                if inst.flow != Flow::Next {
                    counts.differences.push(format!("{text}: undefined, not {:?}", inst.flow));
                }
            }
            (Some(inst), false) => {
                if let Some(difference) = difference(&line, &inst) {
                    counts.differences.push(format!("{text}: {difference}"));
                }
            }
        }
    }
    assert!(objdump.wait().unwrap().success());
    assert!(counts.words > 1000, "{arguments:?}");
    counts.differences.truncate(20);
    counts
}

#[test]
fn real_code() {
    let libraries = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libasan.so.8"];
    let mut files: Vec<String> =
        libraries.iter().map(|name| format!("/usr/aarch64-linux-gnu/lib/{name}")).collect();
    let more = std::env::var("AFTERLINK_AARCH64_FILES").unwrap_or_default();
    files.extend(more.split_whitespace().map(str::to_owned));
    for file in files {
        let counts = compare(&["-d", &file]);
        println!("{file}: {} words, {} missed, {} extra", counts.words, counts.missed.len(), counts.extra);
        assert!(counts.differences.is_empty(), "{file}: {:#?}", counts.differences);
        // Tables in code whose numbers are instructions with reserved bits.
        assert!(counts.missed.len() as u64 <= counts.words / 1000, "{file}: {:#?}", counts.missed);
    }
}

#[test]
fn random_words() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    // A random word is a branch or an exception too seldom: the other half has their top bits.
    let tops =
        [0x14u32, 0x34, 0x36, 0x54, 0x94, 0xb4, 0xb7, 0xd4, 0xd5, 0xd6, 0xd7, 0x00, 0x10, 0x58, 0x91, 0xf9];
    let bytes: Vec<u8> = (0..400_000)
        .flat_map(|i| {
            let word: u32 = rng.random();
            let top = tops[i / 2 % tops.len()] << 24;
            let sparse = word & rng.random::<u32>() | if i % 4 == 1 { 0x1f_0000 } else { 0 };
            if i % 2 == 0 { word } else { top | sparse & 0xff_ffff }.to_le_bytes()
        })
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let path = file.path().to_str().unwrap();
    let counts = compare(&["-D", "-b", "binary", "-m", "aarch64", path]);
    println!("{} words, {} missed, {} extra", counts.words, counts.missed.len(), counts.extra);
    assert!(counts.differences.is_empty(), "{:#?}", counts.differences);
    // Loads, stores and products whose reserved bits are not as they should be; and `psel`, of SVE.
    let reserved = |m: &str| m.starts_with("ld") || m.starts_with("st") || m.ends_with("mulh") || m == "psel";
    let missed = counts.missed.iter().find(|text| !reserved(text.split(' ').nth(2).unwrap_or("")));
    assert_eq!(missed, None);
}
