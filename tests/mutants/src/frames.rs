//! Takes the bytes of `.eh_frame`, gives each record's fields and unwind instructions (LSB 5.0, 10.6; DWARF 5, 6.4).

/// A CIE or an FDE.
pub struct Record {
    /// Where it starts in the file, and its bytes with the length.
    pub at: usize,
    pub size: usize,
    pub is_common: bool,
    /// Fields of the head: name, place in the file, bytes.
    pub fields: Vec<(&'static str, usize, usize)>,
    pub instructions: Vec<Instruction>,
    /// First byte behind the last unwind instruction that is no padding.
    pub padding: usize,
}

/// An unwind instruction.
#[derive(Clone, Copy)]
pub struct Instruction {
    pub at: usize,
    pub len: usize,
}

pub fn records(bytes: &[u8], start: usize) -> Vec<Record> {
    let word = |at: usize| bytes.get(at..at + 4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let mut found = Vec::new();
    let mut at = 0;
    while let (Some(length), Some(id)) = (word(at), word(at + 4)) {
        if length == 0 || length == u32::MAX {
            break;
        }
        let end = at + 4 + length as usize;
        let Some(body) = bytes.get(at..end) else { break };
        found.extend(record(body, start + at, id == 0));
        at = end;
    }
    found
}

/// The number at the start, in bytes.
fn leb(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| byte & 0x80 == 0).map(|last| last + 1)
}

fn record(body: &[u8], at: usize, is_common: bool) -> Option<Record> {
    let mut fields = vec![("length", 0, 4), ("CIE pointer", 4, 4)];
    let behind = if is_common {
        let text = body.get(9..)?.iter().position(|&byte| byte == 0)? + 1;
        fields.extend([("CIE version", 8, 1), ("CIE augmentation", 9, text)]);
        let mut next = 9 + text;
        for name in
            ["CIE code alignment", "CIE data alignment", "CIE return register", "CIE augmentation length"]
        {
            let size = leb(body.get(next..)?)?;
            fields.push((name, next, size));
            next += size;
        }
        let data = usize::from(body[next - 1]);
        fields.push(("CIE augmentation data", next, data));
        next + data
    } else {
        fields.extend([("FDE start", 8, 4), ("FDE size", 12, 4)]);
        let size = leb(body.get(16..)?)?;
        let data = usize::from(body[16]);
        fields.extend([("FDE augmentation length", 16, size), ("FDE augmentation data", 16 + size, data)]);
        16 + size + data
    };
    let instructions = instructions(body, behind);
    let padding = instructions.last().map_or(behind, |i| i.at + i.len);
    fields.retain(|f| f.2 > 0);
    fields.iter_mut().for_each(|f| f.1 += at);
    let instructions = instructions.into_iter().map(|i| Instruction { at: at + i.at, ..i }).collect();
    Some(Record { at, size: body.len(), is_common, fields, instructions, padding: at + padding })
}

fn instructions(body: &[u8], mut at: usize) -> Vec<Instruction> {
    let mut found = Vec::new();
    while let Some(&code) = body.get(at) {
        let operands = match code {
            0x80..=0xbf | 0x06..=0x08 | 0x0d | 0x0e | 0x13 | 0x2e => "u",
            0x05 | 0x09 | 0x0c | 0x11 | 0x12 | 0x14 | 0x15 | 0x2f => "uu",
            0x0f => "b",
            0x10 | 0x16 => "ub",
            0x01 => "4",
            0x02 => "1",
            0x03 => "2",
            0x04 => "4",
            _ => "",
        };
        let mut len = 1;
        for operand in operands.bytes() {
            let rest = body.get(at + len..).unwrap_or(&[]);
            len += match operand {
                b'u' => leb(rest).unwrap_or(1),
                b'b' => leb(rest).unwrap_or(1) + usize::from(rest.first().copied().unwrap_or(0)),
                digit => usize::from(digit - b'0'),
            };
        }
        if code != 0 {
            found.push(Instruction { at, len: len.min(body.len() - at) });
        }
        at += len;
    }
    found
}
