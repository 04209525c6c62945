//! What every fuzz target shares: each run is held to an amount of memory that its input pays for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counted.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Has all work done by the calling thread: coverage must not depend on how threads wait for each other.
pub fn on_one_thread() {
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().expect("called first");
}

/// What the standard library seeds its hash tables with: the same in each run, or coverage would not be.
///
/// # Safety
/// `bytes` must be `size` bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(bytes: *mut u8, size: usize, _flags: u32) -> isize {
    // SAFETY: the caller's.
    unsafe { bytes.write_bytes(0x5a, size) };
    size as isize
}

fn grown(size: usize) {
    let now = NOW.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(now, Relaxed);
}

/// Runs `work` on `input`.
///
/// # Panics
/// If it takes more memory at once than `constant` bytes and `multiple` times the input's size.
pub fn within<T>(input: &[u8], constant: usize, multiple: usize, work: impl FnOnce(&[u8]) -> T) -> T {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work(input);
    let used = PEAK.load(Relaxed) - before;
    let limit = constant + multiple * input.len();
    assert!(used <= limit, "{used} bytes of memory for an input of {} bytes", input.len());
    result
}

/// A fuzz target for a reader: its memory stays within 256 times the input and a megabyte, or more if that is said.
#[macro_export]
macro_rules! reader {
    ($read:path) => {
        $crate::reader!($read, 1 << 20);
    };
    ($read:path, $constant:expr) => {
        #[global_allocator]
        static ALLOCATOR: $crate::Counting = $crate::Counting;

        libfuzzer_sys::fuzz_target!(init: $crate::on_one_thread(), |bytes: &[u8]| {
            $crate::within(bytes, $constant, 256, $read)
        });
    };
}
