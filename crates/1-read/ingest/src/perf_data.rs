//! `perf.data`: samples of Linux `perf record`, to a [`Profile`] of one program.
//!
//! The file is looked at twice. First for its events, for what was mapped where in which process, and for how many samples
//! each event has ([`survey`]); then for the samples, whose addresses become addresses of the program, summed as they come. One look would
//! do if records came in the order of time; but they come in rounds, each as long as the recorder liked, and a round may be the whole file. So
//! memory follows the number of mappings and of different places in the program, whatever the number of samples.
//!
//! Formats: `perf.data-file-format.txt` of Linux's tools/perf, and `perf_event.h`.

mod attributes;
mod branch_stack;
mod fields;
mod header;
mod processes;
mod records;
mod sample;
mod survey;

use crate::program::{Program, file_name};
use crate::reading::Reading;
use crate::traces::{Agreement, Spot, Traces};
use afterlink_core::{Error, Result, Viewed};
use branch_stack::{LeftOut, Stacks};
use header::{Header, padded};
use processes::{FileId, Mappings, file_offset};
use records::{Record, kind};
use sample::Sample;
use survey::{Moments, RecordedFile, Survey, chosen, is_of_user};

/// Reads a recording.
///
/// # Errors
/// The file is damaged or not of a kind that is read, the program did not run in it, or it was another build.
pub fn read(file: Viewed, program: &Program) -> Result<Reading> {
    let header = Header::read(file.bytes())?;
    let range = header.records.clone();
    let mut survey = Survey::new(header);
    let is_cut = records::for_each(file, range.clone(), &mut |record| survey.add(record))?;
    let mut notes = notes_of(&survey, is_cut);
    let events = chosen(&survey);
    if events.is_empty() {
        return Err(no_samples(&survey));
    }
    let ours = files_of(&survey, program)?;
    let list = &survey.header.attributes.list;
    notes.extend(left_out_events(&survey, &events));
    let mappings = std::mem::take(&mut survey.processes).settle(|file| ours.contains(&file));
    let mut samples = Samples::new(&survey, program, mappings, &events);
    records::for_each(file, range, &mut |record| samples.add(record))?;
    let Samples { traces, left_out, seen, .. } = samples;
    let titles: Vec<String> = events.iter().map(|&e| list[e].title()).collect();
    // Where a machine could not give stacks, they are empty.
    let with_branches = traces.has_branches();
    let (profile, agreement) =
        if with_branches { traces.into_branches(program)? } else { traces.into_samples(program, &titles)? };
    notes.insert(0, outcome(&titles, with_branches, &seen, &agreement));
    notes.extend(doubts(with_branches, &left_out, &agreement));
    Ok(Reading { profile, notes })
}

/// How many samples there were, and how many of them were in the program.
#[derive(Default)]
struct Seen {
    samples: u64,
    inside: u64,
}

/// The samples on their way into a profile.
struct Samples<'a, 'p> {
    survey: &'a Survey,
    program: &'a Program<'p>,
    mappings: Mappings,
    moments: Moments,
    /// Whether the samples of an event are used.
    is_chosen: Vec<bool>,
    traces: Traces,
    left_out: LeftOut,
    seen: Seen,
}

impl<'a, 'p> Samples<'a, 'p> {
    fn new(survey: &'a Survey, program: &'a Program<'p>, mappings: Mappings, events: &[usize]) -> Self {
        let is_chosen = (0..survey.header.attributes.list.len()).map(|e| events.contains(&e)).collect();
        Self {
            survey,
            program,
            mappings,
            moments: Moments::new(&survey.header),
            is_chosen,
            traces: Traces::default(),
            left_out: LeftOut::default(),
            seen: Seen::default(),
        }
    }

    fn add(&mut self, record: Record) -> Result<()> {
        self.moments.next();
        if record.kind != kind::SAMPLE {
            return Ok(());
        }
        let attributes = &self.survey.header.attributes;
        let Some(event) = attributes.of_sample(record.body).filter(|&e| self.is_chosen[e]) else {
            return Ok(());
        };
        let event = &attributes.list[event];
        let sample = Sample::read(record.body, event)?;
        let Some(process) = sample.process else {
            return Err(Error::new("its samples do not say which process they are of")
                .next("record it by perf record, which always says so"));
        };
        self.seen.samples += 1;
        let view = self.mappings.view(process, self.moments.of_sample(sample.time));
        if view.is_empty() {
            return Ok(());
        }
        let program = self.program;
        let place = |address: u64| program.address_of(file_offset(&view, address)?);
        let at = sample.address.filter(|_| is_of_user(record.misc)).and_then(place);
        self.seen.inside += u64::from(at.is_some());
        if event.has_branches() {
            let starts_piece = |spot: Spot| {
                spot.is_some_and(|at| program.piece_at(at).is_some_and(|piece| piece.start == at))
            };
            let mut stacks = Stacks {
                traces: &mut self.traces,
                all_kinds: event.keeps_all_branches(),
                left_out: &mut self.left_out,
            };
            stacks.add(sample.branches, &place, &starts_piece);
        }
        if let Some(at) = at {
            self.traces.add_sample(at, 1);
        }
        Ok(())
    }
}

/// Which of the recorded files are the program: those with its build-id; where none is known, those of its name.
fn files_of(survey: &Survey, program: &Program) -> Result<Vec<FileId>> {
    let build_id =
        |file: &RecordedFile| file.build_id.or_else(|| survey.header.build_ids.get(&file.name).copied());
    let own = (!program.build_id.is_empty()).then(|| padded(&program.build_id));
    let bare = |name: &[u8]| name.strip_suffix(b" (deleted)").unwrap_or(name).to_vec();
    let (mut by_id, mut by_path, mut by_name, mut other_build) = (vec![], vec![], vec![], None);
    for (number, file) in (0..).zip(&survey.files) {
        let name = bare(&file.name);
        let same_name = file_name(&name) == program.file_name();
        match (own, build_id(file)) {
            (Some(own), Some(id)) if own == id => by_id.push(number),
            (Some(_), Some(id)) if same_name => other_build = Some(id),
            (Some(_), Some(_)) => {}
            _ if name == program.path => by_path.push(number),
            _ if same_name => by_name.push(number),
            _ => {}
        }
    }
    let found = [by_id, by_path, by_name].into_iter().find(|files| !files.is_empty());
    found.ok_or_else(|| match other_build {
        Some(id) => Error::new(format!(
            "it was recorded with another build of {}: build-id {}, this one has {}",
            String::from_utf8_lossy(program.file_name()),
            hexadecimal(&id),
            hexadecimal(&program.build_id)
        ))
        .next("give the very file that ran, or record this one"),
        None => Error::new(format!(
            "{} did not run in this recording; what did: {}",
            String::from_utf8_lossy(program.file_name()),
            examples(survey)
        ))
        .next("give the file that ran with --binary, or record the program again"),
    })
}

fn hexadecimal(id: &[u8]) -> String {
    let length = id.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    id[..length].iter().map(|b| format!("{b:02x}")).collect()
}

/// A few of the recorded files.
fn examples(survey: &Survey) -> String {
    let names = survey.files.iter().map(|f| String::from_utf8_lossy(&f.name).into_owned());
    let mut names: Vec<String> = names.filter(|n| n.starts_with('/') && !n.starts_with("//")).collect();
    names.sort();
    names.dedup();
    match names.len() {
        0 => "nothing that has a name".to_owned(),
        1..=4 => names.join(", "),
        count => format!("{} and {} more", names[..4].join(", "), count - 4),
    }
}

fn no_samples(survey: &Survey) -> Error {
    if survey.has_traces {
        return Error::new("it holds a processor's trace (Intel PT, Arm SPE or CoreSight), which is not read itself").next(
            "unpack it into branch stacks: perf inject --itrace=i1000il -i FILE -o OUT (of Arm SPE: --itrace=bl), and give OUT",
        );
    }
    if survey.strange_samples > 0 {
        return Error::new("none of its samples is of an event that it describes")
            .next("record it anew: it is damaged");
    }
    Error::new("it has no sample").next("record for longer, while the program works")
}

fn notes_of(survey: &Survey, is_cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if survey.header.is_unfinished {
        notes.push("the recording was not ended properly: what was written of it is used".to_owned());
    } else if is_cut {
        notes.push("the file ends in the middle of a record, which is left out".to_owned());
    }
    if survey.lost > 0 {
        notes.push(format!(
            "{} samples or records were lost while recording: record at a lower rate (-F), or with larger buffers (-m)",
            survey.lost
        ));
    }
    if survey.throttled > 0 {
        notes.push(format!(
            "the kernel held back samples {} times: record at a lower rate (-F)",
            survey.throttled
        ));
    }
    if survey.strange_samples > 0 {
        notes.push(format!(
            "{} samples of events that nothing describes are left out",
            survey.strange_samples
        ));
    }
    notes
}

fn left_out_events(survey: &Survey, events: &[usize]) -> Option<String> {
    let list = &survey.header.attributes.list;
    let others = survey.samples.iter().enumerate().filter(|(e, count)| **count > 0 && !events.contains(e));
    let others: Vec<String> = others.map(|(e, count)| format!("{} ({count})", list[e].title())).collect();
    (!others.is_empty()).then(|| format!("samples of other events are left out: {}", others.join(", ")))
}

/// What was used, in one line.
fn outcome(titles: &[String], with_branches: bool, seen: &Seen, agreement: &Agreement) -> String {
    let Seen { samples, inside } = seen;
    let what = titles.join(", ");
    if with_branches {
        format!("{samples} samples of {what} with {} branches from or to the program", agreement.branches)
    } else {
        format!("{samples} samples of {what}, {inside} of them in the program")
    }
}

/// What speaks against the profile.
fn doubts(with_branches: bool, left_out: &LeftOut, agreement: &Agreement) -> Vec<String> {
    let mut doubts = Vec::new();
    if left_out.wrong_path > 0 {
        doubts.push(format!("{} branches that were only predicted are left out", left_out.wrong_path));
    }
    if with_branches {
        doubts.extend(agreement.doubt());
    }
    doubts
}
