#![no_main]

afterlink_fuzz::reader!(afterlink_hostile::readers::address_map);
