//! `afterlink manual`.

use crate::commands;
use afterlink_core::{Error, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the man pages and the shells' completions, made from the same table as this help
///
/// Into DIR/man/man1, and DIR/completions for bash, zsh and fish.
/// To try them:
///     afterlink manual /tmp/afterlink
///     man -M /tmp/afterlink/man afterlink-optimize
///     source /tmp/afterlink/completions/afterlink.bash
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Manual {
    /// The directory to write into; created if missing.
    directory: PathBuf,
}

impl Manual {
    pub fn run(self) -> Result<ExitCode> {
        let pages = self.directory.join("man/man1");
        let completions = self.directory.join("completions");
        make_directory(&pages)?;
        make_directory(&completions)?;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |e: std::io::Error| Error::new(format!("cannot be written: {e}")).in_file(path)
        };
        clap_mangen::generate_to(crate::Cli::command(), &pages).map_err(failed(&pages))?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut crate::Cli::command(), "afterlink", &completions)
                .map_err(failed(&completions))?;
        }
        commands::print_text(&format!("{}\n{}", pages.display(), completions.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path)
        .map_err(|e| Error::new(format!("the directory cannot be made: {e}")).in_file(path.display()))
}
