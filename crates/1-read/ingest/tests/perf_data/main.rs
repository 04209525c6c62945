//! `perf.data` as `perf record` writes it, and as it does not: each trap of the format has a recording, written by a writer of these
//! tests.

mod damaged;
mod oracles;
mod pprof;
mod stacks;
mod subject;
mod texts;
mod traps;
mod writer;
mod yaml;
