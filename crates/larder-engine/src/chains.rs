//! Chains of a hash table that grows by one bucket per insertion (linear hashing; Litwin, VLDB 1980), so there is never a pause to rehash. The links are
//! in the elements, which are its user's.

use larder_policy::Chunked;

/// No element.
pub(crate) const NONE: u32 = u32::MAX;

/// So many neighbouring blocks (as a power of two) have their buckets in one cache line: requests ask for several blocks, and the cleaner goes through them in their order.
const RUN_BITS: u32 = 4;

/// What is chained, by number.
pub(crate) trait Linked {
    /// An element's block, as one number.
    fn word(&self, id: u32) -> u64;
    /// The next element of the same bucket.
    fn next(&self, id: u32) -> u32;
    /// Another one comes next.
    fn set_next(&mut self, id: u32, next: u32);
}

/// The first element of each bucket.
#[derive(Debug)]
pub(crate) struct Chains {
    buckets: Chunked<u32>,
    /// Buckets below `split` were already split in this round of `round` buckets.
    split: u64,
    round: u64,
    seed: u64,
}

impl Chains {
    pub fn new(seed: u64) -> Self {
        let mut buckets = Chunked::new();
        buckets.push(NONE);
        Self { buckets, split: 0, round: 1, seed }
    }

    /// Buckets: as many as there were elements at a time.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// The first element of the bucket in which a block's are.
    #[inline]
    pub fn first(&self, word: u64) -> u32 {
        self.buckets[self.bucket_of(word)]
    }

    /// The first element of each bucket.
    #[cfg(test)]
    pub fn heads(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.buckets.len()).map(|at| self.buckets[at])
    }

    /// Add an element.
    pub fn add(&mut self, links: &mut impl Linked, id: u32) {
        let bucket = self.bucket_of(links.word(id));
        let first = std::mem::replace(&mut self.buckets[bucket], id);
        links.set_next(id, first);
    }

    /// Take an element out.
    pub fn remove(&mut self, links: &mut impl Linked, id: u32) {
        let (word, next) = (links.word(id), links.next(id));
        self.replace(links, word, id, next);
    }

    /// Take out the first element of a block's bucket for which this is true.
    #[inline]
    pub fn take<L: Linked>(
        &mut self,
        links: &mut L,
        word: u64,
        is_it: impl Fn(&L, u32) -> bool,
    ) -> Option<u32> {
        let bucket = self.bucket_of(word);
        let (mut before, mut at) = (NONE, self.buckets[bucket]);
        while at != NONE {
            let next = links.next(at);
            if is_it(links, at) {
                match before {
                    NONE => self.buckets[bucket] = next,
                    before => links.set_next(before, next),
                }
                return Some(at);
            }
            (before, at) = (at, next);
        }
        None
    }

    /// An element has another number now, and the word and link that it had.
    #[inline]
    pub fn rename(&mut self, links: &mut impl Linked, old: u32, new: u32) {
        let word = links.word(new);
        self.replace(links, word, old, new);
    }

    /// What leads to one element of a block's bucket leads to another.
    #[inline]
    fn replace(&mut self, links: &mut impl Linked, word: u64, from: u32, to: u32) {
        let bucket = self.bucket_of(word);
        let mut at = self.buckets[bucket];
        if at == from {
            self.buckets[bucket] = to;
            return;
        }
        while links.next(at) != from {
            at = links.next(at);
        }
        links.set_next(at, to);
    }

    /// Split the next bucket in turn: its elements go to it or to its new sibling, by one more bit of their hash.
    pub fn split_one(&mut self, links: &mut impl Linked) {
        let low = self.split as usize;
        let mut at = std::mem::replace(&mut self.buckets[low], NONE);
        self.buckets.push(NONE);
        self.split += 1;
        if self.split == self.round {
            self.round *= 2;
            self.split = 0;
        }
        while at != NONE {
            let next = links.next(at);
            self.add(links, at);
            at = next;
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes()
    }

    #[inline]
    fn bucket_of(&self, word: u64) -> usize {
        // The blocks of a run have buckets that lie together, each run in an order of its own: else blocks a run apart would share few buckets.
        let run = mix((word ^ self.seed) >> RUN_BITS);
        let hash = run << RUN_BITS | (word ^ run >> 32) & ((1 << RUN_BITS) - 1);
        let at = hash & (self.round - 1);
        (if at < self.split { hash & (2 * self.round - 1) } else { at }) as usize
    }
}

/// MurmurHash3's 64-bit finaliser: every bit of the key reaches the low bits that choose the bucket.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}
