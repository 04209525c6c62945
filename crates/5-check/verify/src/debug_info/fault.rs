//! What is wrong with debug information.

/// What is wrong, and where: an address of the input, and one of the output.
pub(crate) struct Fault {
    pub what: String,
    pub input: Option<u64>,
    pub output: Option<u64>,
}

impl Fault {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), input: None, output: None }
    }

    pub fn output_at(self, output: u64) -> Self {
        Self { output: Some(output), ..self }
    }
}

impl From<gimli::Error> for Fault {
    fn from(error: gimli::Error) -> Self {
        Self::new(format!("cannot be read: {error}"))
    }
}
