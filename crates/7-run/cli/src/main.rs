//! The command `afterlink`: one file a subcommand in `commands/`.

mod commands;
mod files;
mod interrupt;
mod layouts;
mod linked;
mod progress;
mod workload;

use afterlink_core::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Lays out a linked program anew so that it runs faster, proves that it is the same program, and measures the gain.
///
/// The whole job in one command:
///     afterlink tune ./server -o ./server.fast -- ./workload.sh {}
///
/// The program must be linked with -Wl,--emit-relocs and not be stripped; strip the result if you like.
#[derive(Parser)]
#[command(name = "afterlink", version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
enum Command {
    Tune(commands::tune::Tune),
    Info(commands::info::Info),
    Instrument(commands::instrument::Instrument),
    Record(commands::record::Record),
    #[command(subcommand)]
    Profile(commands::profile::Profile),
    Optimize(commands::optimize::Optimize),
    Verify(commands::verify::Verify),
    Bisect(commands::bisect::Bisect),
    Compare(commands::compare::Compare),
    Doctor(commands::doctor::Doctor),
    Heatmap(commands::heatmap::Heatmap),
    Export(commands::export::Export),
    Shuffle(commands::shuffle::Shuffle),
    Where(commands::where_is::Where),
    Manual(commands::manual::Manual),
}

/// Exit code of a command line that makes no sense (EX_USAGE of sysexits.h).
const WRONG_USAGE: i32 = 64;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        // Help and version are no errors; a wrong command line must not look like a verdict of `compare`.
        let is_lost = error.print().is_err_and(|e| e.kind() != std::io::ErrorKind::BrokenPipe);
        std::process::exit(if error.use_stderr() { WRONG_USAGE } else { i32::from(is_lost) })
    });
    interrupt::install();
    let outcome = run(cli.command);
    interrupt::give_way();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            commands::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Compare(compare) => compare.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Bisect(bisect) => bisect.run(),
        Command::Export(export) => export.run(),
        Command::Heatmap(heatmap) => heatmap.run(),
        Command::Info(info) => info.run(),
        Command::Instrument(instrument) => instrument.run(),
        Command::Manual(manual) => manual.run(),
        Command::Optimize(optimize) => optimize.run(),
        Command::Profile(profile) => profile.run(),
        Command::Record(record) => record.run(),
        Command::Shuffle(shuffle) => shuffle.run(),
        Command::Tune(tune) => tune.run(),
        Command::Verify(verify) => verify.run(),
        Command::Where(place) => place.run(),
    }
}
