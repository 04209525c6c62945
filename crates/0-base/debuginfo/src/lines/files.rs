//! The folders and files that the head of a table of rows names: found, named in another table, and added to it.

#![expect(non_upper_case_globals, reason = "DWARF's own names")]

use super::{Header, Row};
use crate::bytes::{Damaged, Reader, Result, put, write_uleb};
use crate::forms::skip;
use gimli::constants::*;

/// Sections in which heads of version 5 keep their texts.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    pub str: &'a [u8],
    pub line_str: &'a [u8],
}

impl<'a> Texts<'a> {
    /// The text at the reader, of a form that compilers use for it.
    fn read(self, form: DwForm, offset_size: usize, r: &mut Reader<'a>) -> Result<&'a [u8]> {
        let section = match form {
            DW_FORM_string => return r.text(),
            DW_FORM_strp => self.str,
            DW_FORM_line_strp => self.line_str,
            _ => return Err(Damaged),
        };
        let at = r.number(offset_size)?;
        Reader::new(section, usize::try_from(at).map_err(|_| Damaged)?).text()
    }
}

/// Rows of the head: in version 5 of fields by a format, before that ended by a zero.
struct List {
    format: Vec<(u64, DwForm)>,
    /// Where the number of rows stands, in version 5.
    count: (usize, usize),
    /// Where each row starts and ends.
    rows: Vec<(usize, usize)>,
    /// Where rows can be added.
    end: usize,
}

/// What a head names.
pub struct Names<'a> {
    header: &'a Header,
    bytes: &'a [u8],
    /// The folder that the unit was compiled in, as the unit has it.
    compiled_in: &'a [u8],
    texts: Texts<'a>,
    folders: List,
    files: List,
}

/// A file as another head can name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    formats: [Vec<(u64, DwForm)>; 2],
    version_5: bool,
    folder: Vec<u8>,
    /// The folder that both tables must count from, if that is none of a whole path.
    base: Option<Vec<u8>>,
    /// Its row, in front of the number of its folder, and behind it.
    row: [Vec<u8>; 2],
}

/// Rows for the head of a table.
#[derive(Default)]
pub struct Added {
    folders: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
}

impl<'a> Names<'a> {
    pub fn read(
        bytes: &'a [u8],
        header: &'a Header,
        compiled_in: &'a [u8],
        texts: Texts<'a>,
    ) -> Result<Self> {
        let mut r = Reader::new(bytes, header.names);
        let (folders, files) = if header.version >= 5 {
            (new_list(&mut r, header)?, new_list(&mut r, header)?)
        } else {
            let folders = old_list(&mut r, |_| Ok(()))?;
            // Behind the name: the folder, and the time and size of the file.
            (folders, old_list(&mut r, |r| (0..3).try_for_each(|_| r.uleb().map(drop)))?)
        };
        // What else the head has, behind its files, counts from nothing.
        Ok(Self { header, bytes, compiled_in, texts, folders, files })
    }

    fn is_new(&self) -> bool {
        self.header.version >= 5
    }

    fn row(&self, list: &List, row: usize) -> &'a [u8] {
        let (start, end) = list.rows[row];
        &self.bytes[start..end]
    }

    /// A file by its number.
    pub fn file(&self, number: u64) -> Result<File> {
        let number = usize::try_from(number).map_err(|_| Damaged)?;
        let at = if self.is_new() { Some(number) } else { number.checked_sub(1) };
        let (start, end) = *at.and_then(|at| self.files.rows.get(at)).ok_or(Damaged)?;
        let (number, place) = self.folder_number((start, end))?;
        let (folder, base) = self.folder(number)?;
        Ok(File {
            formats: [self.folders.format.clone(), self.files.format.clone()],
            version_5: self.is_new(),
            folder,
            base,
            row: [self.bytes[start..place.0].to_vec(), self.bytes[place.1..end].to_vec()],
        })
    }

    /// The number of a file's folder, and where it stands.
    fn folder_number(&self, row: (usize, usize)) -> Result<(u64, (usize, usize))> {
        let mut r = Reader::new(self.bytes, row.0);
        if !self.is_new() {
            r.text()?;
            let at = r.at;
            return Ok((r.uleb()?, (at, r.at)));
        }
        for &(what, form) in &self.files.format {
            let at = r.at;
            skip(&mut r, form, self.header.offset_size, self.header.version)?;
            if DwLnct(what as u16) == DW_LNCT_directory_index && form == DW_FORM_udata {
                return Ok((Reader::new(self.bytes, at).uleb()?, (at, r.at)));
            }
        }
        Err(Damaged)
    }

    /// A folder's row, as another head can have it, and what both must count from.
    fn folder(&self, number: u64) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        let number = usize::try_from(number).map_err(|_| Damaged)?;
        if !self.is_new() {
            let mut whole = self.compiled_in.to_vec();
            if let Some(own) = number.checked_sub(1) {
                let own = *self.folders.rows.get(own).ok_or(Damaged)?;
                let own = &self.bytes[own.0..own.1 - 1];
                if is_whole(own) {
                    whole.clear();
                } else {
                    whole.push(b'/');
                }
                whole.extend_from_slice(own);
            }
            let base = (!is_whole(&whole)).then(|| self.compiled_in.to_vec());
            whole.push(0);
            return Ok((whole, base));
        }
        if number >= self.folders.rows.len() {
            return Err(Damaged);
        }
        let row = self.row(&self.folders, number);
        let base = (!self.is_whole(row)?).then(|| self.row(&self.folders, 0).to_vec());
        Ok((row.to_vec(), base))
    }

    /// Whether a folder's row names a whole path.
    fn is_whole(&self, row: &'a [u8]) -> Result<bool> {
        let mut r = Reader::new(row, 0);
        for &(what, form) in &self.folders.format {
            if DwLnct(what as u16) == DW_LNCT_path {
                return self.texts.read(form, self.header.offset_size, &mut r).map(is_whole);
            }
            skip(&mut r, form, self.header.offset_size, self.header.version)?;
        }
        Err(Damaged)
    }

    /// The number that a file of another head has here, which may have to be added; none if this head cannot name it.
    pub fn number(&self, file: &File, added: &mut Added) -> Option<u64> {
        if file.version_5 != self.is_new()
            || file.formats != [&self.folders, &self.files].map(|l| l.format.clone())
        {
            return None;
        }
        if let Some(base) = &file.base {
            let own = if self.is_new() { self.row(&self.folders, 0) } else { self.compiled_in };
            if own != base {
                return None;
            }
        }
        let folder = self.folder_of(&file.folder, added);
        let mut row = file.row[0].clone();
        write_uleb(&mut row, folder);
        row.extend_from_slice(&file.row[1]);
        Some(self.place(&self.files, &mut added.files, row))
    }

    fn folder_of(&self, folder: &[u8], added: &mut Added) -> u64 {
        let text = folder.split_last().map_or(folder, |(_, text)| text);
        if !self.is_new() && text == self.compiled_in {
            return 0;
        }
        self.place(&self.folders, &mut added.folders, folder.to_vec())
    }

    /// Where a row is, or is added.
    fn place(&self, list: &List, added: &mut Vec<Vec<u8>>, row: Vec<u8>) -> u64 {
        // gcc names the first file twice, and rows by its second number.
        let own = (0..list.rows.len()).rfind(|&own| self.row(list, own) == row);
        let place = own.unwrap_or_else(|| {
            let known = added.iter().position(|other| *other == row);
            list.rows.len()
                + known.unwrap_or_else(|| {
                    added.push(row);
                    added.len() - 1
                })
        });
        place as u64 + u64::from(!self.is_new())
    }

    /// The head with more rows.
    ///
    /// # Errors
    /// If it has no room for its size.
    pub fn with(&self, added: &Added) -> Result<Vec<u8>> {
        let (mut out, mut at) = (Vec::new(), 0);
        for (list, added) in [(&self.folders, &added.folders), (&self.files, &added.files)] {
            if self.is_new() {
                out.extend_from_slice(&self.bytes[at..list.count.0]);
                write_uleb(&mut out, (list.rows.len() + added.len()) as u64);
                at = list.count.1;
            }
            out.extend_from_slice(&self.bytes[at..list.end]);
            out.extend(added.iter().flatten());
            at = list.end;
        }
        out.extend_from_slice(&self.bytes[at..self.header.program]);
        let size_at = self.header.size_at;
        let size = (out.len() - size_at - self.header.offset_size) as u64;
        if self.header.offset_size == 4 && size > u64::from(u32::MAX) {
            return Err(Damaged);
        }
        put(&mut out, size_at, self.header.offset_size, size);
        Ok(out)
    }
}

fn is_whole(path: &[u8]) -> bool {
    path.starts_with(b"/")
}

fn new_list(r: &mut Reader, header: &Header) -> Result<List> {
    let count = r.u8()?;
    let pair = |r: &mut Reader| {
        let (what, form) = (r.uleb()?, r.uleb()?);
        Ok((what, DwForm(u16::try_from(form).map_err(|_| Damaged)?)))
    };
    let format: Vec<(u64, DwForm)> = (0..count).map(|_| pair(r)).collect::<Result<_>>()?;
    let count_at = r.at;
    let (count, mut rows) = (r.uleb()?, Vec::new());
    let count_at = (count_at, r.at);
    for _ in 0..count {
        let start = r.at;
        for (_, form) in &format {
            skip(r, *form, header.offset_size, header.version)?;
        }
        // Rows of nothing would have no end.
        if r.at == start || r.at > header.program {
            return Err(Damaged);
        }
        rows.push((start, r.at));
    }
    Ok(List { format, count: count_at, rows, end: r.at })
}

fn old_list(r: &mut Reader, rest: impl Fn(&mut Reader) -> Result<()>) -> Result<List> {
    let mut rows = Vec::new();
    loop {
        let start = r.at;
        if r.text()?.is_empty() {
            return Ok(List { format: Vec::new(), count: (0, 0), rows, end: start });
        }
        rest(r)?;
        rows.push((start, r.at));
    }
}

/// Has rows name their files by other numbers.
pub fn rename(rows: &mut [(u64, Row)], numbers: &[(u64, u64)]) {
    for (_, row) in rows {
        if let Some((_, number)) = numbers.iter().find(|(old, _)| *old == row.file) {
            (row.file, row.says_file) = (*number, true);
        }
    }
}
