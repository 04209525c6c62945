//! Writes the random graphs behind `tests/llvm_orders/orders.txt`, for `tests/llvm_orders/make.sh`.
//!
//! With the arguments `flow BLOCKS WALKS COUNT` or `call FUNCTIONS CALLS COUNT` it writes COUNT
//! graphs of that size instead.

use std::io::{self, Write};

use afterlink_layout::{CallGraph, FlowGraph};

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
    match arguments.first().map(String::as_str) {
        Some("flow") => (0..number(3).into())
            .try_for_each(|seed| write_flow(&mut out, &synthetic::flow_graph(number(1), number(2), seed))),
        Some("call") => (0..number(3).into())
            .try_for_each(|seed| write_call(&mut out, &synthetic::call_graph(number(1), number(2), seed))),
        _ => {
            for seed in 0..60 {
                let blocks = 3 + (seed as u32 * 7) % 57;
                write_flow(&mut out, &synthetic::flow_graph(blocks, 200, seed))?;
            }
            for seed in 0..12 {
                let functions = 5 + seed as u32 * 6;
                write_call(&mut out, &synthetic::call_graph(functions, functions * 3, seed))?;
            }
            Ok(())
        }
    }
}

/// `flow`, then sizes, counts and edges, each list behind its length.
fn write_flow(out: &mut impl Write, graph: &FlowGraph) -> io::Result<()> {
    write!(out, "flow {}", graph.len())?;
    graph.sizes.iter().try_for_each(|size| write!(out, " {size}"))?;
    graph.counts.iter().try_for_each(|count| write!(out, " {count}"))?;
    write!(out, " {}", graph.edges.len())?;
    graph.edges.iter().try_for_each(|edge| write!(out, " {} {} {}", edge.from, edge.to, edge.count))?;
    writeln!(out)
}

/// `call`, then sizes, samples and arcs, each list behind its length.
fn write_call(out: &mut impl Write, graph: &CallGraph) -> io::Result<()> {
    write!(out, "call {}", graph.len())?;
    graph.sizes.iter().try_for_each(|size| write!(out, " {size}"))?;
    graph.samples.iter().try_for_each(|count| write!(out, " {count}"))?;
    write!(out, " {}", graph.arcs.len())?;
    graph.arcs.iter().try_for_each(|arc| {
        write!(out, " {} {} {} {}", arc.caller, arc.callee, arc.count, arc.caller_offset)
    })?;
    writeln!(out)
}
