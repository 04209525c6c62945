//! `afterlink heatmap`.

use crate::commands::{self, where_is::map_of};
use crate::files::{self, Target};
use afterlink_core::address_map::Lookup;
use afterlink_core::{Error, InputAddr, Result};
use afterlink_image::Image;
use afterlink_ingest::{Kind, Program, recognize};
use afterlink_pipeline::names::spelled;
use afterlink_report::heatmap::{Heat, HotFunction, Panel, Region, heatmap_page};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Draws where a program's code runs, and when, before and after
///
/// One HTML page that needs no network: time against code address, from samples.
///
///     afterlink record -o before.data -- ./server its arguments
///     afterlink heatmap before.data --binary server -o map.html
///
/// With the program as it was laid out, the same samples are drawn where their code is now; with a
/// recording of that one, what really ran:
///     afterlink heatmap before.data --binary server --optimized server.fast -o map.html
///     afterlink heatmap before.data after.data --binary server --optimized server.fast -o map.html
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Heatmap {
    /// The recording (perf.data) of the program, by afterlink record or perf record.
    recording: PathBuf,
    /// The recording of the program as it was laid out.
    #[arg(requires = "optimized")]
    after: Option<PathBuf>,
    /// The program that was recorded.
    #[arg(long)]
    binary: PathBuf,
    /// What afterlink optimize made of it.
    #[arg(long, value_name = "OUT")]
    optimized: Option<PathBuf>,
    /// Where the page goes.
    #[arg(long, short, value_name = "FILE.html")]
    output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What was drawn.
#[derive(serde::Serialize)]
struct Drawn {
    samples: Vec<u64>,
    output: String,
}

impl std::fmt::Display for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts: Vec<String> = self.samples.iter().map(u64::to_string).collect();
        writeln!(f, "samples      {}", counts.join(" before, "))?;
        write!(f, "written      {}", self.output)
    }
}

impl Heatmap {
    pub fn run(self) -> Result<ExitCode> {
        let inputs = [Some(&self.recording), self.after.as_ref(), self.optimized.as_ref()];
        let target = Target::check(&self.output, &self.binary)?.differs_from(inputs.into_iter().flatten())?;
        let bytes = files::map(&self.binary)?;
        let image = Image::parse(&bytes).map_err(|e| e.in_file(self.binary.display()))?;
        let optimized = self.optimized.as_deref().map(|path| files::map(path).map(|bytes| (path, bytes)));
        let optimized = optimized.transpose()?;
        let output = match &optimized {
            Some((path, bytes)) => Some((*path, Image::parse(bytes).map_err(|e| e.in_file(path.display()))?)),
            None => None,
        };
        let map = output.as_ref().map(|(path, output)| map_of(output, path)).transpose()?;
        let mut functions = Functions::default();
        let mut moved = Heat::default();
        let before = panel(&self.binary, &image, &self.recording, &mut |program, time, address| {
            functions.add(program, address);
            let place = map.as_ref().and_then(|map| map.copy_of(address));
            moved.add(time, place.map_or(address.get(), |place| place.get()));
        })?;
        let note = format!("{}, where their code stands here", before.note);
        let mut panels = vec![before];
        if let (Some((path, output)), Some(map)) = (&output, &map) {
            functions.find_in(map);
            panels.push(match &self.after {
                Some(recording) => panel(path, output, recording, &mut |_, _, _| {})?,
                None => Panel { title: name_of(path), note, regions: regions(output), heat: moved },
            });
        }
        target.write(heatmap_page(&panels, &functions.hottest()).as_bytes())?;
        let drawn = Drawn {
            samples: panels.iter().map(|panel| panel.heat.samples()).collect(),
            output: self.output.display().to_string(),
        };
        commands::print(&drawn, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a recording has of a file.
fn panel(
    path: &Path,
    image: &Image,
    recording: &Path,
    each: &mut dyn FnMut(&Program, u64, InputAddr),
) -> Result<Panel> {
    let in_recording = |e: Error| e.in_file(recording.display());
    let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let program = Program::new(image, &whole).map_err(|e| e.in_file(path.display()))?;
    let file = files::Recording::open(recording)?;
    if recognize(file.viewed().bytes()) != Kind::PerfData {
        return Err(in_recording(
            Error::new("it does not say when its samples were taken")
                .next("give a recording (perf.data) of `afterlink record` or `perf record`"),
        ));
    }
    let mut heat = Heat::default();
    let notes = afterlink_ingest::perf_data::for_each_place(file.viewed(), &program, &mut |time, address| {
        heat.add(time, address.get());
        each(&program, time, address);
    })
    .map_err(in_recording)?;
    for note in notes {
        let _ = writeln!(std::io::stderr(), "afterlink: note: {}: {note}", recording.display());
    }
    if heat.samples() == 0 {
        let next = "record it while it works, and name the very file that ran with --binary or --optimized";
        return Err(in_recording(Error::new(format!("no sample is in {}", path.display())).next(next)));
    }
    let note = format!("samples of {}", recording.display());
    Ok(Panel { title: name_of(path), note, regions: regions(image), heat })
}

/// A file's name without folders.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn regions(image: &Image) -> Vec<Region> {
    let code = image.sections.iter().map(|(_, section)| section).filter(|section| section.is_code());
    let mut regions: Vec<Region> = code
        .map(|section| Region {
            name: section.name.to_owned(),
            start: section.address.get(),
            end: section.address.get() + section.size,
        })
        .collect();
    regions.sort_by_key(|region| region.start);
    regions
}

/// Samples by function.
#[derive(Default)]
struct Functions {
    by_entry: BTreeMap<InputAddr, HotFunction>,
}

impl Functions {
    fn add(&mut self, program: &Program, address: InputAddr) {
        let Some(piece) = program.piece_at(address) else { return };
        let new = || HotFunction {
            name: spelled(&String::from_utf8_lossy(&piece.name)).into_owned(),
            samples: 0,
            address: piece.start.get(),
            moved_to: None,
        };
        self.by_entry.entry(piece.start).or_insert_with(new).samples += 1;
    }

    fn find_in(&mut self, map: &Lookup) {
        for (address, function) in &mut self.by_entry {
            function.moved_to = map.copy_of(*address).map(|place| place.get());
        }
    }

    fn hottest(self) -> Vec<HotFunction> {
        let mut functions: Vec<HotFunction> = self.by_entry.into_values().collect();
        functions.sort_by_key(|function| (std::cmp::Reverse(function.samples), function.address));
        functions
    }
}
