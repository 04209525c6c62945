//! What an experiment shows: text for the terminal, JSON with every run, one self-contained HTML page.
//! Everything here turns data into text; nothing is printed or written.

pub mod doctor;
pub mod heatmap;
pub mod html;
pub mod integration;
pub mod json;
pub mod layout;
pub mod numbers;
pub mod terminal;
pub mod wrapping;

pub use doctor::doctor_text;
pub use heatmap::heatmap_page;
pub use html::html_page;
pub use integration::{csv, junit_xml, markdown};
pub use json::{parse_records, to_json};
pub use layout::{layout_page, layout_text};
pub use terminal::{compare_text, suite_text};
pub use wrapping::to_width;

#[cfg(test)]
pub(crate) mod sample;
