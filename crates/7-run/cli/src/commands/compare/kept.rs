//! `compare --baseline` and `--keep-baseline`: a folder with a program, its profile if it has one, and `baseline.json`.

use super::Compare;
use crate::files;
use afterlink_bench::analyse::SuiteAnalysis;
use afterlink_bench::baseline::Baseline;
use afterlink_bench::experiment::describe;
use afterlink_bench::{Analysis, ExperimentRecord};
use afterlink_core::{Error, Result};
use std::path::{Path, PathBuf};

/// What says what the folder holds.
const INDEX: &str = "baseline.json";

/// A folder with a program that was kept.
pub struct Stored {
    pub baseline: Baseline,
    pub program: PathBuf,
    pub profile: Option<PathBuf>,
}

impl Stored {
    /// # Errors
    /// There is none, or the program is not what was kept.
    pub fn open(folder: &Path) -> Result<Self> {
        let index = folder.join(INDEX);
        if !index.exists() {
            return Err(Error::new("no baseline is kept there")
                .in_file(folder.display())
                .next("keep one with `afterlink compare --self PROGRAM --keep-baseline DIR -- WORKLOAD`"));
        }
        let text = String::from_utf8_lossy(&files::read(&index)?).into_owned();
        let baseline = Baseline::parse(&text).map_err(|e| e.in_file(index.display()))?;
        let program = folder.join(&baseline.program.path);
        if describe("", &program)?.sha1 != baseline.program.sha1 {
            return Err(Error::new("is not the program that was kept: its contents have changed")
                .in_file(program.display())
                .next("keep a baseline anew"));
        }
        let profile = baseline.profile.as_ref().map(|name| folder.join(name));
        Ok(Self { baseline, program, profile })
    }
}

impl Compare {
    /// Keeps the newer program if the verdict allows it, and says what was done.
    pub(super) fn keep(&self, records: &[ExperimentRecord], suite: &SuiteAnalysis) -> Result<Option<String>> {
        let Some(folder) = &self.keep_baseline else { return Ok(None) };
        if matches!(suite.exit_code(), 1 | 3) {
            return Ok(Some(format!("not kept      {}: the verdict is against it", folder.display())));
        }
        let pairs: Vec<(&ExperimentRecord, &Analysis)> = records.iter().zip(&suite.benchmarks).collect();
        let profile = self.profile_b.as_ref();
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(mut baseline) = Baseline::of(&pairs, profile.map(|path| name(path))) else {
            return Ok(None);
        };
        let program = std::mem::take(&mut baseline.program.path);
        baseline.program.path = name(&program).into();
        let faulty = |e: std::io::Error| Error::new(format!("cannot be made: {e}")).in_file(folder.display());
        std::fs::create_dir_all(folder).map_err(faulty)?;
        if baseline.profile.as_deref() == Some(&name(&program)) || name(&program) == INDEX {
            return Err(Error::new("the program, its profile and the baseline's index would be one file")
                .in_file(folder.display())
                .next("rename the program or the profile"));
        }
        files::Target::check(&folder.join(name(&program)), &program)?
            .write_program(&files::read(&program)?)?;
        if let Some(profile) = profile {
            files::Target::check(&folder.join(name(profile)), profile)?.write(&files::read(profile)?)?;
        }
        let former = Stored::open(folder).ok();
        // Last: what it names is there.
        files::Target::check(&folder.join(INDEX), &program)?.write(baseline.to_json().as_bytes())?;
        let in_use = [Some(name(&program)), baseline.profile.clone()];
        for old in former.into_iter().flat_map(|former| [Some(former.program), former.profile]).flatten() {
            if !in_use.contains(&Some(name(&old))) {
                let _ = std::fs::remove_file(old);
            }
        }
        Ok(Some(format!("kept          {} in {}", baseline.program.label, folder.display())))
    }
}
