//! Fresh layouts of two programs for an experiment.

use crate::{commands, interrupt};
use afterlink_bench::experiment::layouts::{LayoutSource, PairPaths, PairSeeds};
use afterlink_bench::record::LayoutMode;
use afterlink_core::{Error, Result};
use afterlink_pipeline::{Fit, LaidOut, OptimizeOptions, Optimized, Relayout, Silent, check_pair};
use afterlink_profile::Profile;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program to be compared.
pub struct Subject<'a> {
    /// As it was linked.
    pub path: &'a Path,
    pub bytes: &'a [u8],
    /// As it is handed over: the same file, or one laid out by a profile.
    pub shipped: PathBuf,
    pub program: Movable<'a>,
}

impl<'a> Subject<'a> {
    /// The program in the linker's order, or, if there are profiles, laid out by them: it is then written into `directory`.
    ///
    /// # Errors
    /// If it cannot be rewritten, or a profile is another program's.
    pub fn new(
        path: &'a Path,
        bytes: &'a [u8],
        profiles: Vec<Profile>,
        any_profile: bool,
        directory: &Path,
    ) -> Result<Self> {
        let named = |e: Error| e.in_file(path.display());
        let (program, optimized) = Movable::with_output(bytes, profiles, any_profile).map_err(named)?;
        let shipped = match optimized {
            None => path.to_owned(),
            Some(optimized) => {
                std::fs::create_dir_all(directory)
                    .map_err(|e| Error::new(format!("cannot be made: {e}")).in_file(directory.display()))?;
                let shipped = directory.join(path.file_name().unwrap_or(path.as_os_str()));
                write(&shipped, &optimized.bytes)?;
                shipped
            }
        };
        Ok(Self { path, bytes, shipped, program })
    }
}

/// A program that can be written again and again.
pub enum Movable<'a> {
    AsLinked(Box<Relayout<'a>>),
    ByProfile(Box<LaidOut<'a>>),
}

impl<'a> Movable<'a> {
    /// In the linker's order, or laid out by profiles if there are any, even by [any](OptimizeOptions::any_profile) that fit badly.
    ///
    /// # Errors
    /// If the program cannot be rewritten, or the profiles are another program's.
    pub fn new(input: &'a [u8], profiles: Vec<Profile>, any_profile: bool) -> Result<Self> {
        Ok(Self::with_output(input, profiles, any_profile)?.0)
    }

    /// The same with the program as it is laid out by the profiles, proven.
    fn with_output(
        input: &'a [u8],
        profiles: Vec<Profile>,
        any_profile: bool,
    ) -> Result<(Self, Option<Optimized>)> {
        if profiles.is_empty() {
            return Ok((Self::AsLinked(Box::new(Relayout::new(input)?)), None));
        }
        let options = OptimizeOptions { any_profile, ..OptimizeOptions::default() };
        let (laid_out, optimized) = LaidOut::proven(input, profiles, &options, &Silent)?;
        commands::complain_of_faults(&optimized.report.unproven_functions);
        // A layout that hardly differs from the linker's would be judged in vain.
        if let Some(fit) = laid_out.fit().filter(Fit::is_poor).filter(|_| !any_profile) {
            return Err(Error::new(format!("most of the profile does not fit this build: {fit}"))
                .next("give a profile of this build, or insist with --any-profile"));
        }
        Ok((Self::ByProfile(Box::new(laid_out)), Some(optimized)))
    }

    /// A fresh layout; given the other program, one that agrees with its layout of the same seed.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn layout(&self, mode: LayoutMode, partner: Option<&Self>, seed: u64) -> Result<Vec<u8>> {
        match self {
            Self::ByProfile(laid_out) => laid_out.jitter(seed),
            Self::AsLinked(program) if mode == LayoutMode::Jitter => program.jitter(seed),
            Self::AsLinked(program) => program.shuffle(partner.and_then(Self::as_linked), seed),
        }
    }

    /// The same, held against `input` first. What could not be proven is left alone in this and all later layouts.
    ///
    /// # Errors
    /// If the output cannot be written or proven.
    pub fn proven_layout(
        &mut self,
        input: &[u8],
        mode: LayoutMode,
        partner: Option<&Movable>,
        seed: u64,
    ) -> Result<Vec<u8>> {
        match self {
            // Its order is proven already; only gaps are others.
            Self::ByProfile(laid_out) => {
                let bytes = laid_out.jitter(seed)?;
                check_pair(input, &bytes, &Silent).map(|_| bytes)
            }
            Self::AsLinked(program) => {
                let partner = partner.and_then(Movable::as_linked);
                let (bytes, unproven) = program.prove(|program| match mode {
                    LayoutMode::Jitter => program.jitter(seed),
                    _ => program.shuffle(partner, seed),
                })?;
                commands::complain_of_faults(&unproven);
                Ok(bytes)
            }
        }
    }

    /// Number of functions that move.
    pub fn functions(&self) -> usize {
        match self {
            Self::AsLinked(program) => program.functions(),
            Self::ByProfile(program) => program.functions(),
        }
    }

    fn as_linked(&self) -> Option<&Relayout<'a>> {
        match self {
            Self::AsLinked(program) => Some(program),
            Self::ByProfile(_) => None,
        }
    }
}

/// Writes both programs anew for each block.
pub struct Relaid<'a> {
    mode: LayoutMode,
    sides: [Subject<'a>; 2],
    /// Whether the first pair was held against its inputs. Later ones come about in the same way, and what they
    /// print is compared.
    proven: bool,
}

impl<'a> Relaid<'a> {
    pub fn new(mode: LayoutMode, sides: [Subject<'a>; 2]) -> Self {
        Self { mode, sides, proven: false }
    }

    /// Holds a pair against its inputs. What one side must leave alone changes the other's layout, so both are written
    /// only when that is known of both.
    fn prove_pair(&mut self, seeds: PairSeeds) -> Result<()> {
        let mode = self.mode;
        let prove = |side: &mut Subject, other: &Subject, seed| {
            let partner = seeds.are_coupled().then_some(&other.program);
            let proven = side.program.proven_layout(side.bytes, mode, partner, seed);
            proven.map(|_| ()).map_err(|e| e.in_file(side.path.display()))
        };
        let [a, b] = &mut self.sides;
        prove(a, b, seeds.a)?;
        prove(b, a, seeds.b)
    }
}

impl LayoutSource for Relaid<'_> {
    fn mode(&self) -> LayoutMode {
        self.mode
    }

    fn write_pair(&mut self, _block: u32, seeds: PairSeeds, paths: PairPaths) -> Result<()> {
        if !self.proven {
            self.prove_pair(seeds)?;
            self.proven = true;
        }
        let [a, b] = &self.sides;
        let written = [(a, b, seeds.a, paths.a), (b, a, seeds.b, paths.b)];
        for (side, other, seed, path) in written {
            let partner = seeds.are_coupled().then_some(&other.program);
            let named = |e: Error| e.in_file(side.path.display());
            write(path, &side.program.layout(self.mode, partner, seed).map_err(named)?)?;
        }
        Ok(())
    }

    fn shipped(&self) -> PairPaths<'_> {
        PairPaths { a: &self.sides[0].shipped, b: &self.sides[1].shipped }
    }
}

/// Writes a program that any user may run.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    // Servers are often started as another user.
    let write = || {
        std::fs::write(path, bytes)
            .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)))
    };
    // Otherwise a file could come about just after a signal had all removed.
    interrupt::uninterrupted(write).map_err(|e| {
        Error::new(format!("cannot be written: {e}")).in_file(path.display()).next("give another --work-dir")
    })
}
