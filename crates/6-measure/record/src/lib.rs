//! Samples programs while they run, by the kernel's `perf_event_open(2)`, and writes what `perf record` would write: a `perf.data`,
//! which `ingest` and `perf` read.
//!
//! ```text
//! Events (the best that the machine has, one on each processor for each thread) ─► Rings ─► Recording ─► Output
//! ```

mod event;
mod follow;
mod hold;
mod processes;
mod recording;
mod ring;
mod samples;

pub use event::Sampled;
pub use processes::{descendants, is_running};

use afterlink_core::{Error, Output, Result};
use event::Opened;
use follow::{Followed, Follower};
use recording::Recording;
use ring::Ring;
use samples::{Samples, with_stack};
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub frequency: Frequency,
    /// Take branch stacks if the machine has them.
    pub branches: bool,
    pub follow: Follow,
}

/// Samples a second on each processor.
#[derive(Clone, Copy, Debug)]
pub struct Frequency {
    /// Of what the processor or the clock tells.
    pub sampled: u64,
    /// Of threads that are followed.
    pub followed: u64,
}

/// Whether each sampled thread is held for a moment where the machine has no branch stacks, and followed so many instructions ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    Never,
    /// Where that is not allowed, addresses are sampled.
    IfAllowed(u32),
    Always(u32),
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
    follower: Option<Follower>,
    refused: Option<Error>,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    pub samples: u64,
    /// Samples and other records for which there was no room.
    pub lost: u64,
    /// Samples of which a way ahead is known.
    pub followed: u64,
}

/// How often one looks after threads that have not stopped yet.
const SHORT: Duration = Duration::from_millis(1);

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
        let (follower, refused) = match Follower::for_threads(&threads, options.follow) {
            Ok(follower) => (follower, None),
            Err(error) => (None, Some(error)),
        };
        let (sampled, attribute, events) = event::open_best(&threads, options, on_exec, follower.is_some())?;
        let follower = follower.filter(|_| sampled.is_followed);
        let refused = refused.filter(|_| !sampled.branches);
        let refused = match (options.follow, refused) {
            (Follow::Always(_), Some(error)) => return Err(error),
            (_, refused) => refused,
        };
        let rings = ring::one_for_each_processor(&events)?;
        let mut recording = Recording::start(attribute, out)?;
        if let Whom::Processes(processes) = whom {
            for &process in *processes {
                recording.add_mappings(process, out)?;
            }
        }
        Ok(Self { sampled, events, rings, recording, follower, refused })
    }

    /// What is sampled.
    pub fn sampled(&self) -> &Sampled {
        &self.sampled
    }

    /// Why threads are not followed, where that was wished.
    pub fn refused(&self) -> Option<&Error> {
        self.refused.as_ref()
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
        // A thread that stops late stands still until it is seen.
        let waits = self.follower.as_ref().is_some_and(Follower::waits);
        let alive = ring::wait(&self.rings, if waits { wait.min(SHORT) } else { wait });
        self.drain(out)?;
        Ok(alive)
    }

    fn drain(&mut self, out: &mut dyn Output) -> Result<()> {
        let recording = &mut self.recording;
        let Some(follower) = &mut self.follower else {
            return self
                .rings
                .iter_mut()
                .try_for_each(|ring| ring.drain(&mut |bytes| recording.add(bytes, out)));
        };
        let mut samples = Samples::default();
        for ring in &mut self.rings {
            ring.drain(&mut |bytes| {
                samples.add(bytes);
                Ok(())
            })?;
        }
        samples.ask(follower, &mut |bytes| recording.add(bytes, out))?;
        add_followed(follower.follow(), recording, out)
    }

    /// Stops sampling, and completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, out: &mut dyn Output) -> Result<Recorded> {
        self.events.iter().for_each(Opened::disable);
        self.drain(out)?;
        if let Some(follower) = &mut self.follower {
            add_followed(follower.finish(), &mut self.recording, out)?;
        }
        self.recording.finish(self.sampled.name, out)
    }
}

fn add_followed(followed: Vec<Followed>, recording: &mut Recording, out: &mut dyn Output) -> Result<()> {
    followed.iter().try_for_each(|Followed { sample, way }| {
        let jumps = way.as_ref().map_or(&[][..], |way| &way.jumps);
        recording.add_followed(&with_stack(sample, jumps), jumps.len(), out)
    })
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
