//! Against the installed tools of LLVM BOLT 22 and gcc: what they write and read, we read and write. Where a tool is
//! missing, its tests say so on stderr and prove nothing.

mod merging;
mod naming;
mod reading;
mod toolbox;
