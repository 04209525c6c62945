//! What could be done with a program, without doing it.

use crate::report::{RefusalCount, refusals, write_refusals};
use afterlink_core::{Error, Result};
use afterlink_image::{Image, LinkKind};
use afterlink_program::Program;
use afterlink_weigh::Weights;
use std::fmt;

/// The report of `info`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Survey {
    /// The instruction set.
    pub processor: &'static str,
    /// Whether programs for it are rewritten; others are only read.
    #[serde(skip)]
    is_written: bool,
    pub link_kind: LinkKind,
    pub build_id: String,
    /// What keeps the program from being rewritten, with the next step; absent if nothing does.
    pub obstacle: Option<String>,
    pub functions: usize,
    /// Functions that can be moved, and their bytes of code beside all.
    pub movable_functions: usize,
    pub movable_bytes: u64,
    pub code_bytes: u64,
    pub blocks: usize,
    pub jump_tables: usize,
    pub refused: Vec<RefusalCount>,
}

/// Looks over `input`.
///
/// # Errors
/// If it is no program that can be read.
pub fn survey(input: &[u8]) -> Result<Survey> {
    let image = Image::parse(input)?;
    let program = afterlink_recover::recover(&image)?;
    let functions = || program.functions.iter().map(|(_, f)| f);
    let movable = || functions().filter(|f| f.refusal.is_none());
    Ok(Survey {
        processor: image.arch.name(),
        is_written: image.arch.is_written(),
        link_kind: image.link_kind,
        build_id: image.build_id.iter().map(|b| format!("{b:02x}")).collect(),
        obstacle: obstacle(&image, &program).map(|e| e.to_string()),
        functions: program.functions.len(),
        movable_functions: movable().count(),
        movable_bytes: movable().map(|f| f.size()).sum(),
        code_bytes: functions().map(|f| f.size()).sum(),
        blocks: functions().map(|f| f.blocks.len()).sum(),
        jump_tables: functions().map(|f| f.jump_tables.len()).sum(),
        refused: refusals(&program, &Weights::default()),
    })
}

/// What keeps the program from being rewritten.
fn obstacle(image: &Image, program: &Program) -> Option<Error> {
    let has_unwind_entries = !program.eh_frame.fdes.is_empty();
    let room = || afterlink_emit::require_room(image, has_unwind_entries);
    image.require_rewritable().and_then(|()| room()).err()
}

impl Survey {
    /// What was recovered of a program that is only read.
    fn write_recovered(&self, f: &mut fmt::Formatter<'_>, obstacle: &str) -> fmt::Result {
        writeln!(f, "processor    {}", self.processor)?;
        writeln!(f, "rewritable   no: {obstacle}")?;
        let understood = self.movable_functions;
        writeln!(f, "functions    {understood} of {} are understood", self.functions)?;
        write_refusals(f, &self.refused)?;
        write!(f, "blocks       {}, jump tables {}", self.blocks, self.jump_tables)
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.link_kind {
            LinkKind::Pie => "position-independent executable",
            LinkKind::StaticPie => "static position-independent executable",
            LinkKind::Dynamic => "executable at fixed addresses",
            LinkKind::Static => "static executable at fixed addresses",
            LinkKind::SharedObject => "shared object",
        };
        writeln!(f, "program      {kind}")?;
        if !self.build_id.is_empty() {
            writeln!(f, "build-id     {}", self.build_id)?;
        }
        match &self.obstacle {
            Some(obstacle) if self.is_written => return write!(f, "rewritable   no: {obstacle}"),
            Some(obstacle) => return self.write_recovered(f, obstacle),
            None => writeln!(f, "rewritable   yes")?,
        }
        let share = 100.0 * self.movable_bytes as f64 / self.code_bytes.max(1) as f64;
        writeln!(
            f,
            "functions    {} of {} can be moved ({share:.2} % of {} bytes of code)",
            self.movable_functions, self.functions, self.code_bytes
        )?;
        write_refusals(f, &self.refused)?;
        write!(f, "blocks       {}, jump tables {}", self.blocks, self.jump_tables)
    }
}
