//! `larder analyze`: how much cache workloads can use, what it would bring, and what it would cost in SSD writes.

mod choice;
mod distances;
mod found;
mod json;
mod line;
mod options;
mod page;
mod pictures;
mod reach;
mod report;
mod rows;
mod sample;
mod sizes;
#[cfg(test)]
mod testing;
mod verdict;

use std::num::NonZero;
use std::path::Path;
use std::thread;

use larder_locality::bank::SAMPLE_BLOCKS;
use larder_locality::{CurvePolicy, Sampling};
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};
use larder_sim::{AnalysisPlan, SimError, WritePolicy};

use crate::input::TraceName;
use crate::metered::{self, Opened};
use crate::problem::Problem;
use crate::progress::Bar;
use crate::simulate::matrix;
use crate::{output, picture, table};
use choice::WriteChoice;
use found::{Asked, Found};
pub use options::Options;
pub use sample::Sample;

/// Blocks that estimates of other policies are made from: at an eighth of it, the SSD writes of LARC on a recorded mail server were
/// a quarter too low at one size; at this, they were within one per cent. Where --sample bounds the memory, there are fewer.
const BANK_BLOCKS: u32 = 1 << 18;

/// Analyze the traces one after the other, and tell what was found.
pub fn run(options: &Options) -> Result<(), Problem> {
    check(options)?;
    let plan = plan(options)?;
    let mut all: Vec<Found> = Vec::new();
    for trace in &options.traces {
        let name = unused(&trace.stem(), &all);
        all.push(analyze(options, &plan, trace, name)?);
    }
    tell(options, &all)
}

/// What cannot be is told before the work, not after it.
fn check(options: &Options) -> Result<(), Problem> {
    if options.traces.iter().filter(|trace| trace.is_stdin()).count() > 1 {
        let what = "stdin can be read only once, but is named twice";
        return Err(Problem::new(what, "name each trace once"));
    }
    for choice in &options.plot {
        picture::check(&choice.file)?;
    }
    let files = options.plot.iter().map(|choice| choice.file.as_path());
    let files =
        files.chain(options.html.as_deref()).chain(options.json.iter().flatten().map(AsRef::<Path>::as_ref));
    files.into_iter().try_for_each(output::check)
}

fn plan(options: &Options) -> Result<AnalysisPlan, Problem> {
    let mut policies = choice::write_policies(&options.write_policy);
    if !policies.contains(&CurvePolicy::WriteBack) {
        policies.push(CurvePolicy::WriteBack);
    }
    Ok(AnalysisPlan {
        block: options.block,
        limit: options.limit,
        sampling: options.sampling(),
        policies,
        mover_epoch: options.mover_epoch.0,
        bank: bank(options)?,
        bank_blocks: bank_blocks(options.sampling()),
        seed: options.seed,
        threads: options
            .threads
            .or_else(|| thread::available_parallelism().ok())
            .unwrap_or(NonZero::<usize>::MIN),
    })
}

/// The caches to be estimated: every policy under every write policy that was named, under `wb` where all are. LRU has curves of its own.
fn bank(options: &Options) -> Result<Vec<(CachingSpec, WritePolicy)>, Problem> {
    let mut caching = matrix::caching(&options.policy, &[AdmissionSpec::Always]);
    caching.retain(|caching| *caching != CachingSpec::default());
    if caching.iter().any(|caching| caching.policy() == PolicySpec::Belady) {
        let what = "belady cannot be estimated: it has to know the trace beforehand";
        return Err(Problem::new(what, "run `larder simulate --policy belady`, or leave it out"));
    }
    let writes: Vec<_> = match &options.write_policy {
        chosen if chosen.contains(&WriteChoice::All) => vec![WritePolicy::WriteBack],
        chosen => choice::write_policies(chosen).into_iter().filter_map(CurvePolicy::write_policy).collect(),
    };
    if writes.is_empty() && !caching.is_empty() {
        let what = "batched is a matter of LRU caches: other policies cannot be estimated under it";
        return Err(Problem::new(what, "name another of --write-policy beside it, or leave --policy out"));
    }
    Ok(writes.iter().flat_map(|&write| caching.iter().map(move |&caching| (caching, write))).collect())
}

fn bank_blocks(sampling: Sampling) -> u32 {
    match sampling {
        Sampling::Blocks(blocks) => blocks.clamp(SAMPLE_BLOCKS, BANK_BLOCKS),
        Sampling::Exact | Sampling::Rate(_) => BANK_BLOCKS,
    }
}

/// A name that no other trace has.
fn unused(stem: &str, others: &[Found]) -> String {
    let is_free = |name: &String| others.iter().all(|other| other.asked.name != *name);
    let numbered = (2..).map(|number: u64| format!("{stem}-{number}"));
    [stem.to_owned()].into_iter().chain(numbered).find(is_free).unwrap_or_default()
}

fn analyze(
    options: &Options,
    plan: &AnalysisPlan,
    trace: &TraceName,
    name: String,
) -> Result<Found, Problem> {
    let Opened { mut source, format, meter } = metered::open(trace, options.format)?;
    let requests =
        metered::requests(trace).map(|requests| options.limit.map_or(requests, |limit| limit.min(requests)));
    let bar = Bar::new(&format!("analyzing {name}"), requests, meter, options.quiet);
    let analysis = larder_sim::analyze(&mut source, plan, |progress| bar.tell(progress));
    bar.finish();
    let analysis = analysis.map_err(|error| match error {
        SimError::Source(error) => error.into(),
        other => Problem::from(other).about(trace),
    })?;
    let asked = Asked {
        trace: metered::short_name(trace),
        name,
        format,
        volumes: source.volumes().iter().map(ToString::to_string).collect(),
        sampling: plan.sampling,
        write_policies: choice::write_policies(&options.write_policy),
        mover_epoch: plan.mover_epoch,
    };
    Ok(Found::new(asked, analysis))
}

fn tell(options: &Options, all: &[Found]) -> Result<(), Problem> {
    if let Some(file) = &options.json {
        let json = json(all)?;
        file.as_deref().map_or_else(|| output::print(&json), |file| output::save(file, &json))?;
    }
    if let Some(file) = &options.html {
        output::save(file, &page::html(all))?;
    }
    for (choice, found) in options.plot.iter().flat_map(|choice| all.iter().map(move |found| (choice, found)))
    {
        pictures::save(choice, (all.len() > 1).then_some(&found.asked.name), found)?;
    }
    if options.json == Some(None) || options.quiet {
        return Ok(());
    }
    let width = table::terminal_width();
    let sections: Vec<_> = all.iter().map(|found| report::render(found, width)).collect();
    output::print(&sections.join("\n\n"))
}

/// An object, or a list of them for several traces.
fn json(all: &[Found]) -> Result<String, Problem> {
    let reports: Vec<_> = all.iter().map(json::Report::new).collect();
    let json = match &reports[..] {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    json.map(|json| json + "\n")
        .map_err(|error| Problem::new(error, "tell the authors: what is found always fits JSON"))
}
