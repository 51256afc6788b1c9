//! From the name of a policy to a run that is compiled for it.

use larder_policy::Cache;
use larder_policy::admission::AnyAdmission;
use larder_policy::spec::PolicySpec;
use larder_policy::trial::{Candidate, Trial, WithPolicy, with_policy};

use crate::RunSpec;
use crate::foresight::{Foreseeing, Foresight};
use crate::run::{PolicyRun, Run};

/// What a run takes beside its policy.
struct Build<'a> {
    spec: &'a RunSpec,
    capacity: u32,
    seed: u64,
}

/// The run of a specification; none where its policy needs to know a future that is not known.
pub(crate) fn run(spec: &RunSpec, capacity: u32, seed: u64, foresight: &Foresight) -> Option<Box<dyn Run>> {
    let build = Build { spec, capacity, seed };
    match spec.caching.policy() {
        PolicySpec::Belady => Some(build.with(Foreseeing::new(foresight.of(spec.write)?))),
        online => with_policy(online, seed, build),
    }
}

impl WithPolicy for Build<'_> {
    type Output = Box<dyn Run>;

    fn with<P: Candidate>(self, policy: P) -> Box<dyn Run> {
        let admission = AnyAdmission::new(&self.spec.caching.admission(), self.capacity, self.seed);
        let cache = Cache::new(self.capacity, policy);
        Box::new(PolicyRun::new(Trial::new(cache, admission, self.spec.write)))
    }
}
