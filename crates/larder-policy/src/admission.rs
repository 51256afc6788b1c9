//! Admission: which absent block may enter the cache.
//!
//! A block that enters costs a write to the SSD and, in a full cache, another block its place. An admission policy in front of the replacement policy lets in
//! those that promise to come again. It knows nothing of what the replacement policy remembers (its ghosts), and has its own tables, whose memory is
//! proportional to the capacity of the cache; no access allocates once they have grown.

pub mod always;
pub mod bloom;
pub mod larc;
pub mod nth;
pub mod probability;

mod ghosts;

use crate::spec::AdmissionSpec;
use always::Always;
use bloom::Bloom;
use larc::Larc;
use nth::Nth;
use probability::Probability;

/// An admission policy in front of one partition.
pub trait Admission {
    /// A resident block was used.
    #[inline]
    fn hit(&mut self) {}

    /// May this absent block enter? `hash` is the key's [`crate::index::hash`].
    fn admit(&mut self, key: u64, hash: u32) -> bool;

    /// The cache is not full: may any absent block enter, whichever it is? Asked before [`Self::admit`], which is not asked after a yes.
    #[inline]
    fn admit_to_free_space(&mut self, key: u64, hash: u32) -> bool {
        let _ = (key, hash);
        false
    }

    /// The block that was just admitted could not enter: no slot was to be had.
    #[inline]
    fn failed(&mut self, key: u64, hash: u32) {
        let _ = (key, hash);
    }

    /// Go on as if this block had never asked, as far as that is possible (a Bloom filter never forgets a single block).
    #[inline]
    fn forget(&mut self, key: u64, hash: u32) {
        let _ = (key, hash);
    }

    /// The partition holds `capacity` blocks from now on. One that holds none admits none.
    fn resize(&mut self, capacity: u32);

    /// The partition holds `capacity` blocks from now on, and its blocks were thinned out in proportion: what is measured in blocks is so too. For
    /// scaled-down caches, whose scale changes.
    fn scale(&mut self, capacity: u32) {
        self.resize(capacity);
    }

    /// Bytes of memory held.
    fn memory_bytes(&self) -> usize;
}

/// Any admission policy, chosen at run time.
#[derive(Clone, Debug)]
pub enum AnyAdmission {
    /// [`Always`]
    Always(Always),
    /// [`Larc`]
    Larc(Larc),
    /// [`Nth`]
    Nth(Nth),
    /// [`Bloom`]
    Bloom(Bloom),
    /// [`Probability`]
    Probability(Probability),
}

impl AnyAdmission {
    /// A policy for a partition of `capacity` blocks; `seed` is for those that draw lots.
    pub fn new(spec: &AdmissionSpec, capacity: u32, seed: u64) -> Self {
        match *spec {
            AdmissionSpec::Always => Self::Always(Always::new(capacity)),
            AdmissionSpec::Larc => Self::Larc(Larc::new(capacity)),
            AdmissionSpec::LarcWhenFull => Self::Larc(Larc::when_full(capacity)),
            AdmissionSpec::Nth(n) => Self::Nth(Nth::new(n, capacity)),
            AdmissionSpec::Bloom => Self::Bloom(Bloom::new(capacity)),
            AdmissionSpec::Probability(p) => Self::Probability(Probability::new(p, capacity, seed)),
        }
    }
}

impl Admission for AnyAdmission {
    #[inline]
    fn hit(&mut self) {
        if let Self::Larc(larc) = self {
            larc.hit();
        }
    }

    #[inline]
    fn admit(&mut self, key: u64, hash: u32) -> bool {
        match self {
            Self::Always(policy) => policy.admit(key, hash),
            Self::Larc(policy) => policy.admit(key, hash),
            Self::Nth(policy) => policy.admit(key, hash),
            Self::Bloom(policy) => policy.admit(key, hash),
            Self::Probability(policy) => policy.admit(key, hash),
        }
    }

    #[inline]
    fn admit_to_free_space(&mut self, key: u64, hash: u32) -> bool {
        match self {
            Self::Larc(larc) => larc.admit_to_free_space(key, hash),
            Self::Always(_) | Self::Nth(_) | Self::Bloom(_) | Self::Probability(_) => false,
        }
    }

    fn failed(&mut self, key: u64, hash: u32) {
        match self {
            Self::Always(policy) => policy.failed(key, hash),
            Self::Larc(policy) => policy.failed(key, hash),
            Self::Nth(policy) => policy.failed(key, hash),
            Self::Bloom(policy) => policy.failed(key, hash),
            Self::Probability(policy) => policy.failed(key, hash),
        }
    }

    fn forget(&mut self, key: u64, hash: u32) {
        match self {
            Self::Larc(policy) => policy.forget(key, hash),
            Self::Nth(policy) => policy.forget(key, hash),
            Self::Always(_) | Self::Bloom(_) | Self::Probability(_) => {}
        }
    }

    fn resize(&mut self, capacity: u32) {
        match self {
            Self::Always(policy) => policy.resize(capacity),
            Self::Larc(policy) => policy.resize(capacity),
            Self::Nth(policy) => policy.resize(capacity),
            Self::Bloom(policy) => policy.resize(capacity),
            Self::Probability(policy) => policy.resize(capacity),
        }
    }

    fn scale(&mut self, capacity: u32) {
        match self {
            Self::Larc(policy) => policy.scale(capacity),
            Self::Always(_) | Self::Nth(_) | Self::Bloom(_) | Self::Probability(_) => self.resize(capacity),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Always(policy) => policy.memory_bytes(),
            Self::Larc(policy) => policy.memory_bytes(),
            Self::Nth(policy) => policy.memory_bytes(),
            Self::Bloom(policy) => policy.memory_bytes(),
            Self::Probability(policy) => policy.memory_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;
    use proptest::prelude::*;

    #[test]
    fn each_spec_makes_its_policy() {
        let kinds = AdmissionSpec::defaults().iter().map(|spec| match AnyAdmission::new(spec, 8, 1) {
            AnyAdmission::Always(_) => "always",
            AnyAdmission::Larc(_) => "larc",
            AnyAdmission::Nth(_) => "nth",
            AnyAdmission::Bloom(_) => "bloom",
            AnyAdmission::Probability(_) => "prob",
        });
        assert!(kinds.eq(AdmissionSpec::defaults().iter().map(AdmissionSpec::name)));
    }

    #[test]
    fn hits_reach_larc() {
        let mut any = AnyAdmission::new(&AdmissionSpec::Larc, 100, 1);
        (0..20).for_each(|key| assert!(!any.admit(key, hash(key))));
        let target = |any: &AnyAdmission| match any {
            AnyAdmission::Larc(larc) => larc.target(),
            _ => 0.0,
        };
        let before = target(&any);
        any.hit();
        assert!(target(&any) < before, "{} after {before}", target(&any));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Hit,
        Ask(u64),
        AskAndFail(u64),
        Resize(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            2 => Just(Op::Hit),
            8 => (0..24u64).prop_map(Op::Ask),
            2 => (0..24u64).prop_map(Op::AskAndFail),
            1 => (0..12u32).prop_map(Op::Resize),
        ]
    }

    proptest! {
        /// Two policies of the same kind decide alike, without capacity they admit nothing, and a block that could not enter may ask again.
        #[test]
        fn any_sequence_is_legal(ops in prop::collection::vec(op(), 0..200), kind in 0..6usize) {
            let spec = &AdmissionSpec::defaults()[kind];
            let (mut one, mut two, mut capacity) = (AnyAdmission::new(spec, 8, 1), AnyAdmission::new(spec, 8, 1), 8);
            for op in ops {
                for policy in [&mut one, &mut two] {
                    match op {
                        Op::Hit => policy.hit(),
                        Op::Resize(blocks) => policy.resize(blocks),
                        Op::Ask(_) | Op::AskAndFail(_) => {}
                    }
                }
                match op {
                    Op::Resize(blocks) => capacity = blocks,
                    Op::Ask(key) | Op::AskAndFail(key) => {
                        let admitted = one.admit(key, hash(key));
                        prop_assert_eq!(admitted, two.admit(key, hash(key)));
                        prop_assert!(!admitted || capacity > 0);
                        if admitted && matches!(op, Op::AskAndFail(_)) {
                            one.failed(key, hash(key));
                            two.failed(key, hash(key));
                        }
                    }
                    Op::Hit => {}
                }
            }
        }

        /// Memory follows the capacity, however many blocks ask.
        #[test]
        fn memory_does_not_grow_with_the_accesses(kind in 0..6usize, capacity in 1..500u32) {
            let mut policy = AnyAdmission::new(&AdmissionSpec::defaults()[kind], capacity, 1);
            let ask = |policy: &mut AnyAdmission, keys: std::ops::Range<u64>| {
                keys.for_each(|key| _ = policy.admit(key, hash(key)));
                policy.memory_bytes()
            };
            let warm = ask(&mut policy, 0..2000);
            prop_assert_eq!(ask(&mut policy, 2000..20_000), warm);
        }
    }
}
