//! pprof: the profiles of Go, Parca, Pyroscope and others, to a [`Profile`](afterlink_profile::Profile) of one program.
//!
//! A message `perftools.profiles.Profile` of protocol buffers, packed by gzip or not. It holds stacks of calls with several values each; of these, the
//! innermost place is where the program was, and the value that counts time or samples says how often. Nothing in it tells of branches.
//!
//! The file is looked at four times, as it names things before it says what they are: for mappings and kinds of values, for their names, for places
//! in the program, and for samples. So memory follows the number of different places in the program, and not what the file holds besides:
//! names of functions, lines, labels.
//!
//! Where places stand: addresses of a process, which the mapping leads back to the file; or, as agents of fleets write them, addresses of the
//! file already. The latter lie outside of their mapping, or it starts at zero.

mod values;
mod wire;

use crate::program::Program;
use crate::reading::Reading;
use crate::recording::{BuildId, RecordedFile, of_program, padded};
use crate::traces::Traces;
use afterlink_core::{Error, InputAddr, Result, Viewed};
use rustc_hash::{FxHashMap, FxHashSet};
use values::{ValueType, Values};
use wire::{Field, Value, for_each_field, for_each_message};

pub use wire::is_pprof;

/// Numbers of the fields of a profile.
mod field {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLE: u64 = 2;
    pub const MAPPING: u64 = 3;
    pub const LOCATION: u64 = 4;
    pub const STRING: u64 = 6;
    pub const PERIOD_TYPE: u64 = 11;
    pub const PERIOD: u64 = 12;
}

/// More mappings, or kinds of values, than this are none.
const MOST_MAPPINGS: usize = 1 << 16;
const MOST_VALUES: usize = 64;

/// Reads a profile.
///
/// # Errors
/// The file is damaged, counts something else than time, has no addresses, or the program did not run in it.
pub fn read(file: Viewed, program: &Program) -> Result<Reading> {
    let outline = Outline::read(file)?;
    let names = outline.names(file)?;
    let values = Values::choose(&outline.types, outline.period, &names)?;
    let wanted = outline.wanted(&names, program)?;
    let places = Places::read(file, &wanted)?;
    let mut traces = Traces::default();
    let mut counted = Counted::default();
    for_each_message(file, &mut |field| {
        if let Field { number: field::SAMPLE, value: Value::Bytes(body) } = field {
            let sample = Sample::read(body, values.index())?;
            counted.add(&sample, &places, program, &mut traces)?;
        }
        Ok(())
    })?;
    counted.check(&values)?;
    let (profile, _) = traces.into_samples(program, std::slice::from_ref(&values.title))?;
    Ok(Reading { profile, notes: counted.notes(&values) })
}

/// The files that were mapped.
///
/// # Errors
/// The file is damaged.
pub fn files(file: Viewed) -> Result<Vec<RecordedFile>> {
    let outline = Outline::read(file)?;
    let names = outline.names(file)?;
    Ok(outline.mappings.iter().map(|mapping| mapping.file(&names)).collect())
}

/// What stands at the start of a profile, with names as numbers.
#[derive(Default)]
struct Outline {
    types: Vec<ValueType>,
    period: Option<(ValueType, u64)>,
    mappings: Vec<Mapping>,
}

#[derive(Clone, Copy, Default)]
struct Mapping {
    id: u64,
    start: u64,
    end: u64,
    offset: u64,
    name: u64,
    build_id: u64,
}

/// The strings that are asked for, by number.
type Names = FxHashMap<u64, Vec<u8>>;

impl Outline {
    fn read(file: Viewed) -> Result<Self> {
        let mut outline = Self::default();
        let (mut period_type, mut period) = (None, 0);
        for_each_message(file, &mut |field| {
            match (field.number, field.value) {
                (field::SAMPLE_TYPE, Value::Bytes(body)) => outline.types.push(ValueType::read(body)?),
                (field::MAPPING, Value::Bytes(body)) => outline.mappings.push(Mapping::read(body)?),
                (field::PERIOD_TYPE, Value::Bytes(body)) => period_type = Some(ValueType::read(body)?),
                (field::PERIOD, Value::Number(number)) => period = number,
                _ => {}
            }
            if outline.types.len() > MOST_VALUES || outline.mappings.len() > MOST_MAPPINGS {
                return Err(Error::new("it has more mappings or kinds of values than any profile")
                    .next("make it anew"));
            }
            Ok(())
        })?;
        outline.period = period_type.map(|kind| (kind, period));
        Ok(outline)
    }

    /// The names of what it holds.
    fn names(&self, file: Viewed) -> Result<Names> {
        let types = self.types.iter().chain(self.period.iter().map(|(kind, _)| kind));
        let types = types.flat_map(|kind| [kind.name, kind.unit]);
        let mappings = self.mappings.iter().flat_map(|mapping| [mapping.name, mapping.build_id]);
        let wanted: FxHashSet<u64> = types.chain(mappings).collect();
        let (mut names, mut number) = (Names::default(), 0);
        for_each_message(file, &mut |field| {
            if let Field { number: field::STRING, value: Value::Bytes(text) } = field {
                if wanted.contains(&number) {
                    names.insert(number, text.to_vec());
                }
                number += 1;
            }
            Ok(())
        })?;
        match wanted.iter().find(|name| !names.contains_key(name)) {
            Some(missing) if *missing != 0 => {
                Err(Error::new(format!("it is damaged: it names its string {missing}, and has {number}"))
                    .next("make it anew"))
            }
            _ => Ok(names),
        }
    }

    /// The mappings of the program, by number.
    fn wanted(&self, names: &Names, program: &Program) -> Result<FxHashMap<u64, Mapping>> {
        // Go and others may leave them out where there is one program: then all addresses are its own.
        if self.mappings.is_empty() {
            return Ok(FxHashMap::from_iter([(0, Mapping::default())]));
        }
        let files: Vec<RecordedFile> = self.mappings.iter().map(|mapping| mapping.file(names)).collect();
        let ours = of_program(&files, program)?;
        let ours = ours.into_iter().map(|number| self.mappings[number as usize]);
        Ok(ours.map(|mapping| (mapping.id, mapping)).collect())
    }
}

impl Mapping {
    fn read(body: &[u8]) -> Result<Self> {
        let mut mapping = Self::default();
        for_each_field(body, &mut |field| {
            if let Value::Number(number) = field.value {
                match field.number {
                    1 => mapping.id = number,
                    2 => mapping.start = number,
                    3 => mapping.end = number,
                    4 => mapping.offset = number,
                    5 => mapping.name = number,
                    6 => mapping.build_id = number,
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok(mapping)
    }

    fn file(&self, names: &Names) -> RecordedFile {
        let name = |number: u64| names.get(&number).cloned().unwrap_or_default();
        RecordedFile { name: name(self.name), build_id: build_id(&name(self.build_id)) }
    }

    /// Where in the program an address is.
    fn place(&self, address: u64, program: &Program) -> Option<InputAddr> {
        let is_inside = self.start != 0 && (self.start..self.end).contains(&address);
        if is_inside {
            return program.address_of((address - self.start).checked_add(self.offset)?);
        }
        Some(InputAddr(address)).filter(|address| program.has_code_at(*address))
    }
}

/// A build-id as linkers write it; Go's own are something else.
fn build_id(text: &[u8]) -> Option<BuildId> {
    let digits = std::str::from_utf8(text).ok()?;
    if digits.len() < 8 || digits.len() % 2 != 0 || digits.len() > 2 * size_of::<BuildId>() {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect();
    bytes.map(|bytes| padded(&bytes))
}

/// Places of the program by their number; those of other files, and those without an address, are told apart by being absent.
struct Places {
    mappings: FxHashMap<u64, Mapping>,
    addresses: FxHashMap<u64, (u64, u64)>,
    /// Of any file.
    all: u64,
    without_address: u64,
}

impl Places {
    fn read(file: Viewed, wanted: &FxHashMap<u64, Mapping>) -> Result<Self> {
        let mut places =
            Self { mappings: wanted.clone(), addresses: FxHashMap::default(), all: 0, without_address: 0 };
        for_each_message(file, &mut |field| {
            if let Field { number: field::LOCATION, value: Value::Bytes(body) } = field {
                places.add(body)?;
            }
            Ok(())
        })?;
        if places.all > 0 && places.without_address == places.all {
            return Err(Error::new("it holds names and lines of functions, and no addresses").next(
                "a layout needs addresses: let the profiler keep them, or use afterlink record or instrument",
            ));
        }
        Ok(places)
    }

    fn add(&mut self, body: &[u8]) -> Result<()> {
        let (mut id, mut mapping, mut address) = (0, 0, 0);
        for_each_field(body, &mut |field| {
            match (field.number, field.value) {
                (1, Value::Number(number)) => id = number,
                (2, Value::Number(number)) => mapping = number,
                (3, Value::Number(number)) => address = number,
                _ => {}
            }
            Ok(())
        })?;
        self.all += 1;
        self.without_address += u64::from(address == 0);
        if address != 0 && self.mappings.contains_key(&mapping) {
            self.addresses.insert(id, (mapping, address));
        }
        Ok(())
    }

    fn place(&self, id: u64, program: &Program) -> Option<InputAddr> {
        let (mapping, address) = self.addresses.get(&id)?;
        self.mappings[mapping].place(*address, program)
    }
}

/// Where the program was, and how often.
struct Sample {
    place: Option<u64>,
    value: Option<i64>,
}

impl Sample {
    /// `index` is which of its values is asked for.
    fn read(body: &[u8], index: usize) -> Result<Self> {
        let (mut place, mut value, mut seen) = (None, None, 0);
        let mut add = |number: u64| {
            if seen == index {
                value = Some(number as i64);
            }
            seen += 1;
        };
        for_each_field(body, &mut |field| {
            match (field.number, field.value) {
                (1, Value::Number(number)) => place = place.or(Some(number)),
                (1, Value::Bytes(packed)) => place = place.or(wire::numbers(packed).next().transpose()?),
                (2, Value::Number(number)) => add(number),
                (2, Value::Bytes(packed)) => {
                    for number in wire::numbers(packed) {
                        add(number?);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self { place, value })
    }
}

/// How many samples there were, each with its weight.
#[derive(Default)]
struct Counted {
    stacks: u64,
    all: u64,
    inside: u64,
    without_value: u64,
}

impl Counted {
    fn add(
        &mut self,
        sample: &Sample,
        places: &Places,
        program: &Program,
        traces: &mut Traces,
    ) -> Result<()> {
        self.stacks += 1;
        let Some(value) = sample.value else {
            self.without_value += 1;
            return Ok(());
        };
        let count = u64::try_from(value).map_err(|_| {
            Error::new("one of its samples has a value below zero: it is the difference of two profiles")
                .next("give the profiles themselves")
        })?;
        self.all = self.all.saturating_add(count);
        if let Some(at) = sample.place.and_then(|id| places.place(id, program)) {
            self.inside = self.inside.saturating_add(count);
            traces.add_sample(at, count);
        }
        Ok(())
    }

    fn check(&self, values: &Values) -> Result<()> {
        if self.stacks == 0 || self.without_value == self.stacks {
            return Err(Error::new("it has no sample").next("record for longer, while the program works"));
        }
        if self.inside == 0 {
            return Err(Error::new(format!(
                "none of its {} is in the program's code",
                values.what(self.all)
            ))
            .next("give the very file that ran, or a profile of this one"));
        }
        Ok(())
    }

    fn notes(&self, values: &Values) -> Vec<String> {
        let inside = values.what(self.inside);
        let mut notes = vec![format!(
            "{} in {} stacks, {inside} of them in the program",
            values.what(self.all),
            self.stacks
        )];
        if self.without_value > 0 {
            notes.push(format!("{} stacks without a value are left out", self.without_value));
        }
        notes
    }
}
