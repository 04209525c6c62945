//! Fresh layouts of two programs for an experiment.

use crate::interrupt;
use afterlink_bench::experiment::layouts::{AsIs, LayoutSource, PairPaths, PairSeeds};
use afterlink_bench::record::LayoutMode;
use afterlink_core::{Error, Result};
use afterlink_pipeline::{Check, Fit, LaidOut, OptimizeOptions, Relayout, Silent, check_pair};
use afterlink_profile::Profile;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program to be compared.
pub struct Subject {
    /// As it was linked.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    /// As it is handed over: the same, or laid out by the profile.
    pub shipped: PathBuf,
    /// By what it is to be laid out, if by anything.
    pub by_profile: Option<ByProfile>,
}

/// What decides a layout.
pub struct ByProfile {
    pub profiles: Vec<Profile>,
    pub options: OptimizeOptions,
}

/// The source of layouts of that mode.
///
/// # Errors
/// If a program has to be rewritten and cannot be.
pub fn source<'a>(mode: LayoutMode, [a, b]: [&'a Subject; 2]) -> Result<Box<dyn LayoutSource + 'a>> {
    if mode != LayoutMode::Jitter && (a.by_profile.is_some() || b.by_profile.is_some()) {
        return Err(Error::new("a layout by profile can only be judged in its own order")
            .at("--layout")
            .next("leave --layout out or give --layout jitter"));
    }
    if mode == LayoutMode::AsIs {
        return Ok(Box::new(AsIs::new(&a.shipped, &b.shipped)));
    }
    let side = |subject: &'a Subject| {
        let program = Movable::new(subject).map_err(|e| {
            let next = e.next.clone().map(|n| format!("{n}, or ")).unwrap_or_default();
            let as_is = format!("{next}measure both files as they are with --layout as-is");
            let next = if subject.by_profile.is_some() { e.next.clone() } else { Some(as_is) };
            Error { next, ..e }.in_file(subject.path.display())
        });
        Ok((subject, program?))
    };
    Ok(Box::new(Relaid { mode, sides: [side(a)?, side(b)?], proven: false }))
}

/// A program that can be written again and again.
pub enum Movable<'a> {
    AsLinked(Box<Relayout<'a>>),
    ByProfile(Box<LaidOut<'a>>),
}

impl<'a> Movable<'a> {
    /// # Errors
    /// If the program cannot be rewritten, or the profile is another program's.
    pub fn new(subject: &'a Subject) -> Result<Self> {
        let Some(ByProfile { profiles, options }) = &subject.by_profile else {
            return Ok(Self::AsLinked(Box::new(Relayout::new(&subject.bytes)?)));
        };
        let laid_out = LaidOut::new(&subject.bytes, profiles.clone(), options, &Silent)?;
        // A layout that hardly differs from the linker's would be judged in vain.
        if let Some(fit) = laid_out.fit().filter(Fit::is_poor) {
            return Err(Error::new(format!("most of the profile is not about this program: {fit}"))
                .next("give a profile of this build"));
        }
        Ok(Self::ByProfile(Box::new(laid_out)))
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
struct Relaid<'a> {
    mode: LayoutMode,
    sides: [(&'a Subject, Movable<'a>); 2],
    /// Whether the first pair was held against its inputs. Later ones come about in the same way, and what they
    /// print is compared.
    proven: bool,
}

impl LayoutSource for Relaid<'_> {
    fn mode(&self) -> LayoutMode {
        self.mode
    }

    fn write_pair(&mut self, _block: u32, seeds: PairSeeds, paths: PairPaths) -> Result<()> {
        let [a, b] = &self.sides;
        let written = [(a, b, seeds.a, paths.a), (b, a, seeds.b, paths.b)];
        for ((input, program), (_, other), seed, path) in written {
            let partner = seeds.are_coupled().then_some(other);
            let named = |e: Error| e.in_file(input.path.display());
            let bytes = program.layout(self.mode, partner, seed).map_err(named)?;
            if !self.proven {
                check_pair(&input.bytes, &bytes, Check::Prove, &Silent).map_err(named)?;
            }
            write(path, &bytes)?;
        }
        self.proven = true;
        Ok(())
    }

    fn shipped(&self) -> PairPaths<'_> {
        PairPaths { a: &self.sides[0].0.shipped, b: &self.sides[1].0.shipped }
    }
}

/// Writes a program that any user may run.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
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
