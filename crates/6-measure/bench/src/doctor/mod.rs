//! Is this machine fit for measuring? Passive checks, an active probe, a grade, and what to change.

pub mod files;
pub mod watch;
