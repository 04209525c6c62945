//! Which of a stack's values says how often the program was there.

use super::Names;
use super::wire::{Value, for_each_field};
use afterlink_core::{Error, Result};

/// What a value counts, and in what: numbers of strings.
#[derive(Clone, Copy, Default)]
pub(super) struct ValueType {
    pub name: u64,
    pub unit: u64,
}

impl ValueType {
    pub fn read(body: &[u8]) -> Result<Self> {
        let mut kind = Self::default();
        for_each_field(body, &mut |field| {
            match (field.number, field.value) {
                (1, Value::Number(number)) => kind.name = number,
                (2, Value::Number(number)) => kind.unit = number,
                _ => {}
            }
            Ok(())
        })?;
        Ok(kind)
    }
}

/// What counts time on a processor, the best first: single samples, then time. Parca, Pyroscope and Go say `samples` and `cpu`, profilers of JIT
/// compilers and of Rust `wall` or `cycles`.
const KNOWN: [(&[u8], &[u8]); 7] = [
    (b"samples", b"count"),
    (b"sample", b"count"),
    (b"cpu", b"count"),
    (b"cpu", b"nanoseconds"),
    (b"cpu", b"microseconds"),
    (b"cycles", b"count"),
    (b"wall", b"nanoseconds"),
];

/// The values that are used.
pub(super) struct Values {
    index: usize,
    /// As a profile names the event.
    pub title: String,
    unit: String,
}

impl Values {
    /// # Errors
    /// None of them counts time.
    pub fn choose(types: &[ValueType], period: Option<(ValueType, u64)>, names: &Names) -> Result<Self> {
        let name = |number: u64| names.get(&number).map_or(&b""[..], Vec::as_slice);
        let text = |number: u64| String::from_utf8_lossy(name(number)).into_owned();
        let known = KNOWN.iter().find_map(|known| {
            let is_known = |kind: &ValueType| (name(kind.name), name(kind.unit)) == *known;
            types.iter().position(is_known)
        });
        let Some(index) = known else {
            let all: Vec<String> =
                types.iter().take(4).map(|kind| format!("{}/{}", text(kind.name), text(kind.unit))).collect();
            let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
            return Err(Error::new(format!("it counts {all}, and not where the program spends its time"))
                .next("give a profile of the processor's time (of Go: /debug/pprof/profile)"));
        };
        let what = period.map(|(kind, _)| text(kind.name)).filter(|what| !what.is_empty());
        let title = what.unwrap_or_else(|| text(types[index].name));
        let title = if title.bytes().all(|b| b.is_ascii_graphic()) { title } else { "samples".to_owned() };
        Ok(Self { index, title, unit: text(types[index].unit) })
    }

    /// Which of a stack's values it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// So many of them, in words.
    pub fn what(&self, count: u64) -> String {
        match self.unit.as_str() {
            "count" => format!("{count} samples of {}", self.title),
            unit => format!("{count} {unit} of {}", self.title),
        }
    }
}
