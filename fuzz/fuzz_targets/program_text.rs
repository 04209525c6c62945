#![no_main]

afterlink_fuzz::reader!(afterlink_hostile::readers::program_text);
