//! Which CPU measures and which one the harness waits on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may use, ascending; CPU 0 if the kernel does not say.
pub fn allowed() -> Vec<u32> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let cpus: Vec<u32> = (0..CpuSet::MAX_CPU as u32).filter(|&c| set.is_set(c as usize)).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Keeps the harness's thread off the measuring CPU; gives it its old freedom back when dropped.
#[derive(Debug)]
pub struct HarnessPlace {
    before: Option<CpuSet>,
    allowed: Vec<u32>,
}

impl HarnessPlace {
    /// Remembers where this thread may run now.
    pub fn new() -> Self {
        Self { before: sched_getaffinity(None).ok(), allowed: allowed() }
    }

    /// Moves this thread to the other CPUs, if there are any.
    pub fn keep_off(&self, cpu: u32) {
        let mut set = CpuSet::new();
        self.allowed.iter().filter(|&&c| c != cpu).for_each(|&c| set.set(c as usize));
        if set.count() > 0 {
            // A harness that cannot move only adds noise; the run itself is pinned in any case.
            let _ = sched_setaffinity(None, &set);
        }
    }
}

impl Default for HarnessPlace {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for HarnessPlace {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_leaves_and_comes_back() {
        std::thread::spawn(|| {
            let before = allowed();
            let measuring = before[0];
            {
                let place = HarnessPlace::new();
                place.keep_off(measuring);
                if before.len() > 1 {
                    assert!(!allowed().contains(&measuring));
                }
            }
            assert_eq!(allowed(), before);
        })
        .join()
        .unwrap();
    }
}
