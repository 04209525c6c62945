//! One line on the terminal that says what is being done; nothing where stderr is no terminal.

use afterlink_pipeline::Progress;
use std::io::{IsTerminal, Write};

pub struct Terminal {
    shown: bool,
}

impl Terminal {
    /// Silent if `quiet` or if nobody watches.
    pub fn new(quiet: bool) -> Self {
        Self { shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Clears the line.
    pub fn done(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

impl Progress for Terminal {
    fn step(&self, what: &str) {
        if self.shown {
            eprint!("\r\x1b[K{what} …");
            let _ = std::io::stderr().flush();
        }
    }
}
