//! Just enough ELF: the sections of a program, and a file with one section of ours.

/// A section of an ELF file.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    pub address: u64,
    pub file_offset: usize,
    pub bytes: &'a [u8],
}

/// The named section of a 64-bit ELF file.
pub fn section<'a>(file: &'a [u8], wanted: &str) -> Option<Section<'a>> {
    let number = |at: usize, len: usize| {
        file[at..at + len].iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte)) as usize
    };
    let header = |index: usize| number(0x28, 8) + index * number(0x3a, 2);
    let names = number(header(number(0x3e, 2)) + 0x18, 8);
    (0..number(0x3c, 2)).map(header).find_map(|at| {
        let name = &file[names + number(at, 4)..];
        let (offset, size) = (number(at + 0x18, 8), number(at + 0x20, 8));
        (name.starts_with(wanted.as_bytes()) && name[wanted.len()] == 0).then(|| Section {
            address: number(at + 0x10, 8) as u64,
            file_offset: offset,
            bytes: &file[offset..offset + size],
        })
    })
}

/// An x86-64 ELF file with nothing in it but an `.eh_frame`, for readelf to read.
pub fn elf_with_eh_frame(bytes: &[u8], address: u64) -> Vec<u8> {
    let names = b"\0.eh_frame\0.shstrtab\0";
    let names_at = 64 + bytes.len();
    let headers_at = (names_at + names.len()).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend_from_slice(&[3, 0, 62, 0, 1, 0, 0, 0]);
    file.resize(0x28, 0);
    file.extend_from_slice(&(headers_at as u64).to_le_bytes());
    file.extend_from_slice(&[0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
    file.extend_from_slice(bytes);
    file.extend_from_slice(names);
    file.resize(headers_at + 64, 0);
    let sections = [(1u32, 2u64, address, 64, bytes.len()), (11, 0, 0, names_at, names.len())];
    for ((name, flags, address, offset, size), kind) in sections.into_iter().zip([1u32, 3]) {
        file.extend_from_slice(&name.to_le_bytes());
        file.extend_from_slice(&kind.to_le_bytes());
        for word in [flags, address, offset as u64, size as u64, 0, 1, 0] {
            file.extend_from_slice(&word.to_le_bytes());
        }
    }
    file
}
