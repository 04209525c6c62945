//! What afterlink must withstand: files that are damaged, cut short or made to do harm.
//!
//! [`readers`] and [`whole`] take any bytes and demand of afterlink what must hold whatever they are; the fuzz targets
//! in `fuzz/` hand them what libFuzzer invents, the tests of this crate hand them seeded damage, so that both
//! demand the same. [`job`] is what afterlink is asked to do, [`damage`] breaks a real program where it hurts.

pub mod damage;
pub mod job;
pub mod random;
pub mod readers;
pub mod whole;
