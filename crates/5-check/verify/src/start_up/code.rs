//! What the start-up code may be: `code.txt` with the places and numbers of one program put in.

/// The code, byte by byte, with its texts.
const CODE: &str = include_str!("code.txt");

/// What differs between two programs.
pub(super) struct Places<'a> {
    /// Where the code stands.
    pub code: u64,
    /// Where the program itself starts.
    pub entry: u64,
    /// Address and bytes of the memory of the counters.
    pub memory: (u64, u64),
    /// Where in that memory the counters start.
    pub counters: u64,
    /// Address and bytes of what the counter file starts with.
    pub description: (u64, u64),
    pub path: &'a [u8],
}

/// A part of the code.
enum Piece<'t> {
    Bytes(&'t str),
    /// A distance of four bytes.
    Distance(&'t str),
    /// A number of eight bytes.
    Number(&'t str),
}

/// Bytes of the code without its texts.
pub(super) fn len() -> usize {
    let sizes = pieces().map(|piece| match piece {
        Piece::Bytes(hex) => hex.len() / 2,
        Piece::Distance(_) => 4,
        Piece::Number(_) => 8,
    });
    sizes.sum()
}

/// The code of a program, texts and all.
pub(super) fn fill(places: &Places) -> Vec<u8> {
    let mut out = Vec::new();
    let texts = texts(places.path);
    let mut labels = vec![
        ("entry", places.entry),
        ("memory", places.memory.0),
        ("description", places.description.0),
        ("description+8", places.description.0.wrapping_add(8)),
    ];
    let mut at = places.code + len() as u64;
    for (name, text) in &texts {
        labels.push((name, at));
        at += text.len() as u64 + 1;
    }
    // Invariant: `code.txt` names only what is listed here; a test sees to it.
    let label = |name: &str| labels.iter().find(|l| l.0 == name).map_or(0, |l| l.1);
    for piece in pieces() {
        match piece {
            Piece::Bytes(hex) => out.extend(bytes(hex)),
            Piece::Distance(name) => {
                let behind = places.code + out.len() as u64 + 4;
                out.extend_from_slice(&(label(name).wrapping_sub(behind) as u32).to_le_bytes());
            }
            Piece::Number(name) => {
                out.extend_from_slice(&number(name, places).to_le_bytes());
            }
        }
    }
    for (_, text) in &texts {
        out.extend_from_slice(text);
        out.push(0);
    }
    out
}

fn number(name: &str, places: &Places) -> u64 {
    match name {
        "size" => places.memory.1,
        "last" => places.memory.1.wrapping_sub(512),
        "counters" => places.counters,
        // Invariant: a test sees to it that there is no other name.
        _ => places.description.1.wrapping_sub(8),
    }
}

fn pieces() -> impl Iterator<Item = Piece<'static>> {
    let code = CODE.lines().filter(|line| !line.starts_with('#') && !line.starts_with("text "));
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
fn texts(path: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let lines = CODE.lines().filter_map(|line| line.strip_prefix("text "));
    let text = |line: &'static str| match line.split_once(' ') {
        Some((name, quoted)) => (name, quoted.trim_matches('"').replace("\\n", "\n").into_bytes()),
        None => (line, path.to_vec()),
    };
    lines.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places {
        code: 0x5000,
        entry: 0x1000,
        memory: (0x2000, 0x3000),
        counters: 0x1008,
        description: (0x4000, 0x208),
        path: b"/a/path",
    };

    #[test]
    fn every_name_is_known() {
        let texts = texts(b"");
        for piece in pieces() {
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
        let code = fill(&PLACES);
        assert!(code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa, 0x9c]));
        let end = len();
        assert_eq!(code[end - 5], 0xe9);
        let distance = i32::from_le_bytes(code[end - 4..end].try_into().unwrap());
        assert_eq!(0x5000 + end as i64 + i64::from(distance), 0x1000);
        assert!(code[end..].starts_with(b"/a/path\0AFTERLINK_COUNTERS=\0"));
        assert!(code.ends_with(b"runs on, uncounted\n\0"));
        let times = |number: u64| code.windows(8).filter(|w| **w == number.to_le_bytes()).count();
        assert_eq!([0x3000, 0x2e00, 0x1008, 0x200].map(times), [6, 1, 1, 1]);
    }
}
