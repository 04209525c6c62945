//! The output's numbers of sections.

use crate::SectionRef;

/// Which section of the output a section of the input or of the plan has become.
#[derive(Clone, Debug)]
pub(crate) struct IndexMap {
    /// By input index; 0 if the section is dropped.
    pub input: Vec<u16>,
    /// Output index of the first new section.
    pub new: u16,
    pub new_count: usize,
    pub counters: Option<u16>,
}

impl IndexMap {
    /// Of an input with that many sections, all dropped yet.
    pub fn new(sections: usize) -> Self {
        Self { input: vec![0; sections], new: 0, new_count: 0, counters: None }
    }

    /// The output's index of an input section; `None` if there is no such section or it is dropped.
    pub fn of_input(&self, index: u32) -> Option<u16> {
        self.input.get(index as usize).copied().filter(|&i| i != 0)
    }

    /// The output's index of any section.
    pub fn of(&self, section: SectionRef) -> Option<u16> {
        match section {
            SectionRef::Input(id) => self.of_input(id.0),
            SectionRef::New(index) if index < self.new_count => Some(self.new + index as u16),
            SectionRef::New(_) => None,
            SectionRef::Counters => self.counters,
        }
    }
}
