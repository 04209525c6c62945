//! What the start-up code may be: `start_up.txt` with the places and numbers of one program put in.

use crate::judgement::start_up::Addresses;

/// The code, byte by byte, with its texts.
const CODE: &str = include_str!("start_up.txt");

/// A part of the code.
enum Piece<'t> {
    Bytes(&'t str),
    /// A distance of four bytes.
    Distance(&'t str),
    /// A number of eight bytes.
    Number(&'t str),
}

/// Bytes of the code without its texts.
pub(crate) fn len(in_object: bool) -> usize {
    let sizes = pieces(in_object).map(|piece| match piece {
        Piece::Bytes(hex) => hex.len() / 2,
        Piece::Distance(_) => 4,
        Piece::Number(_) => 8,
    });
    sizes.sum()
}

/// The code of a program, texts and all.
pub(crate) fn fill(addresses: Addresses, path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let texts = texts(path, addresses.in_object);
    let mut labels = vec![
        ("entry", addresses.entry),
        ("memory", addresses.memory.0),
        ("description", addresses.description.0),
        ("description+8", addresses.description.0.wrapping_add(8)),
    ];
    let mut at = addresses.code + len(addresses.in_object) as u64;
    for (name, text) in &texts {
        labels.push((name, at));
        at += text.len() as u64 + 1;
    }
    // Invariant: `start_up.txt` names only what is listed here; a test sees to it.
    let label = |name: &str| labels.iter().find(|l| l.0 == name).map_or(0, |l| l.1);
    for piece in pieces(addresses.in_object) {
        match piece {
            Piece::Bytes(hex) => out.extend(bytes(hex)),
            Piece::Distance(name) => {
                let behind = addresses.code + out.len() as u64 + 4;
                out.extend_from_slice(&(label(name).wrapping_sub(behind) as u32).to_le_bytes());
            }
            Piece::Number(name) => {
                out.extend_from_slice(&number(name, &addresses).to_le_bytes());
            }
        }
    }
    for (_, text) in &texts {
        out.extend_from_slice(text);
        out.push(0);
    }
    out
}

fn number(name: &str, addresses: &Addresses) -> u64 {
    match name {
        "size" => addresses.memory.1,
        "last" => addresses.memory.1.wrapping_sub(512),
        "counters" => addresses.counters,
        // Invariant: a test sees to it that there is no other name.
        _ => addresses.description.1.wrapping_sub(8),
    }
}

/// The lines that are for all, and for programs or for shared objects.
fn lines(in_object: bool) -> impl Iterator<Item = &'static str> {
    let other = if in_object { "@program" } else { "@object" };
    let mut for_other = false;
    CODE.lines().filter(move |line| {
        if line.starts_with('@') {
            for_other = *line == other;
        }
        !for_other && !line.starts_with(['@', '#'])
    })
}

fn pieces(in_object: bool) -> impl Iterator<Item = Piece<'static>> {
    let code = lines(in_object).filter(|line| !line.starts_with("text "));
    let words = code.flat_map(|line| line.split(';').next().unwrap_or_default().split_whitespace());
    words.map(|word| match word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
        Some(name) => name.strip_prefix('=').map_or(Piece::Distance(name), Piece::Number),
        None => Piece::Bytes(word),
    })
}

fn bytes(hex: &str) -> impl Iterator<Item = u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    hex.as_bytes().chunks(2).map(move |pair| pair.iter().fold(0, |byte, &d| byte << 4 | digit(d)))
}

/// The texts behind the code, with their names, in order.
fn texts(path: &[u8], in_object: bool) -> Vec<(&'static str, Vec<u8>)> {
    let lines = lines(in_object).filter_map(|line| line.strip_prefix("text "));
    let text = |line: &'static str| match line.split_once(' ') {
        Some((name, quoted)) => (name, quoted.trim_matches('"').replace("\\n", "\n").into_bytes()),
        None => (line, path.to_vec()),
    };
    lines.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: Addresses = Addresses {
        code: 0x5000,
        entry: 0x1000,
        in_object: false,
        memory: (0x2000, 0x3000),
        counters: 0x1008,
        description: (0x4000, 0x208),
    };

    #[test]
    fn every_name_is_known() {
        for (in_object, piece) in [false, true].into_iter().flat_map(|o| pieces(o).map(move |p| (o, p))) {
            let texts = texts(b"", in_object);
            match piece {
                Piece::Bytes(hex) => {
                    assert!(hex.len() % 2 == 0 && hex.bytes().all(|d| d.is_ascii_hexdigit()), "{hex}");
                }
                Piece::Distance(name) => {
                    let place = ["entry", "memory", "description", "description+8"].contains(&name);
                    assert!(place || texts.iter().filter(|t| t.0 == name).count() == 1, "{name}");
                }
                Piece::Number(name) => {
                    assert!(["size", "last", "counters", "rest"].contains(&name), "{name}")
                }
            }
        }
    }

    /// The bytes are what the words beside them say: the numbers stand where they are named.
    #[test]
    fn places_are_put_in() {
        let code = fill(ADDRESSES, b"/a/path");
        assert!(code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa, 0x9c]));
        let end = len(false);
        assert_eq!(code[end - 5], 0xe9);
        let distance = i32::from_le_bytes(code[end - 4..end].try_into().unwrap());
        assert_eq!(0x5000 + end as i64 + i64::from(distance), 0x1000);
        assert!(code[end..].starts_with(b"/a/path\0AFTERLINK_COUNTERS=\0"));
        assert!(code.ends_with(b"runs on, uncounted\n\0"));
        let times = |number: u64| code.windows(8).filter(|w| **w == number.to_le_bytes()).count();
        assert_eq!([0x3000, 0x2e00, 0x1008, 0x200].map(times), [6, 1, 1, 1]);
    }
}
