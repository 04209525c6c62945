//! The unwind table of a file: where it stands, and its entries as they are written.

use crate::unwind::records::{self, Record};
use afterlink_image::{Image, elf};
use gimli::{
    BaseAddresses, CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, ParsedEhFrameHdr, UnwindSection,
};
use rustc_hash::FxHashMap;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Entry<'a> = FrameDescriptionEntry<Slice<'a>>;

/// Where a file's unwind table starts: where its search table says, or its section.
pub(crate) fn address(image: &Image) -> Option<u64> {
    let named = image.section_named(".eh_frame").map(|id| image.sections[id].address.get());
    match search_table(image) {
        Some((bytes, bases)) => {
            let header = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok();
            header.and_then(|h| h.eh_frame_ptr().direct().ok()).or(named)
        }
        None => named,
    }
}

pub(crate) fn search_table<'a>(image: &Image<'a>) -> Option<(&'a [u8], BaseAddresses)> {
    let segment = image.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME.0)?;
    let start = usize::try_from(segment.offset.get()).ok()?;
    let size = usize::try_from(segment.file_size).ok()?;
    let bytes = image.bytes.get(start..start.checked_add(size)?)?;
    Some((bytes, BaseAddresses::default().set_eh_frame_hdr(segment.address.get())))
}

/// The rows of a search table: where code starts, and its entry. None without one, or if its head is unknown.
pub(crate) fn search_rows(image: &Image) -> gimli::Result<Vec<(u64, u64)>> {
    let Some((bytes, bases)) = search_table(image) else { return Ok(Vec::new()) };
    let Ok(header) = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8) else { return Ok(Vec::new()) };
    rows_of(&header, &bases)
}

/// The rows of a table: where code starts, and its entry.
pub(crate) fn rows_of(
    header: &ParsedEhFrameHdr<gimli::EndianSlice<LittleEndian>>,
    bases: &BaseAddresses,
) -> gimli::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let Some(table) = header.table() else { return Ok(found) };
    let mut rows = table.iter(bases);
    while let Some((start, entry)) = rows.next()? {
        found.push((start.pointer(), entry.pointer()));
    }
    Ok(found)
}

/// The letters of augmentations that x86-64's unwinders know.
const KNOWN: &[u8] = b"zLPRS";

pub(crate) struct Table<'a> {
    pub frame: EhFrame<Slice<'a>>,
    pub bases: BaseAddresses,
    /// Where the table stands.
    pub address: u64,
    /// From `address` on.
    pub bytes: &'a [u8],
}

impl<'a> Table<'a> {
    /// The table that stands at `address`, up to the end of its section.
    pub fn at(image: &Image<'a>, address: u64) -> Option<Self> {
        let id = image.section_at(afterlink_core::InputAddr(address))?;
        let section = &image.sections[id];
        let bytes = image.section_bytes(id);
        let bytes = bytes.get((address - section.address.get()) as usize..).unwrap_or(&[]);
        Some(Self { frame: EhFrame::new(bytes, LittleEndian), bases: bases(image, address), address, bytes })
    }

    /// Where the entries of code that is there stand in the table, which ends at the first terminator at or behind `end_from`. Parsed they would take thirty times as much.
    pub fn entries(&self, end_from: u64) -> gimli::Result<Entries<'a>> {
        let mut common = CommonEntries::default();
        let mut found = Entries::default();
        let mut unknown: FxHashMap<usize, Record> = FxHashMap::default();
        let mut work = 0;
        let end_from = usize::try_from(end_from.saturating_sub(self.address)).unwrap_or(usize::MAX);
        for record in records::records(self.bytes, end_from) {
            let record = record?;
            let Some(at) = record.common() else {
                if self.is_unknown(&record) {
                    unknown.insert(record.offset, record);
                } else {
                    self.frame.cie_from_offset(&self.bases, record.offset.into())?;
                }
                continue;
            };
            if let Some(common) = at.and_then(|at| unknown.get(&at)) {
                found.foreign.push((record, *common));
                continue;
            }
            let find = |frame: &_, bases: &_, offset| common.at(frame, bases, offset);
            let entry = self.frame.fde_from_offset(&self.bases, record.offset.into(), find)?;
            // A damaged table could make every small entry repeat a huge common part.
            work += entry.cie().entry_len();
            if work > limit(self.bytes.len()) {
                return Err(gimli::Error::TooManyRegisterRules);
            }
            // Linkers leave entries of dropped functions with an empty range or at address zero.
            if entry.len() > 0 && entry.initial_address() > 0 {
                found.offsets.push(entry.offset());
                found.starts.push(entry.initial_address());
                found.data.extend(entry.lsda().and_then(|pointer| pointer.direct().ok()));
            }
        }
        found.data.sort_unstable();
        Ok(found)
    }

    /// Whether nobody knows how to read a common entry.
    fn is_unknown(&self, common: &Record) -> bool {
        let version = common.body.get(4);
        let letters = common.body.get(5..).unwrap_or(&[]).split(|&byte| byte == 0).next().unwrap_or(&[]);
        let has_others =
            !letters.is_empty() && letters[0] != b'z' || letters.iter().any(|l| !KNOWN.contains(l));
        let parsed = self.frame.cie_from_offset(&self.bases, common.offset.into());
        has_others || version.is_some() && matches!(parsed, Err(gimli::Error::UnknownVersion(_)))
    }

    /// The entries that stand there.
    pub fn parse(&self, offsets: &[usize]) -> gimli::Result<Vec<Entry<'a>>> {
        let mut common = CommonEntries::default();
        let parse = |&offset: &usize| {
            let find = |frame: &_, bases: &_, offset| common.at(frame, bases, offset);
            self.frame.fde_from_offset(&self.bases, offset.into(), find)
        };
        offsets.iter().map(parse).collect()
    }
}

/// What stands in a table.
#[derive(Default)]
pub(crate) struct Entries<'a> {
    /// Where the entries stand, and where their code starts.
    pub offsets: Vec<usize>,
    pub starts: Vec<u64>,
    /// Where their language data start, ascending.
    pub data: Vec<u64>,
    /// Entries that nobody knows how to read, with their common entries.
    pub foreign: Vec<(Record<'a>, Record<'a>)>,
}

/// Common entries that were parsed already.
#[derive(Default)]
struct CommonEntries<'a> {
    known: FxHashMap<usize, CommonInformationEntry<Slice<'a>>>,
}

impl<'a> CommonEntries<'a> {
    fn at(
        &mut self,
        frame: &EhFrame<Slice<'a>>,
        bases: &BaseAddresses,
        offset: EhFrameOffset,
    ) -> gimli::Result<CommonInformationEntry<Slice<'a>>> {
        if let Some(entry) = self.known.get(&offset.0) {
            return Ok(entry.clone());
        }
        let entry = frame.cie_from_offset(bases, offset)?;
        self.known.insert(offset.0, entry.clone());
        Ok(entry)
    }
}

/// The input's `.text`, in an output that has another.
const INPUT_TEXT: &str = ".text.input";

fn bases(image: &Image, frame: u64) -> BaseAddresses {
    let start = |name: &str| image.section_named(name).map_or(0, |id| image.sections[id].address.get());
    let header = image.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME.0);
    BaseAddresses::default()
        .set_eh_frame(frame)
        .set_eh_frame_hdr(header.map_or(0, |s| s.address.get()))
        .set_text(start(if image.section_named(INPUT_TEXT).is_some() { INPUT_TEXT } else { ".text" }))
        .set_got(start(".got"))
}

/// Bytes that following so many bytes of entries may cost; real ones need a tenth of it.
pub(crate) fn limit(size: usize) -> usize {
    (size + 4096) * 512
}
