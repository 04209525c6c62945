//! Anything that a layout changes.

#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct BeforeAfter<T> {
    pub before: T,
    pub after: T,
}
