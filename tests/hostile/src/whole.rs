//! The whole way: a file is read, recovered, laid out at random, written, and held against itself by the checker.

use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, Scope, Silent, Split,
};
use afterlink_verify::Verdict;

/// What became of a file.
pub enum Outcome {
    /// It can't be rewritten, for that reason.
    Refused(String),
    /// An output, with what the checker says of it.
    Written { bytes: Vec<u8>, verdict: Verdict, moved: usize },
    /// An output that the checker could not even read.
    Unreadable(String),
}

/// Options that move all code, in an order that depends on `seed` only.
pub fn random_layout(seed: u64) -> OptimizeOptions {
    OptimizeOptions {
        layout: LayoutOptions {
            scope: Scope::All,
            order_blocks: BlockOrder::Random,
            order_functions: FunctionOrder::Random,
            split: Split::Random,
            seed,
            ..LayoutOptions::default()
        },
        check: Check::Skip,
        ..OptimizeOptions::default()
    }
}

/// Takes `input` the whole way. Bounds the output's size.
///
/// # Panics
/// If afterlink does, or the output is out of all proportion.
pub fn run(input: &[u8], seed: u64) -> Outcome {
    let optimized = match afterlink_pipeline::optimize(input, Vec::new(), &random_layout(seed), &Silent) {
        Ok(optimized) => optimized,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let bytes = optimized.bytes;
    assert!(bytes.len() <= 8 * input.len() + (1 << 20), "{} bytes of {}", bytes.len(), input.len());
    match afterlink_pipeline::verify(input, &bytes, &Default::default()) {
        Ok(verdict) => Outcome::Written { bytes, verdict, moved: optimized.report.moved_functions },
        Err(error) => Outcome::Unreadable(error.to_string()),
    }
}
