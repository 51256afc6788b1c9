//! The bytes of a simulated device, sparse: pages that are all zero take no memory.
//!
//! A device of terabytes therefore costs what was written to it, and so do long runs of zero data.

use std::collections::BTreeMap;

/// Bytes in a page.
const PAGE: u64 = 4096;

/// A byte array of fixed length, zero where nothing was written.
#[derive(Clone, Debug)]
pub struct SparseBytes {
    len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl SparseBytes {
    /// `len` bytes of zero.
    pub fn new(len: u64) -> Self {
        Self { len, pages: BTreeMap::new() }
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pages that are not all zero, by number, 4 KiB each.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pages.iter().map(|(&page, bytes)| (page, &bytes[..]))
    }

    /// From now on `len` bytes, a multiple of 512: the end is cut off, or zeroes are added.
    pub fn resize(&mut self, len: u64) {
        let (page, start, _) = piece(len, PAGE as usize);
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE));
            if let Some(bytes) = self.pages.get_mut(&page) {
                bytes[start..].fill(0);
            }
        }
        self.len = len;
    }

    /// Copy from `offset` to `into`. Panics beyond the end.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        self.check(offset, into.len() as u64);
        let mut at = 0;
        while at < into.len() {
            let (page, start, count) = piece(offset + at as u64, into.len() - at);
            let part = &mut into[at..at + count];
            match self.pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[start..start + count]),
                None => part.fill(0),
            }
            at += count;
        }
    }

    /// Copy `from` to `offset`. Panics beyond the end.
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        self.check(offset, from.len() as u64);
        let mut at = 0;
        while at < from.len() {
            let (page, start, count) = piece(offset + at as u64, from.len() - at);
            self.put(page, start, &from[at..at + count]);
            at += count;
        }
    }

    /// Make a range zero. Panics beyond the end.
    pub fn zero(&mut self, offset: u64, len: u64) {
        self.check(offset, len);
        let mut at = 0;
        while at < len {
            let (page, start, count) = piece(offset + at, (len - at).min(PAGE) as usize);
            self.put(page, start, &[0; PAGE as usize][..count]);
            at += count as u64;
        }
    }

    fn put(&mut self, page: u64, start: usize, from: &[u8]) {
        let zero = from.iter().all(|&b| b == 0);
        if zero && from.len() as u64 == PAGE {
            self.pages.remove(&page);
        } else if !zero || self.pages.contains_key(&page) {
            let bytes = self.pages.entry(page).or_insert_with(|| vec![0; PAGE as usize].into());
            bytes[start..start + from.len()].copy_from_slice(from);
        }
    }

    fn check(&self, offset: u64, len: u64) {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{offset}+{len} is beyond the end, {}", self.len);
    }
}

/// The page that holds `offset`, where in it, and how many of `left` bytes lie in it.
fn piece(offset: u64, left: usize) -> (u64, usize, usize) {
    let start = offset % PAGE;
    (offset / PAGE, start as usize, left.min((PAGE - start) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEN: usize = 5 * PAGE as usize + 700;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn equals_a_plain_array(ops in prop::collection::vec((0..LEN, 0..LEN, 0..3u8), 0..40)) {
            let (mut sparse, mut plain) = (SparseBytes::new(LEN as u64), vec![0; LEN]);
            for (a, b, value) in ops {
                let (start, end) = (a.min(b), a.max(b));
                match value {
                    0 => sparse.zero(start as u64, (end - start) as u64),
                    _ => sparse.write(start as u64, &vec![value - 1; end - start]),
                }
                plain[start..end].fill(value.saturating_sub(1));
            }
            let mut all = vec![9; LEN];
            sparse.read(0, &mut all);
            prop_assert!(all == plain);
        }
    }

    #[test]
    fn zero_pages_take_no_memory() {
        let mut sparse = SparseBytes::new(1 << 40);
        sparse.write(1 << 30, &[0; 100_000]);
        assert_eq!(sparse.pages.len(), 0);
        sparse.write(100, &[1; 8192]);
        assert_eq!(sparse.pages.len(), 3);
        sparse.write(0, &[0; 16_384]);
        assert_eq!(sparse.pages.len(), 0);
    }
}
