//! File header and program headers.

use crate::{LE, elf, slice};
use afterlink_core::{Error, FileOffset, InputAddr, Result};
use afterlink_isa::Arch;
use object::LittleEndian;

pub(crate) type FileHeader = elf::FileHeader64<LittleEndian>;

/// A program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `PT_*`.
    pub kind: u32,
    /// `PF_*`.
    pub flags: u32,
    pub offset: FileOffset,
    pub address: InputAddr,
    /// `p_paddr`, which nobody reads.
    pub physical_address: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory; those past `file_size` are zero.
    pub memory_size: u64,
    pub alignment: u64,
}

impl Segment {
    pub fn end(&self) -> InputAddr {
        self.address + self.memory_size
    }
}

/// Checks that this is a file for us and returns its header.
pub(crate) fn read(bytes: &[u8]) -> Result<&FileHeader> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(Error::new("not an ELF file").next("give a linked Linux program"));
    }
    let ident = |at: usize| bytes.get(at).copied().unwrap_or(0);
    if bytes.len() > 4 && ident(4) != elf::ELFCLASS64.0 {
        return Err(
            Error::new("a 32-bit program; only 64-bit x86-64 is supported").next("build it with -m64")
        );
    }
    if bytes.len() > 5 && ident(5) != elf::ELFDATA2LSB.0 {
        return Err(Error::new("a big-endian program; only x86-64 is supported").next("build it for x86-64"));
    }
    let raw = slice(bytes, 0, size_of::<FileHeader>() as u64, "ELF header")?;
    let (header, _) = object::pod::from_bytes::<FileHeader>(raw).expect("the slice has the header's size");
    arch(header)?;
    match header.e_type.get(LE) {
        elf::ET_EXEC | elf::ET_DYN => Ok(header),
        elf::ET_REL => Err(Error::new("an object file, not a linked program").next("link it first")),
        elf::ET_CORE => Err(Error::new("a core dump, not a program").next("give the program itself")),
        other => Err(Error::new(format!("ELF type {} is no program", other.0)).next("give a linked program")),
    }
}

/// The instruction set of the program.
///
/// # Errors
/// If it is one that cannot be read.
pub(crate) fn arch(header: &FileHeader) -> Result<Arch> {
    let machine = header.e_machine.get(LE);
    let name = match machine {
        elf::EM_X86_64 => return Ok(Arch::X86_64),
        elf::EM_AARCH64 => return Ok(Arch::Aarch64),
        elf::EM_RISCV => " (RISC-V)",
        elf::EM_PPC64 => " (PowerPC)",
        elf::EM_386 => " (i386)",
        _ => "",
    };
    Err(Error::new(format!("built for machine {}{name}; only x86-64 is supported", machine.0))
        .next("build it for x86-64"))
}

pub(crate) fn segments(bytes: &[u8], header: &FileHeader) -> Result<Vec<Segment>> {
    let segments = segments_of_debug_file(bytes, header)?;
    check(bytes, &segments)?;
    Ok(segments)
}

/// The same of a file that holds a program's debug information, and none of what its segments load.
pub(crate) fn segments_of_debug_file(bytes: &[u8], header: &FileHeader) -> Result<Vec<Segment>> {
    let count = u64::from(header.e_phnum.get(LE));
    let size = size_of::<elf::ProgramHeader64<LittleEndian>>() as u64;
    if count > 0 && u64::from(header.e_phentsize.get(LE)) != size {
        return Err(damaged("program headers have an unknown size"));
    }
    let raw = slice(bytes, header.e_phoff.get(LE), count * size, "program headers")?;
    let (rows, _) = object::pod::slice_from_bytes::<elf::ProgramHeader64<LittleEndian>>(raw, count as usize)
        .expect("the slice has the table's size");
    let segment = |p: &elf::ProgramHeader64<LittleEndian>| Segment {
        kind: p.p_type.get(LE).0,
        flags: p.p_flags.get(LE).0,
        offset: FileOffset(p.p_offset.get(LE)),
        address: InputAddr(p.p_vaddr.get(LE)),
        physical_address: p.p_paddr.get(LE),
        file_size: p.p_filesz.get(LE),
        memory_size: p.p_memsz.get(LE),
        alignment: p.p_align.get(LE),
    };
    Ok(rows.iter().map(segment).collect())
}

/// Loaded segments must lie in the file, ascend without overlap, and stay in user addresses, so that later
/// stations may add to addresses without fear of overflow.
fn check(bytes: &[u8], segments: &[Segment]) -> Result<()> {
    const USER_END: u64 = 1 << 47;
    let mut end = 0;
    for s in segments.iter().filter(|s| s.kind == elf::PT_LOAD.0) {
        slice(bytes, s.offset.get(), s.file_size, "segment")?;
        if s.file_size > s.memory_size || s.address.get() >= USER_END || s.memory_size >= USER_END {
            return Err(damaged("a segment's sizes contradict each other").at(s.address));
        }
        if s.address.get() < end {
            return Err(damaged("loaded segments overlap or are not in order").at(s.address));
        }
        end = s.address.get() + s.memory_size;
    }
    if end == 0 {
        return Err(Error::new("the file has no loaded segment").next("give a linked program"));
    }
    Ok(())
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::new(what).next("the file is damaged: link it again, or if a tool changed it (patchelf, objcopy), let that change the output instead")
}
