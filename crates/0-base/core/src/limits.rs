//! Numbers that more than one station must agree on.

/// Bytes that a displacement of four bytes reaches in either direction.
pub const REACH: u64 = 1 << 31;

/// Moved code takes less than this: what a function names must be nearer to the program than [`REACH`] less this, or it
/// cannot move.
pub const MOST_MOVED: u64 = 1 << 29;

/// Functions start at a multiple of this many bytes: in a pointer to a member function of C++, the lowest bit of a
/// function's address says that it is none (Itanium C++ ABI, 2.3).
pub const ENTRY_ALIGNMENT: u64 = 2;

/// The largest alignment that a function keeps when it moves: a page, as loaders keep no more. What may have been asked to have more stays.
pub const MOST_ENTRY_ALIGNMENT: u64 = PAGE;

/// Bytes of a cache line.
pub const CACHE_LINE: u64 = 64;

/// Where sections of code start if nothing else is asked for: at a multiple of so many bytes.
pub const SECTION_ALIGNMENT: u64 = CACHE_LINE;

/// Bytes of a page, to which new segments and counter files are aligned.
pub const PAGE: u64 = 4096;

/// Bytes of a huge page, the largest alignment of a new section.
pub const HUGE_PAGE: u64 = 1 << 21;

/// Hot code that takes less than this is better off on small pages: a processor's first table of translations has 64 places and more, for pages of
/// any size.
pub const HUGE_ENOUGH: u64 = 64 * PAGE;
