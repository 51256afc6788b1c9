//! A vector that grows in steps: no element ever moves, so growing never copies what is there, and never holds two copies.
//! A cache index of a terabyte-sized SSD would otherwise stop the reactor for seconds at each doubling.

use std::ops::{Index, IndexMut};

const SHIFT: u32 = 12;
/// Elements in a chunk.
const CHUNK: usize = 1 << SHIFT;

/// A growable array of `Copy` elements in chunks of 4096.
#[derive(Clone, Debug)]
pub struct Chunked<T> {
    /// Their length is known when this is compiled, so that an index within one needs no check.
    chunks: Vec<Box<[T; CHUNK]>>,
    len: usize,
}

impl<T: Copy> Default for Chunked<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Chunked<T> {
    /// Empty, without memory.
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// Elements in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Append an element.
    pub fn push(&mut self, value: T) {
        if self.len == self.chunks.len() * CHUNK {
            let Ok(chunk) = vec![value; CHUNK].into_boxed_slice().try_into() else {
                unreachable!("a chunk has its length")
            };
            self.chunks.push(chunk);
        }
        let at = self.len;
        self.len += 1;
        self[at] = value;
    }

    /// Take the last element off. Memory is given back a chunk at a time, one that is empty staying at hand.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let value = self[last];
        self.len = last;
        if self.chunks.len() * CHUNK >= last + 2 * CHUNK {
            self.chunks.pop();
        }
        Some(value)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<T>() + self.chunks.capacity() * size_of::<Box<[T; CHUNK]>>()
    }
}

impl<T: Copy> Index<usize> for Chunked<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at >> SHIFT][at & (CHUNK - 1)]
    }
}

impl<T: Copy> IndexMut<usize> for Chunked<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at >> SHIFT][at & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_was_pushed_over_chunk_borders() {
        let mut v = Chunked::new();
        for i in 0..3 * CHUNK as u64 + 5 {
            v.push(i);
        }
        assert_eq!(v.len(), 3 * CHUNK + 5);
        assert!((0..v.len()).all(|i| v[i] == i as u64));
        assert_eq!(v.memory_bytes() / (CHUNK * 8), 4);
    }

    #[test]
    fn what_was_pushed_last_is_popped_first_and_its_memory_given_back() {
        let mut v = Chunked::new();
        (0..3 * CHUNK as u64).for_each(|i| v.push(i));
        let chunks = |v: &Chunked<u64>| v.memory_bytes() / (CHUNK * 8);
        for i in (CHUNK as u64..3 * CHUNK as u64).rev() {
            assert_eq!(v.pop(), Some(i));
        }
        assert_eq!((v.len(), chunks(&v)), (CHUNK, 2));
        // At the border of a chunk, pushing and popping takes no memory and gives none back.
        for _ in 0..3 {
            v.push(7);
            assert_eq!((v.pop(), chunks(&v)), (Some(7), 2));
        }
        while v.pop().is_some() {}
        assert_eq!((v.len(), chunks(&v)), (0, 1));
    }
}
