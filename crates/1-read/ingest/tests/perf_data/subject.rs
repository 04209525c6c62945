//! The program of these tests, what it does as branches, and reading a recording of it.

use crate::writer::{Recording, Sample};
use afterlink_image::Image;
use afterlink_ingest::{Program, Reading, read_of};
use afterlink_profile::fdata;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Offsets: the call at 5, the loop's jump at c, the end at 15; in `work` the jump at 3, what it jumps over at 5, the return at 7.
const SOURCE: &str = "
        .globl _start
        .type _start, @function
_start: mov $1000, %ecx
1:      call work
        dec %ecx
        jne 1b
        mov $60, %eax
        syscall
        .size _start, . - _start
        .p2align 4
        .type work, @function
work:   test $1, %cl
        je 2f
        nop
        nop
2:      ret
        .size work, . - work
        .p2align 4
        .globl other
        .type other, @function
other:  nop
        ret
        .size other, . - other
        .section .note.GNU-stack, \"\", @progbits
";

/// How it is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Fixed,
    Pie,
    SharedObject,
}

/// A program on disk, removed in the end.
pub struct Subject {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    /// Start, size and file offset of its code in memory.
    pub mapping: (u64, u64, u64),
    /// Where its functions are in memory.
    pub start: u64,
    pub work: u64,
}

impl Subject {
    pub fn new(link: Link) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("subject.s");
        std::fs::write(&source, SOURCE).unwrap();
        let path = folder.path().join("subject");
        let options: &[&str] = match link {
            Link::Fixed => &["-no-pie", "-static"],
            Link::Pie => &["-pie", "-Wl,--no-dynamic-linker"],
            Link::SharedObject => &["-shared"],
        };
        let mut gcc = Command::new("gcc");
        gcc.args(options).args(["-nostdlib", "-Wl,-q", "-Wl,--build-id=sha1", "-o"]).arg(&path).arg(&source);
        assert!(gcc.status().expect("gcc").success());
        let bytes = std::fs::read(&path).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let bias = if link == Link::Fixed { 0 } else { 0x5555_0000_0000 };
        let code = image.segments.iter().find(|s| s.kind == 1 && s.flags & 1 != 0).unwrap();
        let mapping = (code.address.get() + bias, code.file_size.next_multiple_of(4096), code.offset.get());
        let address =
            |name: &str| image.symbols.iter().find(|s| s.name() == name).unwrap().address.get() + bias;
        let (start, work) = (address("_start"), address("work"));
        Self { folder, path, bytes, mapping, start, work }
    }

    pub fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn build_id(&self) -> Vec<u8> {
        Image::parse(&self.bytes).unwrap().build_id.to_vec()
    }

    /// All taken branches of so many rounds of its loop, the oldest first.
    pub fn branches(&self, rounds: u64) -> Vec<(u64, u64, u64)> {
        let (s, w) = (self.start, self.work);
        let mut all = Vec::new();
        for ecx in (1..=rounds).rev() {
            all.push((s + 5, w, 2));
            if ecx & 1 == 0 {
                all.push((w + 3, w + 7, 1));
            }
            all.push((w + 7, s + 10, 2));
            if ecx > 1 {
                all.push((s + 12, s + 5, 2));
            }
        }
        all
    }

    /// Samples with stacks of the last 32 of them, one for each 32.
    pub fn record_stacks(&self, recording: &mut Recording, rounds: u64) {
        for (i, part) in (1u64..).zip(self.branches(rounds).chunks(32)) {
            let branches: Vec<_> = part.iter().rev().copied().collect();
            recording.sample(&Sample {
                ip: branches[0].1,
                pid: 5,
                time: 1000 + i,
                branches,
                ..Sample::default()
            });
        }
    }

    /// Reads a recording of it.
    pub fn read(&self, file: &[u8]) -> afterlink_core::Result<Reading> {
        self.read_as(file, &self.path)
    }

    /// The same of a copy of it.
    pub fn read_as(&self, file: &[u8], path: &Path) -> afterlink_core::Result<Reading> {
        let image = Image::parse(&self.bytes).unwrap();
        let program = Program::new(&image, path).unwrap();
        read_of(file.into(), Some(&program))
    }

    /// What comes of it, as text.
    #[track_caller]
    pub fn fdata(&self, file: &[u8]) -> String {
        text(&self.read(file).unwrap_or_else(|e| panic!("{e}")))
    }
}

pub fn text(reading: &Reading) -> String {
    let mut text = Vec::new();
    fdata::write(&reading.profile, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}
