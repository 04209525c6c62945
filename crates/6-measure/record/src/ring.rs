//! Memory that the kernel writes records into and we read them out of, one ring for each processor.

use crate::event::{Opened, share_ring};
use crate::failed;
use afterlink_core::Result;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a ring: with the page in front, what every user may have for each processor (`perf_event_mlock_kb`).
const SIZE: usize = 512 << 10;
/// Bytes of a page.
const PAGE: usize = 4096;

/// A processor's ring.
pub struct Ring {
    start: *mut u8,
    file: RawFd,
}

/// Makes a ring for each processor and lets all its events write there.
pub fn one_for_each_processor(events: &[Opened]) -> Result<Vec<Ring>> {
    let mut firsts: Vec<&Opened> = Vec::new();
    let mut rings = Vec::new();
    for event in events {
        match firsts.iter().find(|first| first.processor == event.processor) {
            Some(first) => share_ring(event, first)?,
            None => {
                rings.push(Ring::new(event.file.as_raw_fd())?);
                firsts.push(event);
            }
        }
    }
    Ok(rings)
}

/// Waits until a ring has filled up a little, at most so long. Gives whether some event still has somebody to sample.
pub fn wait(rings: &[Ring], limit: Duration) -> bool {
    let entry = |ring: &Ring| libc::pollfd { fd: ring.file, events: libc::POLLIN, revents: 0 };
    let mut files: Vec<libc::pollfd> = rings.iter().map(entry).collect();
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the count are those of the vector.
    unsafe { libc::poll(files.as_mut_ptr(), files.len() as libc::nfds_t, limit) };
    // Whose processes have all ended, says so at once and always.
    let is_over = files.iter().all(|f| f.revents & libc::POLLHUP != 0);
    if is_over {
        std::thread::sleep(Duration::from_millis(10));
    }
    !is_over
}

impl Ring {
    fn new(file: RawFd) -> Result<Self> {
        // SAFETY: a new mapping, of a size as the kernel wants it: a page, and a power of two of pages.
        let start = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), PAGE + SIZE, rights, libc::MAP_SHARED, file, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(failed("the kernel gives no memory for samples")
                .next("raise the limit of locked memory (ulimit -l), or end other recordings"));
        }
        Ok(Self { start: start.cast(), file })
    }

    /// Where the kernel writes next, and where we have read up to.
    fn places(&self) -> (&AtomicU64, &AtomicU64) {
        let page = self.start.cast::<perf_event_mmap_page>();
        // SAFETY: the first page of the mapping is this structure, and both numbers are aligned and changed by single writes of
        // the kernel and ours.
        unsafe {
            (AtomicU64::from_ptr(&raw mut (*page).data_head), AtomicU64::from_ptr(&raw mut (*page).data_tail))
        }
    }

    /// Hands on what is new, in one piece or two.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (head, tail) = self.places();
        // What was written in front of the head is there when the head is.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let offset = at as usize % SIZE;
            let count = ((end - at) as usize).min(SIZE - offset);
            // SAFETY: inside of the mapping; the kernel does not write there before the tail has passed.
            let bytes = unsafe { std::slice::from_raw_parts(self.start.add(PAGE + offset), count) };
            take(bytes)?;
            at += count as u64;
        }
        tail.store(end, Ordering::Release);
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing of it is used any more.
        unsafe { libc::munmap(self.start.cast(), PAGE + SIZE) };
    }
}
