//! Addresses, typed by the space they belong to, so that one can never be taken for another.

use std::fmt;
use std::ops::{Add, Sub};

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The address as a plain number, for arithmetic at the border of a file format.
            #[inline]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Bytes from `base` up to this address; wraps if `base` lies above, so compare first.
            #[inline]
            pub const fn since(self, base: Self) -> u64 {
                self.0.wrapping_sub(base.0)
            }

            /// The next multiple of `alignment` (a power of two) at or above this address.
            #[inline]
            pub const fn align_up(self, alignment: u64) -> Self {
                Self((self.0.wrapping_add(alignment - 1)) & !(alignment - 1))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }

        impl Add<u64> for $name {
            type Output = Self;
            #[inline]
            fn add(self, bytes: u64) -> Self {
                Self(self.0.wrapping_add(bytes))
            }
        }

        impl Sub<u64> for $name {
            type Output = Self;
            #[inline]
            fn sub(self, bytes: u64) -> Self {
                Self(self.0.wrapping_sub(bytes))
            }
        }
    };
}

address! {
    /// A virtual address in the program as it was given to afterlink.
    InputAddr
}
address! {
    /// A virtual address in the program that afterlink writes.
    OutputAddr
}
address! {
    /// A position in a file, in bytes from its start.
    FileOffset
}
