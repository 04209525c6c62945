//! How an instruction handles the numbers in its operands, for a search of what is done with an address.

/// A register with all of its parts. The number tells it from others and means nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub(crate) u16);

/// What an instruction works out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    /// The address that its operand in memory names.
    Address,
    Move,
    /// The same, of four bytes that are extended by their sign.
    MoveSigned,
    Compare,
    Add,
    Subtract,
    /// Turns a number's sign or bits around.
    Invert,
    Other,
}

/// Which of two numbers is the lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Signed,
    Unsigned,
    /// Whether the difference is below zero.
    OfDifference,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handling {
    pub action: Action,
    /// The first two operands, as far as they are registers.
    pub operands: [Option<Register>; 2],
    /// Which of these are used whole, with 64 bits.
    pub whole: [bool; 2],
    /// The first two operands are the same part of the same register.
    pub same_operands: bool,
    /// The second operand lies in memory.
    pub second_in_memory: bool,
    /// The constant part of the address of an operand in memory.
    pub memory: Option<u64>,
    /// One of the first two operands lies in memory, but not at a constant distance from the stack pointer or the code.
    pub in_data: bool,
    /// The registers that such an address is made of.
    pub addressed_by: [Option<Register>; 2],
    /// The order that a condition asks for.
    pub asks: Option<Order>,
    pub changes_flags: bool,
    /// Registers that it changes, maybe only sometimes.
    pub written: Vec<Register>,
    /// Control may go on behind it, other than by coming back from a call.
    pub goes_on: bool,
}
