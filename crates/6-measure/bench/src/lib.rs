//! Honest A/B measurement of two programs: is B faster than A, or is it the layout?
//!
//! [`experiment`] runs the workload on fresh layouts of both and gives an [`ExperimentRecord`];
//! [`analyse`] is a pure function from that record to an [`Analysis`] with a verdict;
//! [`doctor`] reads and probes the machine. Nothing here prints or exits.

pub mod analyse;
pub mod baseline;
pub mod benchmarks;
pub mod doctor;
pub mod experiment;
pub mod metric;
pub mod metric_choice;
pub mod numbers;
pub mod record;
pub mod stats;

pub use analyse::{Analysis, SuiteAnalysis, analyse, analyse_suite};
pub use experiment::{Setup, run_experiment};
pub use record::ExperimentRecord;
