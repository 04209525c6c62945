//! How two chains X and Y are put together, where X may be cut into X1 and X2.

/// The order of the parts. (X2_Y_X1 has never been found to help, and Y_X is X_Y the other way.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergeKind {
    XY,
    X1YX2,
    YX2X1,
    X2X1Y,
}

/// How to put two chains together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Merge {
    pub kind: MergeKind,
    /// The number of blocks of X1.
    pub cut: u32,
}

impl Merge {
    /// Turns the blocks of X into those of the merged chain.
    pub fn arrange(self, x: &mut Vec<u32>, y: &[u32]) {
        let cut = self.cut as usize;
        match self.kind {
            MergeKind::XY => x.extend_from_slice(y),
            MergeKind::X1YX2 => {
                x.splice(cut..cut, y.iter().copied());
            }
            MergeKind::YX2X1 => *x = [y, &x[cut..], &x[..cut]].concat(),
            MergeKind::X2X1Y => *x = [&x[cut..], &x[..cut], y].concat(),
        }
    }
}
