#![no_main]

afterlink_fuzz::reader!(afterlink_hostile::readers::debug_info);
