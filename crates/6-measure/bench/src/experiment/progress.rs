//! What a running experiment tells its caller. Events come only between timed runs, and none of them
//! carries the effect: who watches it may stop when it pleases him, and that would spoil the interval.

/// One step of the experiment.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The workload ran on both shipped programs.
    Rehearsed { seconds_per_run: f64, pinned: bool, output_checked: bool },
    /// The pilot is over: runs per layout chosen, and how many layouts a verdict within the margin
    /// would need if there is no difference; nothing if more than can be asked for.
    Planned { runs_per_layout: u32, layouts: Option<u32>, seconds: Option<f64> },
    /// The layouts of a block are about to be written; `valid` blocks are done.
    BlockStarted { block: u32, valid: u32, at_most: u32, elapsed_seconds: f64 },
    /// A block is done. `spread` is the standard deviation of the block differences so far, on the log scale.
    BlockFinished { block: u32, valid: u32, at_most: u32, elapsed_seconds: f64, spread: Option<f64> },
    /// A block does not count.
    Invalid { block: u32, what: String, output: String },
}

/// Takes the events.
pub trait Progress {
    fn event(&mut self, event: &Event);
}

/// Takes them and does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&mut self, _event: &Event) {}
}

impl<F: FnMut(&Event)> Progress for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}
