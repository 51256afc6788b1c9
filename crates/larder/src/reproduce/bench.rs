//! Simulations over traces in memory: each trace is read once, however many runs are over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_sim::tenants::{Hindsight, TenantsPlan, TenantsResult};
use larder_sim::{BlockSize, Futures, Source, Summary};
use larder_trace::{Request, RequestKind};

use super::common::Common;
use crate::input::{Input, TraceName};
use crate::metered::{self, Requests};
use crate::problem::Problem;
use crate::simulate::tenants::{Job, Opener, Surveyed, in_hindsight, run_all};

/// Requests read at a time.
const READ: usize = 1 << 16;

/// A trace in memory.
pub type Held = Arc<[Request]>;

/// A simulation over traces in memory.
pub struct Trial {
    /// What to simulate.
    pub plan: TenantsPlan,
    /// The traces of its tenants.
    pub traces: Vec<Held>,
}

/// The traces that were read, and how simulations are done.
pub struct Bench<'a> {
    common: &'a Common,
    held: BTreeMap<String, Held>,
}

impl<'a> Bench<'a> {
    /// With nothing read.
    pub fn new(common: &'a Common) -> Self {
        Self { common, held: BTreeMap::new() }
    }

    /// A trace, or its first reads and writes.
    pub fn trace(&mut self, name: &TraceName) -> Result<Held, Problem> {
        let key = name.to_string();
        if let Some(held) = self.held.get(&key) {
            return Ok(Arc::clone(held));
        }
        let held = hold(metered::open(name, None)?.source, self.common.limit())?;
        self.held.insert(key, Arc::clone(&held));
        Ok(held)
    }

    /// Do all simulations, side by side, and give their results in the same order.
    pub fn run(&self, trials: Vec<Trial>) -> Result<Vec<TenantsResult>, Problem> {
        let (plans, sources): (Vec<_>, Vec<Vec<Opener>>) = trials
            .into_iter()
            .map(|trial| (trial.plan, trial.traces.into_iter().map(Opener::Held).collect()))
            .unzip();
        let jobs: Vec<_> =
            plans.into_iter().zip(&sources).map(|(plan, sources)| Job { plan, sources }).collect();
        run_all(&jobs, self.common.threads, None, self.common.quiet)
    }

    /// What any cache could bring at best where this is simulated.
    pub fn hindsight(&self, trial: Trial) -> Result<Hindsight, Problem> {
        let sources: Vec<_> = trial.traces.into_iter().map(Opener::Held).collect();
        in_hindsight(&Job { plan: trial.plan, sources: &sources })
    }
}

/// The first so many reads and writes of a source, or all.
pub fn hold<S: Source>(mut source: S, limit: Option<u64>) -> Result<Held, Problem>
where
    Problem: From<S::Error>,
{
    let mut requests = Vec::new();
    let mut left = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    while left > 0 {
        let before = requests.len();
        if !source.read(&mut requests, READ.min(left))? {
            break;
        }
        left -= requests[before..].iter().filter(|request| is_access(request)).count();
    }
    Ok(requests.into())
}

fn is_access(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write)
}

/// What a trace holds.
pub fn survey(trace: &Held, block: BlockSize) -> Result<Summary, Problem> {
    let source = Requests::Other(Input::Held(Arc::clone(trace), 0));
    Ok(larder_sim::survey(source, block, None, Futures::default(), |_| {})?.summary)
}

/// What traces hold together; each is a tenant's own.
pub fn survey_all(traces: &[Held], block: BlockSize) -> Result<Surveyed, Problem> {
    let mut all = Surveyed::default();
    traces.iter().try_for_each(|trace| survey(trace, block).map(|summary| all.add(&summary)))?;
    Ok(all)
}

/// Distinct blocks of all traces together.
pub fn footprint_blocks(traces: &[Held], block: BlockSize) -> Result<u64, Problem> {
    Ok(survey_all(traces, block)?.footprint_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn a_trace_is_held_up_to_its_limit() {
        let name = TraceName::from(OsString::from("gen:sequential:blocks=70000,requests=200000"));
        let of = |limit| {
            let common = Common { limit, ..Common::default() };
            Bench::new(&common).trace(&name).expect("generated").len()
        };
        assert_eq!([of(None), of(Some(150_000)), of(Some(3)), of(Some(0))], [200_000, 150_000, 3, 0]);
    }

    #[test]
    fn footprints_add_up() {
        let common = Common::default();
        let mut bench = Bench::new(&common);
        let name = TraceName::from(OsString::from("gen:sequential:blocks=7,requests=20"));
        let trace = bench.trace(&name).expect("generated");
        let blocks = footprint_blocks(&[Arc::clone(&trace), trace], BlockSize::DEFAULT);
        assert_eq!(blocks.expect("in memory"), 14);
    }
}
