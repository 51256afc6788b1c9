//! Numbered cells, in chunks that are made when the first of their cells is used: memory follows what is used, whatever numbers that has, and no cell ever moves.

use std::ops::{Index, IndexMut};

const SHIFT: u32 = 12;
/// Cells in a chunk.
const CHUNK: usize = 1 << SHIFT;

/// An array of `Copy` cells with holes.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    chunks: Vec<Option<Box<[T; CHUNK]>>>,
}

impl<T: Copy> Cells<T> {
    pub const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// The cell of this number is about to be used; where nothing was near it, cells are `blank`.
    #[inline]
    pub fn make(&mut self, at: u32, blank: T) {
        let chunk = at as usize >> SHIFT;
        if self.chunks.get(chunk).is_none_or(Option::is_none) {
            self.make_chunk(chunk, blank);
        }
    }

    #[cold]
    fn make_chunk(&mut self, chunk: usize, blank: T) {
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let Ok(cells) = vec![blank; CHUNK].into_boxed_slice().try_into() else {
            unreachable!("a chunk has its length")
        };
        self.chunks[chunk] = Some(cells);
    }

    /// A cell, if anything near it was ever used.
    #[inline]
    pub fn get(&self, at: u32) -> Option<&T> {
        let chunk = self.chunks.get(at as usize >> SHIFT)?.as_ref()?;
        Some(&chunk[at as usize & (CHUNK - 1)])
    }

    /// The same cells, each made into something else.
    pub fn map<U: Copy>(&self, other: impl Fn(T) -> U) -> Cells<U> {
        let mut cells = Cells::new();
        for (at, chunk) in (0u32..).zip(&self.chunks) {
            for (&cell, number) in chunk.iter().flat_map(|chunk| chunk.iter()).zip(at << SHIFT..) {
                cells.make(number, other(cell));
                cells[number] = other(cell);
            }
        }
        cells
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let made = self.chunks.iter().flatten().count();
        made * size_of::<[T; CHUNK]>() + self.chunks.capacity() * size_of::<Option<Box<[T; CHUNK]>>>()
    }
}

impl<T> Index<u32> for Cells<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        match &self.chunks[at as usize >> SHIFT] {
            Some(chunk) => &chunk[at as usize & (CHUNK - 1)],
            None => unreachable!("a cell is made before it is used"),
        }
    }
}

impl<T> IndexMut<u32> for Cells<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        match &mut self.chunks[at as usize >> SHIFT] {
            Some(chunk) => &mut chunk[at as usize & (CHUNK - 1)],
            None => unreachable!("a cell is made before it is used"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_is_used() {
        let mut cells = Cells::new();
        for at in [7, 1_000_000, 1_000_001, 4095, 4096] {
            cells.make(at, 3);
            cells[at] = at;
        }
        assert_eq!(cells.memory_bytes() / (CHUNK * 4), 3, "three chunks, and where they are");
        assert_eq!((cells[7], cells[8], cells[4095], cells[1_000_000]), (7, 3, 4095, 1_000_000));
        assert_eq!((cells.get(9000), cells.get(2_000_000), cells.get(4097)), (None, None, Some(&3)));
        let doubled = cells.map(|cell| u64::from(cell) * 2);
        assert_eq!((doubled[1_000_001], doubled[0], doubled.get(9000)), (2_000_002, 6, None));
    }
}
