//! Typed indices: a `FuncId` cannot be used where a `BlockId` is meant.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A dense index type over `u32`. Made by [`define_index!`](crate::define_index).
pub trait Id: Copy + Eq + Ord {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

/// Declares a dense index type.
#[macro_export]
macro_rules! define_index {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $crate::index::Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                // Invariant: no table of the program has four thousand million rows.
                Self(u32::try_from(index).expect("index fits in 32 bits"))
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

/// A vector that is indexed by one index type only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdVec<K, V> {
    rows: Vec<V>,
    key: PhantomData<fn(K) -> K>,
}

impl<K: Id, V> IdVec<K, V> {
    pub fn new() -> Self {
        Self::from(Vec::new())
    }

    /// Makes room for so many more rows, and no more.
    pub fn reserve_exact(&mut self, more: usize) {
        self.rows.reserve_exact(more);
    }

    /// Appends a row and returns its index.
    pub fn push(&mut self, value: V) -> K {
        self.rows.push(value);
        K::from_index(self.rows.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.rows.len()).map(K::from_index)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.rows.iter().enumerate().map(|(i, v)| (K::from_index(i), v))
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (K, &mut V)> + ExactSizeIterator {
        self.rows.iter_mut().enumerate().map(|(i, v)| (K::from_index(i), v))
    }

    pub fn get(&self, key: K) -> Option<&V> {
        self.rows.get(key.index())
    }

    pub fn as_slice(&self) -> &[V] {
        &self.rows
    }

    pub fn as_mut_slice(&mut self) -> &mut [V] {
        &mut self.rows
    }
}

impl<K: Id, V: Clone> IdVec<K, V> {
    /// A table of `len` equal rows.
    pub fn filled(value: V, len: usize) -> Self {
        Self::from(vec![value; len])
    }
}

impl<K, V> From<Vec<V>> for IdVec<K, V> {
    fn from(rows: Vec<V>) -> Self {
        Self { rows, key: PhantomData }
    }
}

impl<K, V> From<IdVec<K, V>> for Vec<V> {
    fn from(table: IdVec<K, V>) -> Self {
        table.rows
    }
}

impl<K, V> Default for IdVec<K, V> {
    fn default() -> Self {
        Self { rows: Vec::new(), key: PhantomData }
    }
}

impl<K: Id, V> FromIterator<V> for IdVec<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(rows: I) -> Self {
        Self::from(rows.into_iter().collect::<Vec<_>>())
    }
}

impl<K: Id, V> Index<K> for IdVec<K, V> {
    type Output = V;
    #[inline]
    fn index(&self, key: K) -> &V {
        &self.rows[key.index()]
    }
}

impl<K: Id, V> IndexMut<K> for IdVec<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.rows[key.index()]
    }
}
