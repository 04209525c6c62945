//! Writes recordings as `perf record` does, from the kernel's `perf_event.h` and perf's `perf.data-file-format.txt`.

pub const IP: u64 = 1;
pub const TID: u64 = 1 << 1;
pub const TIME: u64 = 1 << 2;
pub const READ: u64 = 1 << 4;
pub const CALLCHAIN: u64 = 1 << 5;
pub const CPU: u64 = 1 << 7;
pub const PERIOD: u64 = 1 << 8;
pub const RAW: u64 = 1 << 10;
pub const BRANCH_STACK: u64 = 1 << 11;
pub const IDENTIFIER: u64 = 1 << 16;

pub const ANY: u64 = 1 << 3;
pub const ANY_CALL: u64 = 1 << 4;
pub const CALL_STACK: u64 = 1 << 11;
pub const HARDWARE_INDEX: u64 = 1 << 17;
/// What counters say stands behind all branches (Linux 6.8).
pub const BRANCH_COUNTERS: u64 = 1 << 19;

/// Sizes of the structures.
const ATTRIBUTE: usize = 128;
const HEADER: u64 = 104;

/// `misc` of what happened in the program.
const USER: u16 = 2;

/// An event.
#[derive(Clone)]
pub struct Event {
    pub name: &'static str,
    pub kind: u32,
    pub config: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub branches: u64,
    pub number: u64,
}

pub const CYCLES: Event = Event {
    name: "cycles:u",
    kind: 0,
    config: 0,
    sample_type: IP | TID | TIME | PERIOD,
    read_format: 0,
    branches: 0,
    number: 11,
};

impl Event {
    pub fn with(self, fields: u64) -> Self {
        Self { sample_type: self.sample_type | fields, ..self }
    }

    pub fn with_branches(self, branches: u64) -> Self {
        Self { branches, ..self.with(BRANCH_STACK) }
    }

    /// mmap, comm, freq, task, sample_id_all, mmap2, comm_exec, exclude_kernel.
    fn bytes(&self) -> Vec<u8> {
        let flags: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24 | 1 << 5;
        let mut bytes = [self.kind.to_le_bytes(), (ATTRIBUTE as u32).to_le_bytes()].concat();
        let words = [self.config, 1000, self.sample_type, self.read_format, flags, 0, 0, 0, self.branches];
        bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        bytes.resize(ATTRIBUTE, 0);
        bytes
    }
}

/// A sample; what its event does not have is not written.
#[derive(Clone, Default)]
pub struct Sample {
    pub ip: u64,
    pub pid: u32,
    pub time: u64,
    pub number: u64,
    pub kernel: bool,
    /// From, to and flags, the newest first.
    pub branches: Vec<(u64, u64, u64)>,
}

/// A recording on its way.
pub struct Recording {
    pub events: Vec<Event>,
    pub records: Vec<u8>,
    pub build_ids: Vec<(Vec<u8>, String)>,
}

impl Recording {
    pub fn new(events: &[Event]) -> Self {
        Self { events: events.to_vec(), records: Vec::new(), build_ids: Vec::new() }
    }

    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        assert!(body.len() < 65_528);
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend((body.len() as u16 + 8).to_le_bytes());
        self.records.extend(body);
    }

    /// A record that says at its end of which process and when it is.
    fn marked(&mut self, kind: u32, misc: u16, pid: u32, time: u64, mut body: Vec<u8>) {
        let event = &self.events[0];
        let marks = [
            (TID, u64::from(pid) << 32 | u64::from(pid)),
            (TIME, time),
            (CPU, 0),
            (IDENTIFIER, event.number),
        ];
        for (_, value) in marks.iter().filter(|(field, _)| event.sample_type & field != 0) {
            body.extend(value.to_le_bytes());
        }
        self.record(kind, misc, &body);
    }

    fn mapping(pid: u32, at: (u64, u64, u64)) -> Vec<u8> {
        let mut body = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
        body.extend([at.0, at.1, at.2].iter().flat_map(|w| w.to_le_bytes()));
        body
    }

    /// `at` is start, size and offset.
    pub fn mmap(&mut self, pid: u32, time: u64, at: (u64, u64, u64), name: &str) {
        let body = [Self::mapping(pid, at), padded(name)].concat();
        self.marked(1, USER, pid, time, body);
    }

    pub fn mmap2(&mut self, pid: u32, time: u64, at: (u64, u64, u64), name: &str) {
        let identity = [8u32, 1, 77, 0, 0, 0, 5, 2].iter().flat_map(|h| h.to_le_bytes()).collect();
        let body = [Self::mapping(pid, at), identity, padded(name)].concat();
        self.marked(10, USER, pid, time, body);
    }

    pub fn mmap2_with_build_id(&mut self, pid: u32, at: (u64, u64, u64), id: &[u8], name: &str) {
        let mut identity = vec![id.len() as u8, 0, 0, 0];
        identity.extend(id);
        identity.resize(24, 0);
        identity.extend([5u32, 2].iter().flat_map(|h| h.to_le_bytes()));
        let body = [Self::mapping(pid, at), identity, padded(name)].concat();
        self.marked(10, USER | 1 << 14, pid, 0, body);
    }

    pub fn exec(&mut self, pid: u32, time: u64, name: &str) {
        let body = [pid.to_le_bytes().to_vec(), pid.to_le_bytes().to_vec(), padded(name)].concat();
        self.marked(3, USER | 1 << 13, pid, time, body);
    }

    pub fn fork(&mut self, pid: u32, parent: u32, time: u64) {
        let mut body: Vec<u8> = [pid, parent, pid, parent].iter().flat_map(|h| h.to_le_bytes()).collect();
        body.extend(time.to_le_bytes());
        self.marked(7, USER, pid, time, body);
    }

    pub fn lost(&mut self, count: u64) {
        let number = self.events[0].number;
        self.marked(2, 0, 0, 0, [number.to_le_bytes(), count.to_le_bytes()].concat());
    }

    pub fn sample(&mut self, sample: &Sample) {
        let event = self.events.iter().find(|e| e.number == sample.number).unwrap_or(&self.events[0]).clone();
        let has = |field: u64| event.sample_type & field != 0;
        let mut words: Vec<u64> = Vec::new();
        let pid = u64::from(sample.pid);
        let fields = [
            (IDENTIFIER, event.number),
            (IP, sample.ip),
            (TID, pid << 32 | pid),
            (TIME, sample.time),
            (CPU, 0),
            (PERIOD, 1000),
        ];
        words.extend(fields.iter().filter(|(field, _)| has(*field)).map(|f| f.1));
        if has(READ) {
            words.extend(read_values(event.read_format));
        }
        if has(CALLCHAIN) {
            words.extend([2, (-512i64) as u64, sample.ip]);
        }
        if has(RAW) {
            // Four bytes of size and four of contents.
            words.push(4);
        }
        if has(BRANCH_STACK) {
            words.push(sample.branches.len() as u64);
            if event.branches & HARDWARE_INDEX != 0 {
                words.push(u64::MAX);
            }
            words.extend(sample.branches.iter().flat_map(|b| [b.0, b.1, b.2]));
            if event.branches & BRANCH_COUNTERS != 0 {
                words.extend(sample.branches.iter().map(|_| u64::MAX));
            }
        }
        let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.record(9, if sample.kernel { 1 } else { USER }, &body);
    }

    /// A file, with tables of build-ids and events.
    pub fn file(&self) -> Vec<u8> {
        let row = ATTRIBUTE as u64 + 16;
        let numbers = HEADER + row * self.events.len() as u64;
        let records = numbers + 8 * self.events.len() as u64;
        let end = records + self.records.len() as u64;
        let (build_ids, events) = (self.build_id_table(), self.event_table());
        let tables = end + 32;
        let mut file = b"PERFILE2".to_vec();
        let mut words =
            vec![HEADER, row, HEADER, row * self.events.len() as u64, records, end - records, 0, 0];
        words.extend([1 << 2 | 1 << 12, 0, 0, 0]);
        file.extend(words.iter().flat_map(|w: &u64| w.to_le_bytes()));
        for (i, event) in (0..).zip(&self.events) {
            file.extend(event.bytes());
            file.extend([numbers + 8 * i, 8].iter().flat_map(|w| w.to_le_bytes()));
        }
        file.extend(self.events.iter().flat_map(|e| e.number.to_le_bytes()));
        file.extend(&self.records);
        let at = [tables, build_ids.len() as u64, tables + build_ids.len() as u64, events.len() as u64];
        file.extend(at.iter().flat_map(|w| w.to_le_bytes()));
        [file, build_ids, events].concat()
    }

    /// The same as it comes through a pipe.
    pub fn pipe(&self) -> Vec<u8> {
        let mut all = Self::new(&self.events);
        for event in &self.events {
            all.record(64, 0, &[event.bytes(), event.number.to_le_bytes().to_vec()].concat());
        }
        let table = self.event_table();
        all.record(80, 0, &[12u64.to_le_bytes().to_vec(), table].concat());
        all.records.extend(&self.records);
        let mut build_ids = Self::new(&self.events);
        build_ids.records = self.build_id_table();
        for byte in build_ids.records.get_mut(..4).into_iter().flatten().zip(67u32.to_le_bytes()) {
            *byte.0 = byte.1;
        }
        [b"PERFILE2".to_vec(), 16u64.to_le_bytes().to_vec(), all.records, build_ids.records].concat()
    }

    /// The same with all records compressed: `pack` makes a part of a zstd stream; `kind` says which form of record.
    pub fn compressed(&self, kind: u32, parts: &[Vec<u8>]) -> Self {
        let mut packed =
            Self { records: Vec::new(), build_ids: self.build_ids.clone(), events: self.events.clone() };
        for part in parts {
            match kind {
                83 => {
                    let mut body = [(part.len() as u64).to_le_bytes().to_vec(), part.clone()].concat();
                    body.resize(body.len().next_multiple_of(8), 0xee);
                    packed.record(kind, 0, &body);
                }
                _ => packed.record(kind, 0, part),
            }
        }
        packed
    }

    fn build_id_table(&self) -> Vec<u8> {
        let mut table = Self::new(&[]);
        for (id, name) in &self.build_ids {
            let mut body = u32::MAX.to_le_bytes().to_vec();
            body.extend(id);
            body.resize(24, 0);
            body.extend([id.len() as u8, 0, 0, 0]);
            body.extend(padded(name));
            table.record(0, USER | 1 << 15, &body);
        }
        table.records
    }

    fn event_table(&self) -> Vec<u8> {
        let mut table: Vec<u8> =
            [self.events.len() as u32, ATTRIBUTE as u32].iter().flat_map(|h| h.to_le_bytes()).collect();
        for event in &self.events {
            let mut name = event.name.as_bytes().to_vec();
            name.resize((name.len() + 1).next_multiple_of(64), 0);
            table.extend(event.bytes());
            table.extend([1, name.len() as u32].iter().flat_map(|h| h.to_le_bytes()));
            table.extend(name);
            table.extend(event.number.to_le_bytes());
        }
        table
    }
}

/// Values as `read_format` says: two of a group, or one.
fn read_values(format: u64) -> Vec<u64> {
    let has = |bit: u64| format & bit != 0;
    let each = |value: u64| {
        [Some(value), has(4).then_some(11), has(16).then_some(0)].into_iter().flatten().collect::<Vec<_>>()
    };
    let times = [has(1).then_some(500), has(2).then_some(400)];
    let times: Vec<u64> = times.into_iter().flatten().collect();
    if has(8) {
        [vec![2], times, each(71), each(72)].concat()
    } else {
        let mut one = each(71);
        one.splice(1..1, times);
        one
    }
}

/// A text with its zero byte, and zeroes up to a multiple of eight.
fn padded(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}
