//! Where the debug information is that stands in other files than a program.

use afterlink_core::{NoSplitFiles, SplitFiles};
use std::fmt;
use std::sync::Arc;

/// Finds it, if anybody does.
#[derive(Clone, Default)]
pub struct DebugSource(pub Option<Arc<dyn SplitFiles>>);

impl DebugSource {
    pub(crate) fn files(&self) -> &dyn SplitFiles {
        self.0.as_deref().unwrap_or(&NoSplitFiles)
    }
}

impl fmt::Debug for DebugSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "files beside the program" } else { "no files" })
    }
}
