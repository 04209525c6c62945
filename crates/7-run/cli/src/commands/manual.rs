//! `afterlink manual`.

use crate::{commands, files};
use afterlink_core::{Error, Result};
use clap::CommandFactory;
use clap_complete::{Generator, Shell};
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
        clap_mangen::generate_to(crate::Cli::command(), &pages).map_err(failed(&pages))?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            // Where it writes to a file itself, it does not give back what goes wrong.
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut crate::Cli::command(), NAME, &mut text);
            let path = completions.join(shell.file_name(NAME));
            std::fs::write(&path, text).map_err(failed(&path))?;
        }
        commands::print_text(&format!("{}\n{}", pages.display(), completions.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The command.
const NAME: &str = "afterlink";

fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| {
        let what = format!("the directory cannot be made: {}", files::reason(&e));
        Error::new(what).in_file(path.display()).next("give another directory")
    })
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |e| files::failed(path, &e)
}
