//! Samples programs while they run, by the kernel's `perf_event_open(2)`, and writes what `perf record` would write: a `perf.data`,
//! which `ingest` and `perf` read.
//!
//! ```text
//! Events (the best that the machine has, one on each processor for each thread) ─► Rings ─► Recording ─► Output
//! ```

mod event;
mod processes;
mod recording;
mod ring;

pub use event::Sampled;
pub use processes::{descendants, is_running};

use afterlink_core::{Error, Output, Result};
use event::Opened;
use recording::Recording;
use ring::Ring;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Samples a second on each processor.
    pub frequency: u64,
    /// Take branch stacks if the machine has them.
    pub branches: bool,
}

/// Whom to sample.
pub enum Whom<'a> {
    /// What the calling thread starts from now on, from where it runs another program.
    Children,
    /// Processes with all their threads, and what they start from now on.
    Processes(&'a [u32]),
}

/// Samples on their way from the kernel to a file.
pub struct Recorder {
    sampled: Sampled,
    events: Vec<Opened>,
    rings: Vec<Ring>,
    recording: Recording,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    pub samples: u64,
    /// Samples and other records for which there was no room.
    pub lost: u64,
}

impl Recorder {
    /// Prepares to sample, with the best event that the machine has and the user may use. `out` gets the start of the file.
    ///
    /// # Errors
    /// The user may sample nothing, or a process is not there; the error says what to do.
    pub fn new(whom: &Whom, options: &Options, out: &mut dyn Output) -> Result<Self> {
        let threads = match whom {
            Whom::Children => vec![0],
            Whom::Processes(processes) => {
                // Whom we start would inherit it.
                event::raise_limit_of_files();
                processes::threads(processes)?
            }
        };
        let on_exec = matches!(whom, Whom::Children);
        let (sampled, attribute, events) = event::open_best(&threads, options, on_exec)?;
        let rings = ring::one_for_each_processor(&events)?;
        let mut recording = Recording::start(attribute, out)?;
        if let Whom::Processes(processes) = whom {
            for &process in *processes {
                recording.add_mappings(process, out)?;
            }
        }
        Ok(Self { sampled, events, rings, recording })
    }

    /// What is sampled.
    pub fn sampled(&self) -> &Sampled {
        &self.sampled
    }

    /// Starts sampling processes that run already; others start by themselves.
    pub fn start(&self) {
        self.events.iter().for_each(Opened::enable);
    }

    /// Waits for samples, at most so long, and writes what there is. Gives whether somebody is left to be sampled.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn take(&mut self, wait: Duration, out: &mut dyn Output) -> Result<bool> {
        let alive = ring::wait(&self.rings, wait);
        self.drain(out)?;
        Ok(alive)
    }

    fn drain(&mut self, out: &mut dyn Output) -> Result<()> {
        let recording = &mut self.recording;
        self.rings.iter_mut().try_for_each(|ring| ring.drain(&mut |bytes| recording.add(bytes, out)))
    }

    /// Stops sampling, and completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, out: &mut dyn Output) -> Result<Recorded> {
        self.events.iter().for_each(Opened::disable);
        self.drain(out)?;
        self.recording.finish(self.sampled.name, out)
    }
}

/// The system's message without the number that Rust adds.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn failed(what: &str) -> Error {
    Error::new(format!("{what}: {}", reason(&std::io::Error::last_os_error())))
}

#[cfg(test)]
mod tests;
