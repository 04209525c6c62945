//! Which way branches probably go, by what they ask.

use iced_x86::{ConditionCode, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// What a branch asks of the instruction that set its flags.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    /// Whether some bits are set.
    Bits,
    /// How a register compares with zero.
    Zero,
    /// How something compares with a constant.
    Constant,
    Other,
}

/// The logarithm of the odds that the branch at the end of `code` is taken, from what it asks alone.
pub(crate) fn leaning(code: &[u8]) -> f64 {
    let mut asked = Asked::Other;
    let mut leaning = 0.0;
    for inst in &mut Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        if inst.is_jcc_short_or_near() {
            leaning = of_condition(asked, inst.condition_code());
        } else if inst.rflags_modified() != 0 {
            asked = what(&inst);
        }
    }
    leaning
}

fn what(inst: &Instruction) -> Asked {
    let is_constant = inst.op_count() == 2 && !matches!(inst.op1_kind(), OpKind::Register | OpKind::Memory);
    match inst.mnemonic() {
        Mnemonic::Test if is_constant => Asked::Bits,
        Mnemonic::Test if inst.op0_register() == inst.op1_register() => Asked::Zero,
        Mnemonic::Test => Asked::Bits,
        Mnemonic::Cmp if is_constant => Asked::Constant,
        _ => Asked::Other,
    }
}

/// Flags are mostly not set, numbers mostly not negative and small, as Ball and Larus say, too ("Branch prediction for free",
/// 1993). The figures are of SQLite's branches.
fn of_condition(asked: Asked, condition: ConditionCode) -> f64 {
    use ConditionCode as C;
    match (asked, condition) {
        (Asked::Bits, C::e) => 1.4,
        (Asked::Bits, C::ne) => -0.8,
        (Asked::Zero, C::le) => -1.3,
        (Asked::Zero, C::g) => 0.7,
        (_, C::s) => -0.6,
        (_, C::ns) => 0.8,
        (Asked::Constant, C::a) => -0.9,
        (Asked::Constant, C::be) => 1.2,
        (Asked::Zero | Asked::Other, C::ne) => -0.3,
        _ => 0.0,
    }
}
