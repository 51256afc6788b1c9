//! From the name of a replacement policy to code that is compiled for it.

use crate::Replacement;
use crate::replacement::{
    aging_lfu::AgingLfu, arc::Arc, clock::Clock, fifo::Fifo, lfu::Lfu, lirs::Lirs, lru::Lru, mq::Mq,
    random::Random, s3fifo::S3Fifo, sieve::Sieve, twoq::TwoQ, wtinylfu::WTinyLfu,
};
use crate::spec::PolicySpec;

/// A replacement policy that can be tried.
pub trait Candidate: Replacement + Clone + Send + 'static {
    /// The access that comes now is the one at `position`, from 0. For policies that know the future.
    #[inline]
    fn at(&self, position: u64) {
        let _ = position;
    }
}

macro_rules! candidates {
    ($($policy:path),*) => { $(impl Candidate for $policy {})* };
}

candidates!(
    crate::any::AnyReplacement,
    AgingLfu,
    Arc,
    Clock,
    Fifo,
    Lfu,
    Lirs,
    Lru,
    Mq,
    Random,
    S3Fifo,
    Sieve,
    TwoQ,
    WTinyLfu
);

/// Something to be done with a policy of any type.
pub trait WithPolicy {
    /// What comes of it.
    type Output;

    /// Do it.
    fn with<P: Candidate>(self, policy: P) -> Self::Output;
}

/// Do something with the empty policy of this name; `seed` is for the one that draws lots. None for Belady's, which has to be told the future.
pub fn with_policy<W: WithPolicy>(spec: PolicySpec, seed: u64, user: W) -> Option<W::Output> {
    Some(match spec {
        PolicySpec::Fifo => user.with(Fifo::new()),
        PolicySpec::Lru | PolicySpec::Larc => user.with(Lru::new()),
        PolicySpec::Clock { bits } => user.with(Clock::new(bits)),
        PolicySpec::Lfu => user.with(Lfu::new()),
        PolicySpec::AgingLfu => user.with(AgingLfu::default()),
        PolicySpec::Arc => user.with(Arc::new()),
        PolicySpec::Mq => user.with(Mq::new()),
        PolicySpec::TwoQ => user.with(TwoQ::new()),
        PolicySpec::Lirs => user.with(Lirs::new()),
        PolicySpec::S3Fifo => user.with(S3Fifo::new()),
        PolicySpec::Sieve => user.with(Sieve::new()),
        PolicySpec::WTinyLfu => user.with(WTinyLfu::new()),
        PolicySpec::Random => user.with(Random::new(seed)),
        PolicySpec::Belady => return None,
    })
}
