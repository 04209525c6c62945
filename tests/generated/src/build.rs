//! Draws, writes and compiles the program of a seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use afterlink_hostile::random::Random;
use afterlink_testkit::execute::run;

use crate::exceptions;
use crate::program::{Program, generate};
use crate::settings::Settings;

/// Who writes the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// `pieces`.
    Pieces,
    /// Csmith (Yang, Chen, Eide, Regehr: "Finding and understanding bugs in C compilers", PLDI 2011): nested expressions, loops
    /// and jumps over structures and pointers.
    Csmith,
    /// `exceptions`.
    Exceptions,
}

impl Writer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pieces => "pieces",
            Self::Csmith => "csmith",
            Self::Exceptions => "exceptions",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Pieces, Self::Csmith, Self::Exceptions].into_iter().find(|writer| writer.name() == name)
    }
}

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Order {
    pub writer: Writer,
    pub seed: u64,
    /// Names of pieces: only these, if there are any, and none of those.
    pub only: Vec<String>,
    pub without: Vec<String>,
}

/// A compiled program, with its sources beside it.
#[derive(Clone, Debug)]
pub struct Built {
    pub seed: u64,
    pub folder: PathBuf,
    pub program: PathBuf,
    /// The command that made it.
    pub command: String,
    pub pieces: Vec<&'static str>,
}

/// Builds into `folder`, which is emptied. `Err` has the compiler's words.
pub fn build(order: &Order, folder: &Path) -> Result<Built, String> {
    let say = |e: std::io::Error| format!("{}: {e}", folder.display());
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(say)?;
    let random = &mut Random::new(order.seed);
    let settings = Settings::draw(random);
    let program = match order.writer {
        Writer::Pieces => generate(random, &settings, &order.only, &order.without),
        Writer::Csmith => csmith(order.seed, folder)?,
        Writer::Exceptions => exceptions::generate(random, &settings),
    };
    let is_cpp = order.writer == Writer::Exceptions;
    for (name, text) in &program.files {
        fs::write(folder.join(name), text).map_err(say)?;
    }
    let mut words: Vec<&str> = vec![settings.command(is_cpp), "-w", "-I/usr/include/csmith"];
    words.extend(settings.flags());
    words.extend(&program.options);
    words.extend(program.files.iter().map(|(name, _)| name.as_str()).filter(|name| !name.ends_with(".h")));
    words.extend(["-Wl,--emit-relocs", "-lm", "-o", "original"]);
    let mut command = Command::new(words[0]);
    let outcome = run(
        command.args(&words[1..]).env("LC_ALL", "C").current_dir(folder),
        "",
        folder,
        Duration::from_secs(120),
    );
    let command = words.join(" ");
    if outcome.exit != 0 {
        return Err(format!("{command}\n{}", outcome.stderr()));
    }
    let program_path = folder.join("original");
    fs::write(folder.join("command"), format!("{command}\n")).map_err(say)?;
    Ok(Built {
        seed: order.seed,
        folder: folder.to_owned(),
        program: program_path,
        command,
        pieces: program.pieces,
    })
}

fn csmith(seed: u64, folder: &Path) -> Result<Program, String> {
    let mut command = Command::new("csmith");
    command.args(["--seed", &seed.to_string(), "--max-funcs", "14", "--max-block-depth", "4", "--concise"]);
    let outcome = run(&mut command, "", folder, Duration::from_secs(20));
    if outcome.exit != 0 {
        return Err(format!("csmith: {}: {}", outcome.exit_text(), outcome.stderr()));
    }
    Ok(Program { files: vec![("program.c".to_owned(), outcome.stdout())], ..Program::default() })
}
