//! Tenants and their traces: who shares a cache, what they touch together, how long they take.

use std::collections::BTreeMap;

use larder_sim::tenants::Pace;
use larder_sim::{BlockSize, Futures, Summary};
use larder_trace::Format;

use super::length::Length;
use super::options::{Arrivals, Asked};
use super::scenario;
use super::settings::Settings;
use crate::input::TraceName;
use crate::metered;
use crate::problem::Problem;
use crate::progress::Bar;
use crate::simulate::size::SizeChoice;

/// Most tenants of a run: each has an analyzer.
const TENANTS_MAX: usize = 1000;

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub trace: TraceName,
    /// What is said about it.
    pub settings: Settings,
}

/// Tenants that share a cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The scenario's name; none for tenants of the command line.
    pub scenario: Option<String>,
    /// The tenants.
    pub tenants: Vec<Tenant>,
    /// The unit of caching, where the scenario has one.
    pub block: Option<BlockSize>,
    /// Seconds between decisions, where the scenario has them.
    pub epoch: Option<f64>,
    /// Sizes of the cache, where the scenario has some.
    pub sizes: Vec<SizeChoice>,
}

/// What the traces of a workload hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surveyed {
    /// Distinct blocks of all tenants.
    pub footprint_blocks: u64,
    /// Reads and writes of all tenants.
    pub requests: u64,
    /// Nanoseconds from the first request of each tenant to its last.
    pub elapsed_ns: Vec<u64>,
    /// The time of each tenant's first request in its trace, where there is one.
    pub first_ns: Vec<Option<u64>>,
}

impl Surveyed {
    /// Another tenant's trace holds this.
    pub fn add(&mut self, summary: &Summary) {
        self.footprint_blocks += summary.footprint_blocks;
        self.requests += summary.requests();
        self.elapsed_ns.push(summary.elapsed_ns);
        self.first_ns.push(summary.first_ns);
    }

    /// Nanoseconds from the first request of all to that of each tenant.
    fn behind_ns(&self) -> impl Iterator<Item = u64> {
        let first = self.first_ns.iter().flatten().min().copied().unwrap_or(0);
        self.first_ns.iter().map(move |own| own.map_or(0, |own| own - first))
    }
}

impl Workload {
    /// Tenants whose names are those of their traces, told apart by numbers where there are several of a name.
    pub fn of_traces(traces: &[TraceName]) -> Self {
        let mut tenants: Vec<Tenant> = Vec::new();
        for trace in traces {
            let stem: String = trace
                .stem()
                .chars()
                .map(|letter| if letter.is_alphanumeric() || "-_".contains(letter) { letter } else { '_' })
                .collect();
            let is_free = |name: &String| tenants.iter().all(|other| other.name != *name);
            let numbered = (2..).map(|number: u64| format!("{stem}-{number}"));
            let name = [stem.clone()].into_iter().chain(numbered).find(is_free).unwrap_or_default();
            tenants.push(Tenant { name, trace: trace.clone(), settings: Settings::default() });
        }
        Self { tenants, ..Self::default() }
    }

    /// Say what the command line says about tenants; all of it must be about one of them.
    fn set(&mut self, arrivals: &Arrivals) -> Result<(), Problem> {
        for setting in &arrivals.settings {
            let Some(tenant) = self.tenants.iter_mut().find(|tenant| tenant.name == setting.name) else {
                let names: Vec<_> = self.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
                let what = format!(
                    "--set {}.{}={}: no tenant is called {}",
                    setting.name, setting.key, setting.value, setting.name
                );
                return Err(Problem::new(what, format!("name one of {}", names.join(", "))));
            };
            let why = |why| {
                Problem::new(
                    format_args!("tenant {}: {why}", setting.name),
                    "say each thing about a tenant once",
                )
            };
            tenant.settings.set(&setting.key, &setting.value).map_err(why)?;
        }
        Ok(())
    }

    /// What cannot be simulated is told before the work.
    fn check(&self, arrivals: &Arrivals, limit: Option<u64>) -> Result<(), Problem> {
        if self.tenants.len() > TENANTS_MAX {
            let what = format!(
                "{} tenants are too many: {TENANTS_MAX} can be simulated together",
                self.tenants.len()
            );
            return Err(Problem::new(what, "leave some out"));
        }
        for (at, tenant) in self.tenants.iter().enumerate() {
            if self.tenants[..at].iter().any(|other| other.name == tenant.name) {
                let what = format!("two tenants are called {}", tenant.name);
                return Err(Problem::new(what, "give each a name of its own"));
            }
            tenant.check(arrivals, limit)?;
        }
        Ok(())
    }

    /// When a tenant's requests come, unless it has a pace of its own.
    pub fn pace(arrivals: &Arrivals) -> Pace {
        match arrivals.closed {
            Some(outstanding) => Pace::Closed { outstanding: outstanding.get() },
            None => Pace::Open { rate: arrivals.rate.unwrap_or(1.0) },
        }
    }

    /// How long a run is, at the times of the traces or until it is ended.
    pub fn length(&self, arrivals: &Arrivals, surveyed: Option<&Surveyed>) -> Length {
        let seconds = self.seconds(arrivals, surveyed);
        Length { seconds, may_end_early: self.may_end_early(arrivals) }
    }

    fn seconds(&self, arrivals: &Arrivals, surveyed: Option<&Surveyed>) -> Option<f64> {
        let length = surveyed.and_then(|surveyed| self.last_request(arrivals, surveyed));
        match (length, arrivals.duration) {
            (Some(length), Some(duration)) => Some(length.min(duration)),
            (length, duration) => length.or(duration),
        }
    }

    /// True where some tenant's requests may all be done before anything ends the run.
    fn may_end_early(&self, arrivals: &Arrivals) -> bool {
        let may = |tenant: &Tenant| match tenant.settings.pace(Self::pace(arrivals)) {
            Pace::Open { .. } => false,
            Pace::Closed { .. } => !tenant.settings.repeats(),
        };
        self.tenants.iter().any(may)
    }

    fn last_request(&self, arrivals: &Arrivals, surveyed: &Surveyed) -> Option<f64> {
        let lengths = surveyed.elapsed_ns.iter().zip(surveyed.behind_ns());
        let ends = self.tenants.iter().zip(lengths).map(|(tenant, (&elapsed, behind))| {
            let Pace::Open { rate } = tenant.settings.pace(Self::pace(arrivals)) else {
                return tenant.settings.stop;
            };
            // Aligned, a trace's clock begins with the first request of all.
            let last = if arrivals.aligned { behind.saturating_add(elapsed) } else { elapsed };
            let end = tenant.settings.start_seconds() + last as f64 / 1e9 / rate;
            let stop = tenant.settings.stop;
            if tenant.settings.repeats() { stop } else { Some(stop.map_or(end, |stop| stop.min(end))) }
        });
        ends.collect::<Option<Vec<_>>>().map(|ends| ends.into_iter().fold(0.0, f64::max))
    }

    /// Tenants that are there at once, at most, as far as is said when they come and go.
    pub fn together(&self) -> usize {
        let there = |tenant: &Tenant, at: f64| {
            tenant.settings.start_seconds() <= at && tenant.settings.stop.is_none_or(|stop| at < stop)
        };
        let at = |one: &Tenant| {
            self.tenants.iter().filter(|other| there(other, one.settings.start_seconds())).count()
        };
        self.tenants.iter().map(at).max().unwrap_or(0)
    }

    /// What to call it in a sentence.
    pub fn title(&self) -> String {
        match &self.scenario {
            Some(name) => name.clone(),
            None => self.tenants.iter().map(|tenant| tenant.name.as_str()).collect::<Vec<_>>().join(" + "),
        }
    }
}

impl Tenant {
    fn check(&self, arrivals: &Arrivals, limit: Option<u64>) -> Result<(), Problem> {
        let about =
            |what: &str, help: &str| Err(Problem::new(format_args!("tenant {}: {what}", self.name), help));
        if let Some(why) = self.settings.contradiction() {
            return about(why, "leave one of the two out");
        }
        if self.settings.is_endless() && arrivals.duration.is_none() && limit.is_none() {
            return about("it goes on for ever", "give it a stop, or the run a --duration or a --limit");
        }
        if metered::is_passing(&self.trace) {
            let what = format!(
                "{} can be read only once, and a simulation of tenants opens it for every run",
                self.trace
            );
            return about(&what, "name a trace in a file, or gen:SPEC");
        }
        Ok(())
    }
}

/// The workloads that are asked for, checked.
pub fn workloads(
    asked: &Asked,
    arrivals: &Arrivals,
    limit: Option<u64>,
    traces: &[TraceName],
) -> Result<Vec<Workload>, Problem> {
    let tenants = asked.tenants.iter().map(|named| Tenant {
        name: named.name.clone(),
        trace: named.trace.clone(),
        settings: Settings::default(),
    });
    let mut own = Workload::of_traces(traces);
    own.tenants.extend(tenants);
    let mut all = Vec::new();
    if !own.tenants.is_empty() {
        all.push(own);
    }
    for scenario in &asked.scenarios {
        all.extend(scenario::load(scenario)?);
    }
    if asked.scenarios.len() + usize::from(all.first().is_some_and(|first| first.scenario.is_none())) > 1 {
        different_names(&all)?;
    }
    for workload in &mut all {
        workload.set(arrivals)?;
        workload.check(arrivals, limit)?;
    }
    Ok(all)
}

fn different_names(all: &[Workload]) -> Result<(), Problem> {
    let twice = all
        .iter()
        .enumerate()
        .find(|(at, workload)| all[..*at].iter().any(|other| other.scenario == workload.scenario));
    match twice {
        Some((_, workload)) => Err(Problem::new(
            format_args!("scenario {} is asked for twice", workload.title()),
            "name each scenario once",
        )),
        None => Ok(()),
    }
}

/// A pass over the traces of all workloads, each read once.
pub fn survey(
    all: &[Workload],
    format: Option<Format>,
    block: impl Fn(&Workload) -> BlockSize,
    limit: Option<u64>,
    quiet: bool,
) -> Result<Vec<Surveyed>, Problem> {
    let mut known: BTreeMap<(String, u32), Summary> = BTreeMap::new();
    let mut surveys = Vec::new();
    for workload in all {
        let block = block(workload);
        let mut surveyed = Surveyed::default();
        for tenant in &workload.tenants {
            let key = (tenant.trace.to_string(), block.bytes());
            if !known.contains_key(&key) {
                known.insert(key.clone(), summary(&tenant.trace, format, block, limit, quiet)?);
            }
            surveyed.add(&known[&key]);
        }
        surveys.push(surveyed);
    }
    Ok(surveys)
}

fn summary(
    trace: &TraceName,
    format: Option<Format>,
    block: BlockSize,
    limit: Option<u64>,
    quiet: bool,
) -> Result<Summary, Problem> {
    let opened = metered::open(trace, format)?;
    let requests =
        metered::requests(trace).map(|requests| limit.map_or(requests, |limit| limit.min(requests)));
    let bar = Bar::new(&format!("reading {}", metered::short_name(trace)), requests, opened.meter, quiet);
    let survey =
        larder_sim::survey(opened.source, block, limit, Futures::default(), |progress| bar.tell(progress))?;
    bar.finish();
    Ok(survey.summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn traces(names: &[&str]) -> Vec<TraceName> {
        names.iter().map(|&name| OsString::from(name).into()).collect()
    }

    fn arrivals(settings: &[&str]) -> Arrivals {
        let settings = settings.iter().map(|text| text.parse().expect(text)).collect();
        Arrivals { settings, ..Arrivals::default() }
    }

    fn one(settings: &[&str], of: &[&str]) -> Result<Workload, Problem> {
        let all = workloads(&Asked::default(), &arrivals(settings), None, &traces(of))?;
        Ok(all.into_iter().next().expect("a workload"))
    }

    #[test]
    fn tenants_are_called_like_their_traces() {
        let workload = one(
            &["web-2.rate=2"],
            &["a/web.csv", "b/web.csv.gz", "gen:uniform:blocks=1,requests=1", "my trace.csv"],
        )
        .expect("four");
        let names: Vec<_> = workload.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        assert_eq!(names, ["web", "web-2", "gen", "my_trace"]);
        assert_eq!(
            workload.tenants[1].settings.pace(Pace::Closed { outstanding: 1 }),
            Pace::Open { rate: 2.0 }
        );
        assert_eq!(workload.title(), "web + web-2 + gen + my_trace");
    }

    #[test]
    fn the_length_of_a_run_follows_from_the_traces() {
        let surveyed = Surveyed {
            elapsed_ns: vec![100_000_000_000, 60_000_000_000],
            first_ns: vec![Some(7_000_000_000), Some(307_000_000_000)],
            ..Surveyed::default()
        };
        let of = |settings: &[&str]| {
            let workload = one(settings, &["a.csv", "b.csv"]).expect("two");
            workload.seconds(&arrivals(settings), Some(&surveyed))
        };
        assert_eq!(of(&[]), Some(100.0));
        assert_eq!(of(&["b.start=90s"]), Some(150.0));
        assert_eq!(of(&["a.rate=4", "b.start=90s", "b.stop=2min"]), Some(120.0));
        assert_eq!(of(&["a.outstanding=2"]), None);
        assert_eq!(of(&["a.outstanding=2", "a.stop=200s"]), Some(200.0));
        assert_eq!(of(&["b.loop=yes", "b.stop=3min"]), Some(180.0));
        let given = |seconds| Arrivals { duration: Some(seconds), ..Arrivals::default() };
        let both = one(&[], &["a.csv", "b.csv"]).expect("two");
        assert_eq!(both.seconds(&given(7.0), None), Some(7.0));
        let lengths = [7.0, 700.0].map(|duration| both.seconds(&given(duration), Some(&surveyed)));
        assert_eq!(lengths, [Some(7.0), Some(100.0)]);
        // Five minutes between the traces are there or not.
        let aligned = |settings: &[&str]| {
            let workload = one(settings, &["a.csv", "b.csv"]).expect("two");
            workload.seconds(&Arrivals { aligned: true, ..arrivals(settings) }, Some(&surveyed))
        };
        assert_eq!([&[][..], &["b.rate=4", "b.start=1s"]].map(aligned), [Some(360.0), Some(100.0)]);
        assert_eq!(aligned(&["b.rate=2", "b.start=1s"]), Some(181.0));
        for (setting, early) in [("a.rate=2", false), ("a.outstanding=2", true)] {
            let settings = arrivals(&[setting]);
            assert_eq!(one(&[setting], &["a.csv"]).expect("one").may_end_early(&settings), early);
        }
        let again = ["a.outstanding=2", "a.loop=yes", "a.stop=9s"];
        assert!(!one(&again, &["a.csv"]).expect("one").may_end_early(&arrivals(&again)));
    }
}
