#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afterlink_hostile::readers::counter_file(bytes));
