//! Fresh layouts of two programs for an experiment.

use afterlink_bench::experiment::layouts::{AsIs, LayoutSource, PairPaths, PairSeeds};
use afterlink_bench::record::LayoutMode;
use afterlink_core::{Error, Result};
use afterlink_pipeline::{Check, Relayout, Silent, check_pair};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program to be compared: where it is, and all of it.
pub struct Shipped {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// The source of layouts of that mode.
///
/// # Errors
/// If a program has to be rewritten and cannot be.
pub fn source<'a>(mode: LayoutMode, a: &'a Shipped, b: &'a Shipped) -> Result<Box<dyn LayoutSource + 'a>> {
    if mode == LayoutMode::AsIs {
        return Ok(Box::new(AsIs::new(&a.path, &b.path)));
    }
    let relayout = |shipped: &'a Shipped| {
        Relayout::new(&shipped.bytes).map_err(|e| {
            let next = e.next.clone().map(|n| format!("{n}, or ")).unwrap_or_default();
            let e = Error {
                next: Some(format!("{next}measure both files as they are with --layout as-is")),
                ..e
            };
            e.in_file(shipped.path.display())
        })
    };
    Ok(Box::new(Relaid { mode, shipped: [a, b], programs: [relayout(a)?, relayout(b)?], proven: false }))
}

/// Writes both programs anew for each block.
struct Relaid<'a> {
    mode: LayoutMode,
    shipped: [&'a Shipped; 2],
    programs: [Relayout<'a>; 2],
    /// Whether the first pair was held against its inputs. Later ones come about in the same way, and what they
    /// print is compared.
    proven: bool,
}

impl Relaid<'_> {
    fn layout(&self, side: usize, seeds: PairSeeds) -> Result<Vec<u8>> {
        let seed = [seeds.a, seeds.b][side];
        let program = &self.programs[side];
        match self.mode {
            LayoutMode::Jitter => program.jitter(seed),
            _ => program.shuffle(seeds.are_coupled().then_some(&self.programs[1 - side]), seed),
        }
    }
}

impl LayoutSource for Relaid<'_> {
    fn mode(&self) -> LayoutMode {
        self.mode
    }

    fn write_pair(&mut self, _block: u32, seeds: PairSeeds, paths: PairPaths) -> Result<()> {
        for (side, path) in [paths.a, paths.b].into_iter().enumerate() {
            let shipped = self.shipped[side];
            let bytes = self.layout(side, seeds).map_err(|e| e.in_file(shipped.path.display()))?;
            if !self.proven {
                check_pair(&shipped.bytes, &bytes, Check::Prove, &Silent)
                    .map_err(|e| e.in_file(shipped.path.display()))?;
            }
            write(path, &bytes)?;
        }
        self.proven = true;
        Ok(())
    }

    fn shipped(&self) -> PairPaths<'_> {
        PairPaths { a: &self.shipped[0].path, b: &self.shipped[1].path }
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    // Servers are often started as another user.
    let written = std::fs::write(path, bytes)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)));
    written.map_err(|e| {
        Error::new(format!("cannot be written: {e}")).in_file(path.display()).next("give another --work-dir")
    })
}
