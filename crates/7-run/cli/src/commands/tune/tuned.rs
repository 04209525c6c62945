//! What `tune` found, as text and as JSON.

use super::timing::Timing;
use afterlink_pipeline::Report;
use std::fmt;
use std::path::PathBuf;

#[derive(serde::Serialize)]
pub struct Tuned {
    /// In the order of the command.
    pub binaries: Vec<Binary>,
    pub timing: Option<Timing>,
    /// Commands to go on with.
    pub next: Vec<Next>,
}

/// One program or shared object.
#[derive(serde::Serialize)]
pub struct Binary {
    pub binary: PathBuf,
    /// Where the new one is; `None` if nothing of it ran.
    pub output: Option<PathBuf>,
    #[serde(flatten)]
    pub report: Option<Report>,
}

/// A command and what it is for.
#[derive(serde::Serialize)]
pub struct Next {
    pub command: String,
    pub purpose: &'static str,
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for binary in &self.binaries {
            if self.binaries.len() > 1 {
                write!(f, "{:<12} ", binary.binary.display())?;
                match &binary.output {
                    Some(output) => writeln!(f, "→ {}", output.display())?,
                    None => {
                        writeln!(f, "left out: it was loaded, but nothing of it ran that can be counted\n")?
                    }
                }
            }
            if let Some(report) = &binary.report {
                let end = if self.binaries.len() > 1 { "\n" } else { "" };
                writeln!(f, "{report}{end}")?;
            }
        }
        if let Some(timing) = &self.timing {
            write!(f, "{timing}")?;
        }
        for (number, next) in self.next.iter().enumerate() {
            let label = if number == 0 { "next" } else { "" };
            let end = if number + 1 == self.next.len() { "" } else { "\n" };
            write!(f, "{label:<12} {}\n                 {}{end}", next.command, next.purpose)?;
        }
        Ok(())
    }
}
