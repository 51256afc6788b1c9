//! Which blocks are in the sample, and how many were seen.

use larder_policy::Rng;
use larder_policy::index::Index;

use super::Reach;
use super::grid::STEP;

/// The blocks whose hash is in the lowest share.
#[derive(Debug)]
pub(super) struct Sample {
    rate: f64,
    /// The highest hash in the sample.
    threshold: u64,
    salt: u64,
    most: u32,
    /// The blocks seen. Where the rate is fixed, nobody asks.
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    index: Index,
    /// With their hashes.
    keys: Vec<(u64, u32)>,
}

impl Sample {
    pub(super) fn new(reach: Reach, most: u32, seed: u64) -> Self {
        let (rate, seen) = match reach {
            Reach::Blocks(blocks) => ((f64::from(most) / blocks.max(1) as f64).min(1.0), None),
            Reach::Footprint => (1.0, Some(Seen { index: Index::new(), keys: Vec::new() })),
        };
        // Seeds that are close to each other must not choose blocks that are.
        Self { rate, threshold: threshold(rate), salt: Rng::new(seed).next_u64(), most, seen }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Is this block in the sample?
    #[inline]
    pub(super) fn has(&self, key: u64) -> bool {
        mix(key ^ self.salt) <= self.threshold
    }

    /// A block of the sample is accessed. True if the sample is too large now.
    pub(super) fn add(&mut self, key: u64, hash: u32) -> bool {
        self.seen.as_mut().is_some_and(|seen| seen.add(key, hash)) && self.is_too_large()
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.keys.len() > self.most as usize)
    }

    /// Lower the rate by a step. The blocks that leave, with their hashes.
    pub(super) fn thin(&mut self) -> Vec<(u64, u32)> {
        self.rate *= STEP;
        self.threshold = threshold(self.rate);
        let Some(seen) = self.seen.take() else { return Vec::new() };
        let (kept, gone) = seen.keys.into_iter().partition(|&(key, _)| self.has(key));
        self.seen = Some(Seen::of(kept));
        gone
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let bytes = |seen: &Seen| seen.index.memory_bytes() + seen.keys.capacity() * size_of::<(u64, u32)>();
        self.seen.as_ref().map_or(0, bytes)
    }
}

impl Seen {
    fn of(keys: Vec<(u64, u32)>) -> Self {
        let mut index = Index::new();
        keys.iter().zip(0..).for_each(|(&(_, hash), handle)| index.insert(hash, handle));
        Self { index, keys }
    }

    /// True if the block is new.
    fn add(&mut self, key: u64, hash: u32) -> bool {
        let known = self.index.find(hash, |handle| self.keys[handle as usize].0 == key).is_some();
        if !known {
            self.index.insert(hash, self.keys.len() as u32);
            self.keys.push((key, hash));
        }
        !known
    }
}

/// The highest of the hashes that are a share of all.
fn threshold(rate: f64) -> u64 {
    // From 1 on the product is above the largest number, which it then becomes.
    (rate * 2f64.powi(64)) as u64
}

/// The hash that chooses (the finalizer of MurmurHash3). Not that of the index, whose slots would be crowded where
/// hashes are alike.
#[inline]
fn mix(key: u64) -> u64 {
    let mixed = (key ^ (key >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}
