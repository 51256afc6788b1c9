//! Any replacement policy, chosen at run time: what the live cache holds per tenant.
//!
//! The simulator compiles a loop per policy instead, and pays for the choice once a batch.

use crate::replacement::{Evicted, Replacement, SPARED_MAX};
use crate::replacement::{
    aging_lfu::AgingLfu, arc::Arc, clock::Clock, fifo::Fifo, lfu::Lfu, lirs::Lirs, lru::Lru,
};
use crate::replacement::{
    mq::Mq, random::Random, s3fifo::S3Fifo, sieve::Sieve, twoq::TwoQ, wtinylfu::WTinyLfu,
};
use crate::spec::PolicySpec;
use crate::{Handle, Nodes};

/// An enum over policies that is itself one: each call goes to the variant's policy.
macro_rules! any_replacement {
    ($($variant:ident),* $(,)?) => {
        /// One of the policies that need not know the future.
        #[derive(Clone, Debug)]
        pub enum AnyReplacement {
            $(#[doc = concat!("[`", stringify!($variant), "`]")] $variant($variant),)*
        }

        impl Replacement for AnyReplacement {
            #[inline]
            fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
                match self { $(Self::$variant(policy) => policy.hit(nodes, handle),)* }
            }

            #[inline]
            fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
                match self { $(Self::$variant(policy) => policy.miss(nodes, ghost),)* }
            }

            #[inline]
            fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
                match self { $(Self::$variant(policy) => policy.evict(nodes, pinned),)* }
            }

            #[inline]
            fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
                match self { $(Self::$variant(policy) => policy.insert(nodes, handle, ghost),)* }
            }

            #[inline]
            fn insert_to_leave_first<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
                match self { $(Self::$variant(policy) => policy.insert_to_leave_first(nodes, handle, ghost),)* }
            }

            #[inline]
            fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
                match self { $(Self::$variant(policy) => policy.forget(nodes),)* }
            }

            fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
                match self { $(Self::$variant(policy) => policy.remove(nodes, handle, ghost),)* }
            }

            #[inline]
            fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
                match self { $(Self::$variant(policy) => policy.rename(nodes, old, new),)* }
            }

            fn resize(&mut self, capacity: u32) {
                match self { $(Self::$variant(policy) => policy.resize(capacity),)* }
            }

            fn resident(&self) -> u32 {
                match self { $(Self::$variant(policy) => policy.resident(),)* }
            }

            fn memory_bytes(&self) -> usize {
                match self { $(Self::$variant(policy) => policy.memory_bytes(),)* }
            }
        }
    };
}

any_replacement!(Fifo, Lru, Clock, Lfu, AgingLfu, Arc, Mq, TwoQ, Lirs, S3Fifo, Sieve, WTinyLfu, Random);

impl AnyReplacement {
    /// An empty policy for a partition of `capacity` blocks; `seed` is for those that draw lots. No call to it takes long: CLOCK, SIEVE and S3-FIFO spare
    /// [`SPARED_MAX`] blocks at most.
    ///
    /// # Panics
    /// For Belady's ([`PolicySpec::is_online`]), and for CLOCK with other than 1 to 16 bits, which does not parse.
    pub fn new(spec: &PolicySpec, capacity: u32, seed: u64) -> Self {
        let mut policy = match *spec {
            PolicySpec::Fifo => Self::Fifo(Fifo::new()),
            PolicySpec::Lru | PolicySpec::Larc => Self::Lru(Lru::new()),
            PolicySpec::Clock { bits } => Self::Clock(Clock::new(bits).sparing(SPARED_MAX)),
            PolicySpec::Lfu => Self::Lfu(Lfu::new()),
            PolicySpec::AgingLfu => Self::AgingLfu(AgingLfu::default()),
            PolicySpec::Arc => Self::Arc(Arc::new()),
            PolicySpec::Mq => Self::Mq(Mq::new()),
            PolicySpec::TwoQ => Self::TwoQ(TwoQ::new()),
            PolicySpec::Lirs => Self::Lirs(Lirs::new()),
            PolicySpec::S3Fifo => Self::S3Fifo(S3Fifo::new().sparing(SPARED_MAX)),
            PolicySpec::Sieve => Self::Sieve(Sieve::new().sparing(SPARED_MAX)),
            PolicySpec::WTinyLfu => Self::WTinyLfu(WTinyLfu::new()),
            PolicySpec::Random => Self::Random(Random::new(seed)),
            PolicySpec::Belady => panic!("Belady's policy knows the future, which a running cache does not"),
        };
        policy.resize(capacity);
        policy
    }

    /// True if the policy asks for [`Nodes::tag`]s.
    pub fn keeps_tags(&self) -> bool {
        !matches!(self, Self::Fifo(_) | Self::Lru(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hash;
    use crate::{Cache, Links, Node, Rng};

    const SEED: u64 = 3;

    /// The blocks that leave over many accesses, some invalidations and a change of size, in their order.
    fn left(policy: impl Replacement) -> Vec<u64> {
        let (mut cache, mut rng, mut left) = (Cache::new(50, policy), Rng::new(9), Vec::new());
        for step in 0..4000 {
            let key = rng.below(200).min(rng.below(200));
            match cache.find(key, hash(key)) {
                crate::cache::Found::Resident(handle) => cache.hit(handle),
                found => cache.enter(key, hash(key), found, 0, |key, _| left.push(key)),
            }
            if step % 50 == 0 {
                cache.invalidate(key, hash(key));
            }
            if step == 2000 {
                cache.resize(20, |key, _| left.push(key));
            }
        }
        left
    }

    /// The same with the policy itself.
    fn left_by_name(spec: &PolicySpec) -> Vec<u64> {
        match *spec {
            PolicySpec::Fifo => left(Fifo::new()),
            PolicySpec::Lru | PolicySpec::Larc => left(Lru::new()),
            PolicySpec::Clock { bits } => left(Clock::new(bits)),
            PolicySpec::Lfu => left(Lfu::new()),
            PolicySpec::AgingLfu => left(AgingLfu::default()),
            PolicySpec::Arc => left(Arc::new()),
            PolicySpec::Mq => left(Mq::new()),
            PolicySpec::TwoQ => left(TwoQ::new()),
            PolicySpec::Lirs => left(Lirs::new()),
            PolicySpec::S3Fifo => left(S3Fifo::new()),
            PolicySpec::Sieve => left(Sieve::new()),
            PolicySpec::WTinyLfu => left(WTinyLfu::new()),
            PolicySpec::Random => left(Random::new(SEED)),
            PolicySpec::Belady => Vec::new(),
        }
    }

    #[test]
    fn each_spec_makes_its_policy() {
        for spec in PolicySpec::online().iter().chain([&PolicySpec::Clock { bits: 1 }]) {
            let any = left(AnyReplacement::new(spec, 50, SEED));
            assert!(any.len() > 500, "{spec}: {}", any.len());
            assert!(any == left_by_name(spec), "{spec}");
        }
    }

    /// Nodes that note whether they are asked for tags.
    struct Asked {
        nodes: Vec<Node>,
        tags: std::cell::Cell<bool>,
    }

    impl Nodes for Asked {
        fn links(&self, handle: Handle) -> &Links {
            self.nodes.links(handle)
        }

        fn links_mut(&mut self, handle: Handle) -> &mut Links {
            self.nodes.links_mut(handle)
        }

        fn tag(&self, handle: Handle) -> u32 {
            self.tags.set(true);
            self.nodes.tag(handle)
        }

        fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
            self.tags.set(true);
            self.nodes.tag_mut(handle)
        }

        fn key(&self, handle: Handle) -> u64 {
            self.nodes.key(handle)
        }
    }

    #[test]
    fn policies_ask_for_tags_where_they_say_so() {
        for spec in PolicySpec::online() {
            let mut nodes = Asked { nodes: vec![Node::NEW; 100], tags: false.into() };
            let mut policy = AnyReplacement::new(spec, 10, SEED);
            for handle in 0..100 {
                policy.miss(&mut nodes, None);
                while policy.resident() >= 10 && policy.evict(&mut nodes, |_, _| false).is_some() {}
                policy.insert(&mut nodes, handle, false);
                policy.hit(&mut nodes, handle);
                while policy.forget(&mut nodes).is_some() {}
            }
            policy.remove(&mut nodes, 99, false);
            assert_eq!(nodes.tags.get(), policy.keeps_tags(), "{spec}");
        }
    }

    /// What leaves for five others of ten blocks, of which the second five were to leave first.
    fn made_way(policy: AnyReplacement) -> Vec<u64> {
        let mut cache = Cache::new(10, policy);
        for key in 0..10 {
            cache.set_leaves_first(key >= 5);
            cache.access(key);
        }
        cache.set_leaves_first(false);
        let mut left = Vec::new();
        for key in 10..15 {
            let found = cache.find(key, hash(key));
            cache.enter(key, hash(key), found, 0, |key, _| left.push(key));
        }
        left.sort_unstable();
        left
    }

    #[test]
    fn what_is_to_leave_first_does_where_policies_know_how() {
        for spec in [PolicySpec::Lru, PolicySpec::S3Fifo, PolicySpec::Lirs] {
            assert_eq!(made_way(AnyReplacement::new(&spec, 10, SEED)), [5, 6, 7, 8, 9], "{spec}");
        }
        for spec in PolicySpec::online() {
            assert_eq!(made_way(AnyReplacement::new(spec, 10, SEED)).len(), 5, "{spec}");
        }
    }

    #[test]
    #[should_panic(expected = "knows the future")]
    fn belady_is_not_for_a_running_cache() {
        AnyReplacement::new(&PolicySpec::Belady, 50, SEED);
    }
}
