//! What is said of instructions against what the processor does.

use super::{flags_set, read};
use crate::x86_64::full;
use iced_x86::{InstructionInfoFactory, RflagsBits};

/// Nothing that an instruction was seen to depend on is missing, and nothing ends that was seen to go on.
#[test]
fn uses_are_what_the_processor_does() {
    let mut factory = InstructionInfoFactory::new();
    for measured in afterlink_testkit::effects::measure() {
        let bytes = &measured.bytes[..];
        let used = read(&mut factory, &full(bytes, 0).unwrap());
        let flags = ["OF", "SF", "ZF", "AF", "PF"].iter().zip([
            RflagsBits::OF,
            RflagsBits::SF,
            RflagsBits::ZF,
            RflagsBits::AF,
            RflagsBits::PF,
        ]);
        let places = (0..16).map(|i| (format!("register {i}"), 1 << i));
        let places = places.chain(flags.map(|(name, bit)| (name.to_string(), flags_set(bit))));
        for (bit, (name, place)) in places.enumerate() {
            let (read, kept) = (measured.read >> bit & 1 == 1, measured.kept >> bit & 1 == 1);
            assert!(!read || used.read & place != 0, "{}: reads {name}", measured.text);
            assert!(
                !kept || used.written & place == 0 || used.read & place != 0,
                "{}: keeps {name}",
                measured.text
            );
        }
    }
}
