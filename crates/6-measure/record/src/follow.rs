//! Branch stacks where the processor has none: at each sample the thread is held for a moment, and the way that it is about to take is worked
//! out from its registers and its memory ([`afterlink_isa::ahead`]). It goes on from where it stood; nothing of it is changed.

use crate::Follow;
use crate::hold::{self, Asked, Held, Stop};
use afterlink_core::{Error, Result};
use afterlink_isa::Arch;
use afterlink_isa::ahead::{Memory, Way};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// How long a thread is waited for at once: others may have to stop, too.
const SOON: Duration = Duration::from_millis(2);
/// And in the end, when it goes on by itself behind it.
const LAST: Duration = Duration::from_millis(200);
/// Bytes that are read at once.
const PAGE: usize = 4096;

/// A thread that was asked to stop, with the sample that it was seen by.
struct Waiting {
    asked: Asked,
    thread: u32,
    sample: Vec<u8>,
}

/// A sample whose thread was asked, with the way ahead of that if it could be followed.
pub struct Followed {
    pub sample: Vec<u8>,
    pub way: Option<Way>,
}

/// Holds threads and follows them.
pub struct Follower {
    arch: Arch,
    /// Instructions that each is followed, at the most.
    most: u32,
    waiting: Vec<Waiting>,
}

impl Follower {
    /// Tries whether these threads can be held; 0 is what this one starts. `None` where nobody wants to.
    ///
    /// # Errors
    /// They can't, or nothing is known of this machine's instructions.
    pub fn for_threads(threads: &[u32], follow: Follow) -> Result<Option<Self>> {
        let (Follow::IfAllowed(most) | Follow::Always(most)) = follow else { return Ok(None) };
        let Some(arch) = Arch::of_this_machine().filter(|arch| arch.is_followed()) else {
            return Err(Error::new("threads are followed on x86-64 only").next("record without --follow"));
        };
        let try_one = |&thread: &u32| if thread == 0 { hold::try_child() } else { hold::ask(thread) };
        let mut tried = threads.iter().map(try_one).filter(|tried| !tried.as_ref().is_err_and(is_gone));
        match tried.next().transpose().map_err(|error| refused(&error))? {
            Some(asked) => {
                let stop = asked.wait(LAST);
                hold::be_prompt();
                let follower = Self { arch, most, waiting: Vec::new() };
                follower.look(stop);
                Ok(Some(follower))
            }
            None => Err(crate::event::gone()),
        }
    }

    /// Asks a thread that was seen running to stop, unless it was asked already; then the sample is given back.
    ///
    /// # Errors
    /// It cannot be asked: it has ended or become another user's, or a debugger holds it.
    pub fn ask(&mut self, thread: u32, sample: &[u8]) -> std::result::Result<(), ()> {
        if self.waiting.iter().any(|waiting| waiting.thread == thread) {
            return Err(());
        }
        let asked = hold::ask(thread).map_err(|_| ())?;
        self.waiting.push(Waiting { asked, thread, sample: sample.to_vec() });
        Ok(())
    }

    /// Follows those who stop soon.
    pub fn follow(&mut self) -> Vec<Followed> {
        self.follow_within(SOON)
    }

    /// Lets go of everybody.
    pub fn finish(&mut self) -> Vec<Followed> {
        self.follow_within(LAST)
    }

    /// Whether somebody has not stopped yet.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn follow_within(&mut self, limit: Duration) -> Vec<Followed> {
        let mut followed = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.asked.wait(limit) {
                Stop::NotYet => self.waiting.push(waiting),
                stop => followed.push(Followed { sample: waiting.sample, way: self.look(stop) }),
            }
        }
        followed
    }

    /// The way ahead of a thread that was outside of the kernel; whoever was inside goes on as if nothing had been.
    fn look(&self, stop: Stop) -> Option<Way> {
        let Stop::Held(held) = stop else { return None };
        let (registers, float_registers) = held.registers(self.arch)?;
        if !self.arch.is_in_system_call(&registers) {
            return self.arch.way_ahead(&registers, &float_registers, &mut Pages::of(&held), self.most);
        }
        if let Some(mut again) = self.arch.calling_again(&registers).filter(|_| !held.has_signal()) {
            held.set_registers(&mut again);
        }
        None
    }
}

/// Memory of a thread that is held, as far as it was asked for.
pub struct Pages<'h> {
    held: &'h Held,
    pages: FxHashMap<u64, Option<Box<[u8; PAGE]>>>,
}

impl<'h> Pages<'h> {
    pub fn of(held: &'h Held) -> Self {
        Self { held, pages: FxHashMap::default() }
    }
}

impl Memory for Pages<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let mut at = address;
        let mut rest = into;
        while !rest.is_empty() {
            let offset = (at % PAGE as u64) as usize;
            let size = rest.len().min(PAGE - offset);
            let start = at - offset as u64;
            let page = self.pages.entry(start).or_insert_with(|| {
                let mut page = Box::new([0; PAGE]);
                self.held.read(start, page.as_mut_slice()).then_some(page)
            });
            let Some(page) = page else { return false };
            let (part, later) = rest.split_at_mut(size);
            part.copy_from_slice(&page[offset..offset + size]);
            rest = later;
            at = at.wrapping_add(size as u64);
        }
        true
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

fn refused(error: &std::io::Error) -> Error {
    Error::new(format!("threads cannot be held to be followed: {}", crate::reason(error))).next(
        "run it as the program's user or as root, where no debugger holds it; in a container with --cap-add SYS_PTRACE; or record without --follow",
    )
}
