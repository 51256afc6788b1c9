//! From the name of a policy to a run that is compiled for it.

use larder_policy::Cache;
use larder_policy::admission::AnyAdmission;
use larder_policy::replacement::{
    aging_lfu::AgingLfu, arc::Arc, clock::Clock, fifo::Fifo, lfu::Lfu, lirs::Lirs, lru::Lru, mq::Mq,
    random::Random, s3fifo::S3Fifo, sieve::Sieve, twoq::TwoQ, wtinylfu::WTinyLfu,
};
use larder_policy::spec::PolicySpec;

use crate::RunSpec;
use crate::foresight::{Foreseeing, Foresight, Simulated};
use crate::run::{PolicyRun, Run};

macro_rules! simulated {
    ($($policy:ident),*) => { $(impl Simulated for $policy {})* };
}

simulated!(AgingLfu, Arc, Clock, Fifo, Lfu, Lirs, Lru, Mq, Random, S3Fifo, Sieve, TwoQ, WTinyLfu);

/// What a run takes beside its policy.
struct Build<'a> {
    spec: &'a RunSpec,
    capacity: u32,
    seed: u64,
}

/// The run of a specification; none where its policy needs to know a future that is not known.
pub(crate) fn run(spec: &RunSpec, capacity: u32, seed: u64, foresight: &Foresight) -> Option<Box<dyn Run>> {
    let build = Build { spec, capacity, seed };
    Some(match spec.caching.policy() {
        PolicySpec::Fifo => build.run(Fifo::new()),
        PolicySpec::Lru | PolicySpec::Larc => build.run(Lru::new()),
        PolicySpec::Clock { bits } => build.run(Clock::new(bits)),
        PolicySpec::Lfu => build.run(Lfu::new()),
        PolicySpec::AgingLfu => build.run(AgingLfu::default()),
        PolicySpec::Arc => build.run(Arc::new()),
        PolicySpec::Mq => build.run(Mq::new()),
        PolicySpec::TwoQ => build.run(TwoQ::new()),
        PolicySpec::Lirs => build.run(Lirs::new()),
        PolicySpec::S3Fifo => build.run(S3Fifo::new()),
        PolicySpec::Sieve => build.run(Sieve::new()),
        PolicySpec::WTinyLfu => build.run(WTinyLfu::new()),
        PolicySpec::Random => build.run(Random::new(seed)),
        PolicySpec::Belady => build.run(Foreseeing::new(foresight.of(spec.write)?)),
    })
}

impl Build<'_> {
    fn run<P: Simulated + 'static>(&self, policy: P) -> Box<dyn Run> {
        let admission = AnyAdmission::new(&self.spec.caching.admission(), self.capacity, self.seed);
        Box::new(PolicyRun::new(Cache::new(self.capacity, policy), admission, self.spec.write))
    }
}
