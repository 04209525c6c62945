//! `perf.data`: samples of Linux `perf record`, to a [`Profile`] of one program.
//!
//! The file is looked at twice. First for its events, for what was mapped where in which process, and for how many samples
//! each event has ([`survey`]); then for the samples, whose addresses become addresses of the program, summed as they come. One look would
//! do if records came in the order of time; but they come in rounds, each as long as the recorder liked, and a round may be the whole file. So
//! memory follows the number of mappings and of different places in the program, whatever the number of samples.
//!
//! Formats: `perf.data-file-format.txt` of Linux's tools/perf, and `perf_event.h`.

mod attributes;
mod fields;
mod folder;
mod header;
mod records;
mod sample;
mod survey;

use crate::program::Program;
use crate::reading::Reading;
use crate::recording::{Candidate, Moment, RecordedFile, Samples, choose, left_out, of_program, roles};
use afterlink_core::{Error, InputAddr, Result, Viewed};
use attributes::Attribute;
pub use folder::joined;
use header::Header;
use records::kind;
use sample::Sample;
use survey::{Moments, Survey, candidates, is_of_user};

/// Reads a recording.
///
/// # Errors
/// The file is damaged or not of a kind that is read, the program did not run in it, or it was another build.
pub fn read(file: Viewed, program: &Program) -> Result<Reading> {
    let Surveyed { survey, candidates, events, mut samples, is_cut } = look(file, program)?;
    for_each_sample(
        file,
        &survey,
        &is_chosen(&candidates, &events),
        &mut |event, sample, moment, is_of_user| {
            let address = sample.address.filter(|_| is_of_user);
            // The calls that have not returned are no branches.
            let branches = sample.branches().take(if event.has_branches() { usize::MAX } else { 0 });
            samples.add((process_of(&sample)?, moment), address, branches, event.keeps_all_branches());
            Ok(())
        },
    )?;
    let titles: Vec<String> = events.iter().map(|&e| candidates[e].title.clone()).collect();
    let mut reading = samples.finish(&titles)?;
    reading.notes.extend(left_out(&candidates, &events));
    reading.notes.extend(notes_of(&survey, is_cut));
    Ok(reading)
}

/// Tells of each sample when it was, in nanoseconds of the recorder's clock, and where in the program that ran: not where its code came
/// from, if that is an output of afterlink. Gives what is to be said of the recording.
///
/// # Errors
/// As of [`read`]; or its samples have no time.
pub fn for_each_place(
    file: Viewed,
    program: &Program,
    each: &mut dyn FnMut(u64, InputAddr),
) -> Result<Vec<String>> {
    let Surveyed { survey, candidates, events, mut samples, is_cut } = look(file, program)?;
    for_each_sample(
        file,
        &survey,
        &is_chosen(&candidates, &events),
        &mut |_, sample, moment, is_of_user| {
            let Some(time) = sample.time else {
                return Err(Error::new("its samples have no time")
                    .next("record with `afterlink record`, or perf record -T"));
            };
            let address = sample.address.filter(|_| is_of_user);
            let process = process_of(&sample)?;
            if let Some(place) = address.and_then(|address| samples.place((process, moment), address)) {
                each(time, place);
            }
            Ok(())
        },
    )?;
    Ok(notes_of(&survey, is_cut))
}

/// What the first look found.
struct Surveyed<'a, 'p> {
    survey: Survey,
    candidates: Vec<Candidate>,
    /// Those that are used.
    events: Vec<usize>,
    samples: Samples<'a, 'p>,
    is_cut: bool,
}

/// The first look, and whether the file is cut off.
fn survey(file: Viewed) -> Result<(Survey, bool)> {
    let header = Header::read(file.bytes())?;
    let range = header.records.clone();
    let mut survey = Survey::new(header);
    let is_cut = records::for_each(file, range, &mut |record| survey.add(record))?;
    Ok((survey, is_cut))
}

fn look<'a, 'p>(file: Viewed, program: &'a Program<'p>) -> Result<Surveyed<'a, 'p>> {
    let (mut survey, is_cut) = survey(file)?;
    let candidates = candidates(&survey);
    let events = choose(&candidates);
    if events.is_empty() {
        return Err(no_samples(&survey));
    }
    let files = files_of(&survey);
    let ours = of_program(&files, program)?;
    let mappings = std::mem::take(&mut survey.processes).settle(roles(&files, &ours));
    Ok(Surveyed { survey, candidates, events, samples: Samples::new(program, mappings), is_cut })
}

fn is_chosen(candidates: &[Candidate], events: &[usize]) -> Vec<bool> {
    (0..candidates.len()).map(|event| events.contains(&event)).collect()
}

/// The second look: each sample of the chosen events, with its moment, and whether it is of the program and not of the kernel.
fn for_each_sample(
    file: Viewed,
    survey: &Survey,
    is_chosen: &[bool],
    each: &mut dyn FnMut(&Attribute, Sample, Moment, bool) -> Result<()>,
) -> Result<()> {
    let mut moments = Moments::new(&survey.header);
    let attributes = &survey.header.attributes;
    records::for_each(file, survey.header.records.clone(), &mut |record| {
        moments.next();
        let event =
            attributes.of_sample(record.body).filter(|&e| record.kind == kind::SAMPLE && is_chosen[e]);
        let Some(event) = event.map(|e| &attributes.list[e]) else { return Ok(()) };
        let sample = Sample::read(record.body, event)?;
        let moment = moments.of_sample(sample.time);
        each(event, sample, moment, is_of_user(record.misc))
    })?;
    Ok(())
}

fn process_of(sample: &Sample) -> Result<u32> {
    sample.process.ok_or_else(|| {
        Error::new("its samples do not say which process they are of")
            .next("record it by perf record, which always says so")
    })
}

/// The files that were mapped in a recording.
///
/// # Errors
/// It is damaged.
pub fn files(file: Viewed) -> Result<Vec<RecordedFile>> {
    Ok(files_of(&survey(file)?.0))
}

/// The recorded files with the build-ids that stand in the table.
fn files_of(survey: &Survey) -> Vec<RecordedFile> {
    let known = &survey.header.build_ids;
    let with_id = |file: &RecordedFile| RecordedFile {
        build_id: file.build_id.or_else(|| known.get(&file.name).copied()),
        ..file.clone()
    };
    survey.files.iter().map(with_id).collect()
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
