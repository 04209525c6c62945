//! recover, emit and verify in one go. What the checker does not prove is kept back, which is no fault here.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = afterlink_hostile::whole::run(bytes, bytes.len() as u64);
});
