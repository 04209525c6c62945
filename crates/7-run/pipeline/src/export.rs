//! Program in, its text form or its outline out, as it was recovered or as passes have left it.

use crate::optimize::{PLACES, exclude, sum, weigh};
use crate::outline::Outline;
use crate::{OptimizeOptions, PASSES, Pass, Progress};
use afterlink_core::{Error, Result};
use afterlink_image::Image;
use afterlink_passes::LayoutOptions;
use afterlink_profile::Profile;
use afterlink_program::text::{View, write};
use afterlink_program::{Function, Placement, Program, Weights};
use regex::Regex;
use std::io;

/// The passes that run before a program is printed.
#[derive(Clone, Copy, Debug, Default)]
pub enum Steps {
    #[default]
    None,
    /// Up to this one, which runs even if it does so only when asked for.
    UpTo(&'static Pass),
    All,
}

/// What `export` is asked to do.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// Of the layout, what counts for the passes that run.
    pub optimize: OptimizeOptions,
    /// Only functions whose names match.
    pub functions: Option<Regex>,
    pub steps: Steps,
}

/// A program that can be written as text.
pub struct Exported<'a> {
    program: Program<'a>,
    weights: Weights,
    placement: Option<Placement>,
    functions: Option<Regex>,
}

/// Recovers `input`, with the counts of `profiles`, and runs the passes that are asked for.
///
/// # Errors
/// If the input is no program that can be read, or, with passes, none that can be rewritten; if the profiles do not belong to
/// it; or if no function has a name that is asked for.
pub fn export<'a>(
    input: &'a [u8],
    profiles: Vec<Profile>,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported<'a>> {
    let profile = sum(profiles)?;
    let image = Image::parse(input)?;
    let layout = options.layout();
    if layout.is_some() {
        image.require_rewritable()?;
    }
    progress.step("recovering the program");
    let mut program = afterlink_recover::recover(&image)?;
    exclude(&mut program, options.optimize.skip_functions.as_ref());
    require_functions(&program, options.functions.as_ref())?;
    let mut weights = Weights::default();
    if profile.is_some() || layout.is_some() {
        progress.step("applying the profile");
        weights = weigh(&image, &program, profile.as_ref(), &options.optimize)?.0;
    }
    let placement = layout.map(|layout| {
        progress.step("laying out");
        let moved = afterlink_passes::moved(&program, &weights, &layout);
        afterlink_passes::run(&mut program, &mut weights, moved, &layout, PLACES).0
    });
    Ok(Exported { program, weights, placement, functions: options.functions.clone() })
}

impl ExportOptions {
    /// The layout with those passes only that are to run; `None` if none is.
    fn layout(&self) -> Option<LayoutOptions> {
        let mut layout = self.optimize.layout.clone();
        match self.steps {
            Steps::None => return None,
            Steps::All => {}
            Steps::UpTo(last) => {
                let behind = PASSES.into_iter().skip_while(|pass| pass.name != last.name).skip(1);
                behind.for_each(|pass| layout.switches.turn(pass, false));
                layout.switches.turn(last, true);
            }
        }
        Some(layout)
    }
}

fn require_functions(program: &Program, names: Option<&Regex>) -> Result<()> {
    let Some(names) = names else { return Ok(()) };
    if program.functions.iter().any(|(_, function)| names.is_match(function.name)) {
        return Ok(());
    }
    Err(Error::new(format!("no function of the program has a name that matches `{names}`"))
        .at("--functions")
        .next("look for names with nm, or leave the option out"))
}

impl Exported<'_> {
    /// What scripts want to know of it.
    pub fn outline(&self) -> Outline {
        let matches = |function: &Function| self.matches(function);
        Outline::of(&self.program, &self.weights, self.placement.as_ref(), &matches)
    }

    fn matches(&self, function: &Function) -> bool {
        self.functions.as_ref().is_none_or(|names| names.is_match(function.name))
    }

    /// Writes the text.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let matches = |function: &Function| self.matches(function);
        let view = View {
            program: &self.program,
            weights: &self.weights,
            placement: self.placement.as_ref(),
            only: self.functions.is_some().then_some(&matches),
        };
        write(&view, out)
    }
}
