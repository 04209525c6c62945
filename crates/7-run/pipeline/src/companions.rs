//! Files that belong to a program: debug information that was stripped from it, read beside it and written beside its output.

use afterlink_core::{DebugPart, Error, NoSplitFiles, Output, Result, SplitFiles, Viewed};
use afterlink_image::Image;

/// What is written: a program, and what belongs to it.
pub(crate) struct Outputs<'o> {
    pub program: &'o mut dyn Output,
    pub debug: Option<DebugFile<'o>>,
    pub beside: Option<Beside<'o>>,
}

/// Files that hold the entries of units (`.dwo`, `.dwp`): those of the program, and what is written of them.
pub struct Beside<'o> {
    pub files: &'o dyn SplitFiles,
    /// A package, or files of one unit each, one behind the other.
    pub out: &'o mut dyn Output,
    /// Where these files are.
    pub parts: &'o mut Vec<DebugPart>,
}

/// A debug file, and the one that is to be made of it.
pub struct DebugFile<'o> {
    pub input: Viewed<'o>,
    pub out: &'o mut dyn Output,
    /// What the new one is called, without a folder: the output names it so.
    pub name: &'o str,
}

/// The debug files of a program and of what became of it, to be proven with them.
#[derive(Clone, Copy)]
pub struct DebugPair<'p> {
    pub input: Viewed<'p>,
    pub output: Viewed<'p>,
    /// What the output's is called.
    pub name: &'p str,
}

impl<'o> Outputs<'o> {
    /// What finds the entries of units in other files.
    pub fn files(&self) -> &'o dyn SplitFiles {
        self.beside.as_ref().map_or(&NoSplitFiles, |beside| beside.files)
    }

    /// The debug file as it is now.
    pub fn debug_pair<'d>(debug: &'d mut Option<DebugFile<'_>>) -> Result<Option<DebugPair<'d>>> {
        let Some(debug) = debug else { return Ok(None) };
        Ok(Some(DebugPair { input: debug.input, output: debug.out.bytes()?, name: debug.name }))
    }
}

/// # Errors
/// If it is not the debug file of `program`, or the program needs none.
pub(crate) fn check(program: &Image, debug: &DebugFile) -> Result<()> {
    let file = Image::parse_debug_file(debug.input.bytes()).map_err(|e| e.at("the debug file"))?;
    if program.debug_section(".debug_info").is_some() {
        return Err(Error::new("the program has debug information in itself")
            .at(".debug_info")
            .next("leave out --debug-file, or strip the program (strip --strip-debug)"));
    }
    if file.debug_section(".debug_info").is_none() {
        return Err(Error::new("the debug file has no debug information")
            .at(".debug_info")
            .next("give the file that was made by objcopy --only-keep-debug or eu-strip -f"));
    }
    let refuse = |what: String| {
        Err(Error::new(what).at("the debug file").next("give the one that was made of this very program"))
    };
    if program.build_id != file.build_id {
        return refuse("it is another program's debug file: their build-ids differ".into());
    }
    if program.build_id.is_empty() {
        let Some(link) = program.debug_link() else {
            return Err(Error::new("the program has no build-id and names no debug file (.gnu_debuglink)")
                .at("the debug file")
                .next("name it with objcopy --add-gnu-debuglink, or link with -Wl,--build-id"));
        };
        let checksum = crc32fast::hash(debug.input.bytes());
        if link.checksum != checksum {
            let what = "it is not the debug file that the program names";
            return refuse(format!("{what}: its CRC is {checksum:08x}, not {:08x}", link.checksum));
        }
    }
    Ok(())
}
