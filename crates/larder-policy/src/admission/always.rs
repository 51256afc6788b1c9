//! Every block enters: what a cache without an admission policy does.

use super::Admission;

/// Every block enters, if the cache holds any.
#[derive(Clone, Debug)]
pub struct Always {
    capacity: u32,
}

impl Always {
    /// In front of a cache of `capacity` blocks.
    pub const fn new(capacity: u32) -> Self {
        Self { capacity }
    }
}

impl Admission for Always {
    #[inline]
    fn admit(&mut self, _key: u64, _hash: u32) -> bool {
        self.capacity > 0
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;

    #[test]
    fn every_block_enters_a_cache_that_has_room_at_all() {
        let mut always = Always::new(1);
        assert!(always.admit(7, hash(7)));
        always.resize(0);
        assert!(!always.admit(7, hash(7)));
    }
}
