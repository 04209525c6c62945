#![no_main]

afterlink_fuzz::reader!(afterlink_hostile::readers::bolt_yaml);
