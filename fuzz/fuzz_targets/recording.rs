#![no_main]

// A few compressed bytes may stand for as many as the unpacker may hold back.
afterlink_fuzz::reader!(afterlink_hostile::readers::recording, 64 << 20);
