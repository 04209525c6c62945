//! The order in which the program is to be written.

use super::names::Quoted;
use super::{Writer, put};

impl Writer<'_, '_> {
    pub fn placement(&mut self) {
        let Some(placement) = self.view.placement else { return };
        self.text.push_str("\nplacement\n");
        for (_, section) in placement.sections.iter() {
            let (name, suffix) = (Quoted(&section.name), Quoted(&section.suffix));
            put!(self, "section {name} align {} suffix {suffix}\n", section.alignment);
        }
        for fragment in placement.fragments.iter().filter(|f| self.names.is_listed(f.function)) {
            put!(self, "fragment {} {}", self.names.name(fragment.function), fragment.section.0);
            if fragment.alignment != 1 {
                put!(self, " align {}", fragment.alignment);
            }
            if fragment.padding > 0 {
                put!(self, " pad {}", fragment.padding);
            }
            if fragment.runs_on {
                self.text.push_str(" runs-on");
            }
            self.text.push(':');
            for (i, block) in fragment.blocks.iter().enumerate() {
                put!(self, " {block}");
                if let Some(place) = fragment.places.get(i).copied().flatten() {
                    put!(self, " at {place}");
                }
            }
            self.text.push('\n');
        }
        for (_, data) in placement.data.iter() {
            let writable = if data.writable { " writable" } else { "" };
            put!(self, "new-data {} align {}{writable}: ", Quoted(&data.name), data.alignment);
            self.hex(&data.bytes);
            self.text.push('\n');
        }
    }
}
