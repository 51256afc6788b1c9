//! `larder simulate`: what caches of many sizes under many policies would do with a trace.

mod csv;
pub mod matrix;
mod options;
mod plot;
mod report;
pub mod size;
pub mod tenants;

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use larder_policy::spec::CachingSpec;
use larder_sim::{Futures, Plan, RunResult, RunSpec, Simulated, Span, Survey};

use crate::amount::Warmup;
use crate::head::Head;
use crate::input::TraceName;
use crate::metered::{self, Opened};
use crate::problem::Problem;
use crate::progress::Bar;
use crate::{output, picture, table};
pub use options::Options;

/// Simulate what the options ask for, and tell what was found.
pub fn run(options: &Options) -> Result<(), Problem> {
    match &options.trace {
        Some(trace) => one_trace(options, trace),
        None => tenants::run(options),
    }
}

/// Caches of one trace.
fn one_trace(options: &Options, trace: &TraceName) -> Result<(), Problem> {
    check_outputs(options)?;
    let caching = matrix::caching(options.policies(), &options.admission);
    let survey = survey(options, trace, &caching)?;
    let footprint_blocks = survey.as_ref().map_or(0, |survey| survey.summary.footprint_blocks);
    let sizes = size::resolve(&options.size, options.block(), footprint_blocks)?;
    let plan = plan(options, matrix::runs(&caching, options.write_policies(), &sizes), survey.as_ref());
    let opened = metered::open(trace, options.format)?;
    let format = opened.format.clone();
    let simulated = simulate(options, trace, opened, &plan, survey.as_ref())?;
    if simulated.runs.first().is_some_and(|run| run.totals.requests == 0) && simulated.summary.requests() > 0
    {
        let what = format!("nothing is left to count: the warm-up takes all of {trace}");
        return Err(Problem::new(what, "give a shorter --warmup"));
    }
    let name = metered::short_name(trace);
    let head = Head { trace: &name, format: &format, summary: &simulated.summary, block: options.block() };
    tell(options, &head, &simulated.runs)
}

/// The first pass over the trace, if anything needs one.
fn survey(options: &Options, trace: &TraceName, caching: &[CachingSpec]) -> Result<Option<Survey>, Problem> {
    let mut futures = Futures::default();
    for &caching in caching {
        options.write_policies().iter().for_each(|&write| futures.need(caching, write));
    }
    let shares = options.size.iter().any(size::SizeChoice::is_share);
    if !shares && futures.is_none() && !matches!(options.warmup, Warmup::Share(_)) {
        return Ok(None);
    }
    if metered::is_passing(trace) {
        let what = format!("{trace} can be read only once, but the trace must be looked at beforehand");
        let help = "give sizes in bytes (--size 1GiB), no share as --warmup, and no policy belady; or a trace in a file";
        return Err(Problem::new(what, help));
    }
    let opened = metered::open(trace, options.format)?;
    let bar = Bar::new("reading", expected(options, trace, None), opened.meter, options.quiet);
    let told = |progress| bar.tell(progress);
    let survey = larder_sim::survey(opened.source, options.block(), options.limit, futures, told)?;
    bar.finish();
    if shares && survey.summary.footprint_blocks == 0 {
        let what = format!("{trace} holds no reads or writes: a share of its footprint is no cache size");
        return Err(Problem::new(what, "give another trace, or sizes in bytes (--size 1GiB)"));
    }
    Ok(Some(survey))
}

fn plan(options: &Options, runs: Vec<RunSpec>, survey: Option<&Survey>) -> Plan {
    let requests = survey.map_or(0, |survey| survey.summary.requests());
    let warmup = match options.warmup {
        Warmup::After(span) => span,
        Warmup::Share(share) => Span::Requests((requests as f64 * share).round() as u64),
    };
    Plan {
        runs,
        block: options.block(),
        warmup,
        every: options.interval.map(|interval| interval.0),
        limit: options.limit,
        seed: options.seed,
        threads: options
            .threads
            .or_else(|| thread::available_parallelism().ok())
            .unwrap_or(NonZero::<usize>::MIN),
    }
}

fn simulate(
    options: &Options,
    trace: &TraceName,
    opened: Opened,
    plan: &Plan,
    survey: Option<&Survey>,
) -> Result<Simulated, Problem> {
    let requests = expected(options, trace, survey.map(|survey| survey.summary.requests()));
    let what = format!("simulating {} caches", plan.runs.len());
    let bar = Bar::new(&what, requests, opened.meter, options.quiet);
    let simulated = larder_sim::simulate(opened.source, plan, survey, |progress| bar.tell(progress))?;
    bar.finish();
    Ok(simulated)
}

/// Reads and writes that will come, where that is known.
fn expected(options: &Options, trace: &TraceName, seen: Option<u64>) -> Option<u64> {
    let requests = seen.or_else(|| metered::requests(trace))?;
    Some(options.limit.map_or(requests, |limit| limit.min(requests)))
}

/// A name of a file that cannot be is told before the work, not after it.
fn check_outputs(options: &Options) -> Result<(), Problem> {
    if options.json == Some(None) && options.csv == Some(None) {
        let what = "stdout cannot take both JSON and CSV";
        return Err(Problem::new(what, "name a file for one of them: --csv=runs.csv"));
    }
    if let Some(path) = &options.plot {
        picture::check(path)?;
    }
    let files = [&options.series, &options.plot].into_iter().flatten();
    let files = files.chain([&options.json, &options.csv].into_iter().flatten().flatten());
    files.map(PathBuf::as_path).try_for_each(output::check)
}

fn tell(options: &Options, head: &Head<'_>, runs: &[RunResult]) -> Result<(), Problem> {
    let to = |file: &Option<PathBuf>, text: &str| match file {
        Some(file) => output::save(file, text),
        None => output::print(text),
    };
    if let Some(file) = &options.json {
        to(file, &json(runs)?)?;
    }
    if let Some(file) = &options.csv {
        to(file, &csv::runs(runs))?;
    }
    if let Some(file) = &options.series {
        output::save(file, &csv::series(runs))?;
    }
    if let Some(file) = &options.plot {
        plot::save(file, head, runs)?;
    }
    let stdout_is_taken = options.json == Some(None) || options.csv == Some(None);
    if stdout_is_taken || options.quiet {
        return Ok(());
    }
    output::print(&report::render(head, runs, table::terminal_width()))
}

fn json(runs: &[RunResult]) -> Result<String, Problem> {
    let json = serde_json::to_string_pretty(runs);
    json.map(|json| json + "\n")
        .map_err(|error| Problem::new(error, "tell the authors: results always fit JSON"))
}
