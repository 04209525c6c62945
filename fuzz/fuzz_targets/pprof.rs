#![no_main]

// A few packed bytes may stand for one long field, which is kept while it is looked at.
afterlink_fuzz::reader!(afterlink_hostile::readers::pprof, 64 << 20);
