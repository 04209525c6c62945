#![no_main]

// A million records of indirect jumps are free, and are copied once.
afterlink_fuzz::reader!(afterlink_hostile::readers::counter_file, 128 << 20);
