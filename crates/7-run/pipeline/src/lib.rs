//! The jobs of afterlink. Each reads as a table of contents; nothing here prints, exits or opens a file.

mod before_after;
pub mod bisect;
mod check;
mod companions;
mod debug_source;
mod export;
mod grade;
mod hot_functions;
mod instrument;
mod memory;
mod moved;
pub mod names;
mod optimize;
mod outline;
mod relayout;
mod report;
mod search;
mod stale;
mod survey;

pub use afterlink_instrument::Counting;
pub use before_after::BeforeAfter;
pub use check::{Check, check_pair, verify, verify_with};
pub use companions::{Beside, DebugFile, DebugPair};
pub use debug_source::DebugSource;
pub use export::{ExportOptions, Exported, Steps, export};
pub use grade::{Aspect, Grade, Mark, grade};
pub use hot_functions::{
    CallPath, Change, Expected, HotFragment, HotFunction, Neighbour, Part, Position, Rank,
};
pub use instrument::{InstrumentOptions, InstrumentReport, Instrumented, instrument, instrument_to};
pub use optimize::{LaidOut, OptimizeOptions, Optimized, optimize, optimize_to};
pub use outline::{BlockOutline, FragmentOutline, FunctionOutline, Outline};
pub use relayout::Relayout;
pub use report::{OutdatedSection, RefusalCount, RefusedFunction, Report, ShadowStack};
pub use stale::{NamedProgram, profile_of_new_build};
pub use survey::{Survey, survey};

pub use afterlink_passes::{
    BlockOrder, FunctionOrder, LayoutOptions, PASSES, Pass, Scope, Split, Switches, named as pass_named,
};
pub use afterlink_verify::UnprovenFunction;
pub use afterlink_weigh::{Fit, Matched};

/// Told of each step of a job as it starts.
pub trait Progress {
    fn step(&self, what: &str);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
}
