//! Who shares the cache: scenarios of files, or generated ones where there is no file.

use std::path::Path;

use crate::problem::Problem;
use crate::simulate::tenants::{Arrivals, Asked, Workload, read_scenarios, workloads};

/// Generated workloads: a skewed database beside a scan that is too long for any of the caches, readers of unlike skew beside a log that
/// nobody reads, and one that comes late.
const GENERATED: &str = r#"
cache_shares = [0.05, 0.10, 0.20, 0.40]
block = "4KiB"
epoch = "10s"

[[scenario]]
name = "skewed-beside-scan"
[scenario.tenants]
database = "gen:zipf:theta=1.0,blocks=60000,requests=240000,read=0.6,interval=500us,seed=1"
scan = "gen:loop:blocks=50000,requests=240000,interval=500us,seed=2"

[[scenario]]
name = "readers-and-log"
[scenario.tenants]
web = "gen:zipf:theta=0.9,blocks=80000,requests=240000,read=0.98,interval=500us,seed=3"
mail = "gen:gaussian:centre=0.5,deviation=0.1,blocks=80000,requests=160000,read=0.4,interval=750us,seed=4"
log = "gen:sequential:blocks=60000,requests=120000,read=0,interval=1ms"

[[scenario]]
name = "one-comes-late"
[scenario.tenants]
web = "gen:zipf:theta=0.9,blocks=80000,requests=240000,read=0.9,interval=500us,seed=5"
late = { trace = "gen:zipf:theta=1.1,blocks=40000,requests=160000,read=0.7,interval=500us,seed=6", start = "40s" }
"#;

/// The workloads, and whether they are generated in place of a file's.
pub fn choose(files: &[String], limit: Option<u64>) -> Result<(Vec<Workload>, bool), Problem> {
    if files.is_empty() {
        return Ok((generated()?, true));
    }
    let asked = Asked { scenarios: files.to_vec(), ..Asked::default() };
    let all = workloads(&asked, &Arrivals::default(), limit, &[])?;
    match all.iter().find(|workload| workload.sizes.is_empty()) {
        Some(workload) => Err(Problem::new(
            format_args!("scenario {} says nothing about the size of the cache", workload.title()),
            "give it cache_shares, as in cache_shares = [0.05, 0.10]",
        )),
        None => Ok((all, false)),
    }
}

fn generated() -> Result<Vec<Workload>, Problem> {
    read_scenarios(GENERATED, Path::new(""))
        .map_err(|why| Problem::new(why, "tell the authors: these scenarios are built in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_ones_are_valid() {
        let (all, generated) = choose(&[], None).expect("built in");
        assert!(generated && all.len() == 3);
        for workload in &all {
            assert_eq!((workload.sizes.len(), workload.epoch), (4, Some(10.0)));
            assert!(workload.tenants.iter().all(|tenant| tenant.trace.generator().is_some()), "{workload:?}");
        }
    }
}
