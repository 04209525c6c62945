//! The unwind table of a file: where it stands, and its entries as they are written.

use afterlink_image::{Image, elf};
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindSection,
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

    /// Where the entries of code that is there stand in the table. Parsed they would take thirty times as much.
    /// With them, where their language data start, ascending.
    pub fn entries(&self) -> gimli::Result<(Vec<usize>, Vec<u64>)> {
        let mut common = CommonEntries::default();
        let (mut found, mut data) = (Vec::new(), Vec::new());
        let mut work = 0;
        let mut entries = self.frame.entries(&self.bases);
        while let Some(entry) = entries.next()? {
            let CieOrFde::Fde(partial) = entry else { continue };
            let entry = partial.parse(|frame, bases, offset| common.at(frame, bases, offset))?;
            // A damaged table could make every small entry repeat a huge common part.
            work += entry.cie().entry_len();
            if work > limit(self.bytes.len()) {
                return Err(gimli::Error::TooManyRegisterRules);
            }
            // Linkers leave entries of dropped functions with an empty range or at address zero.
            if entry.len() > 0 && entry.initial_address() > 0 {
                found.push(entry.offset());
                data.extend(entry.lsda().and_then(|pointer| pointer.direct().ok()));
            }
        }
        data.sort_unstable();
        Ok((found, data))
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
