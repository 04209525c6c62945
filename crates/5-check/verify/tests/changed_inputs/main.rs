//! What the input says is changed in it and in an output that was made without knowing: who checks has a rule of its own for each.

mod alignment;
mod frame_words;
mod hidden_targets;
mod runtimes;
mod support;
mod text_end;
mod unnamed_code;
