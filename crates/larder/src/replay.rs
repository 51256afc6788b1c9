//! `larder replay`: the requests of a trace on a real device, file or NBD export, at their times or as fast as it goes; with
//! latencies, and with a check of what was written.

mod feed;
mod latency;
mod layout;
pub mod options;
mod report;
mod run;
mod stamps;
mod survey;
mod tally;
mod target;
mod versions;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::Duration;

use larder_daemon::units::HumanSize;
use larder_io::PlainDisk;

use crate::metered;
use crate::problem::Problem;
use crate::progress::Bar;
use crate::trace::interrupt::Interrupt;
use crate::{output, table};
use feed::{Broken, Feed};
use layout::Layout;
pub use options::Options;
use options::Verify;
use report::{Facts, Report};
use run::{Ending, Pace, Plan, Replay};
use stamps::Stamps;
use survey::Survey;
use tally::{Failure, Mismatch, Tally};

/// Replay what the options ask for, and tell what came of it.
pub fn run(options: &Options) -> Result<(), Problem> {
    if let Some(Some(file)) = &options.json {
        output::check(file)?;
    }
    let mut disk = target::open(options)?;
    let mut layout = Layout {
        chosen: options.volume.clone(),
        reads_only: options.reads_only,
        wrap: options.wrap,
        bytes: disk.bytes(),
        align: disk.align().into(),
        starts: Vec::new(),
    };
    let survey = look(options, &mut layout, &disk)?;
    let interrupt = Interrupt::listen()?;
    let opened = metered::open(&options.trace, options.format)?;
    let plan = plan(options);
    let expected = survey.as_ref().map(|survey| survey.requests);
    let mut feed = Feed::start(opened.source, layout, options.limit)?;
    let mut replay = Replay::new(&mut disk, &mut feed, &plan);
    let bar = Bar::new("replaying", expected, opened.meter, options.quiet);
    let stop = || interrupt.is_set();
    let outcome = replay.run(stop, |progress| bar.tell(progress));
    bar.finish();
    let (ending, elapsed) = outcome.map_err(|error| broken_ring(&error))?;
    if options.verify == Some(Verify::All) && ending != Ending::Signal {
        read_back(options, &mut replay, stop)?;
    }
    let tally = replay.tally;
    let facts = Facts {
        trace: metered::short_name(&options.trace),
        format: opened.format,
        target: disk.name(),
        target_bytes: disk.bytes(),
        pace: plan.pace,
        ending,
        elapsed,
        tally: &tally,
        changes: feed.changes,
        seed: plan.stamps.seed,
        is_verified: plan.checks,
    };
    tell(options, &Report::new(facts))?;
    match feed.broken.take() {
        Some(Broken::Trace(error)) => return Err(error.into()),
        Some(Broken::Misfit(misfit)) => return Err(target::misfit(options, misfit, &disk)),
        None => {}
    }
    verdict(options, &tally)?;
    match interrupt.is_set() {
        true => Err(Problem::new(
            "ended by a signal",
            "what is told is of what was done before; run it again for the rest",
        )),
        false => Ok(()),
    }
}

/// Look at the trace beforehand, where it can be read twice, and at whether it may and can be replayed.
fn look(options: &Options, layout: &mut Layout, disk: &PlainDisk) -> Result<Option<Survey>, Problem> {
    let trace = &options.trace;
    if metered::is_passing(trace) {
        target::check_consent(options, None)?;
        return Ok(None);
    }
    let mut opened = metered::open(trace, options.format)?;
    let bar = Bar::new("reading", metered::requests(trace), opened.meter, options.quiet);
    let survey = Survey::of(&mut opened.source, layout, options.limit, |progress| bar.tell(progress))?;
    bar.finish();
    check_names(options, &opened.source)?;
    target::check_consent(options, Some(&survey))?;
    target::check_times(options, &survey)?;
    let needs_bytes = layout.place(opened.source.volumes(), &survey.ends);
    target::check_room(options, needs_bytes, disk)?;
    if survey.requests == 0 {
        let what = format!("{trace} has nothing to replay");
        return Err(Problem::new(what, "give another trace; --reads-only leaves out all but reads"));
    }
    Ok(Some(survey))
}

fn check_names(options: &Options, source: &metered::Requests) -> Result<(), Problem> {
    let is_there = |name: &&String| source.volumes().iter().any(|volume| volume.to_string() == **name);
    match options.volume.iter().find(|name| !is_there(name)) {
        Some(name) => Err(Problem::new(
            format_args!("{} has no volume {name}", options.trace),
            format!("larder trace info {} lists its volumes", options.trace),
        )),
        None => Ok(()),
    }
}

fn plan(options: &Options) -> Plan {
    Plan {
        pace: match options.closed {
            Some(outstanding) => Pace::Closed { outstanding },
            None => Pace::Open { rate: options.rate.unwrap_or(1.0) },
        },
        duration: options
            .duration
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        flush_every: options.flush_every,
        stamps: Stamps { seed: options.seed.unwrap_or_else(|| RandomState::new().hash_one(0)) },
        checks: options.verify.is_some(),
    }
}

fn read_back(options: &Options, replay: &mut Replay<'_>, stop: impl Fn() -> bool) -> Result<(), Problem> {
    let pages = replay.pages();
    let bar = Bar::new("reading again (MiB)", Some(pages.len() as u64), None, options.quiet);
    let outcome = replay.read_back(&pages, stop, |progress| bar.tell(progress));
    bar.finish();
    outcome.map_err(|error| broken_ring(&error))
}

fn broken_ring(error: &io::Error) -> Problem {
    Problem::new(format_args!("io_uring failed: {error}"), "the kernel log (dmesg) may say more")
}

fn tell(options: &Options, report: &Report) -> Result<(), Problem> {
    match &options.json {
        Some(None) => return output::print(&output::json(report)),
        Some(Some(file)) => output::save(file, &output::json(report))?,
        None => {}
    }
    match options.quiet {
        true => Ok(()),
        false => output::print(&report.text(table::terminal_width())),
    }
}

/// An error if anything was not as it should be.
fn verdict(options: &Options, tally: &Tally) -> Result<(), Problem> {
    let (to, verified) = (&options.to, &tally.verified);
    if let Some(first) = verified.told.first() {
        let told = verified.told.iter().map(wrong).collect::<String>();
        let what = format!("{} sectors of {to} do not hold what was written:{told}", verified.wrong);
        let help = match first.found {
            stamps::Found::OtherReplay { .. } => "is somebody else writing to it? if not, writes were lost",
            _ => "writes were lost, went elsewhere or were damaged; nobody else may write to it meanwhile",
        };
        return Err(Problem::new(what, help));
    }
    if let Some(Failure { kind, offset, len, error }) = tally.first_failure {
        let what = format!(
            "{} requests to {to} failed; the first was a {} of {} at byte {offset}: {error}",
            tally.errors(),
            kind.as_str().to_lowercase(),
            HumanSize(len)
        );
        return Err(Problem::new(
            what,
            "see the messages above, and the log of the kernel (dmesg) or the server",
        ));
    }
    match tally.unread {
        0 => Ok(()),
        unread => Err(Problem::new(
            format_args!("{unread} reads of what was written to {to} failed: it is not known to be right"),
            "see the messages above, and the log of the kernel (dmesg) or the server",
        )),
    }
}

/// A line of what is wrong.
fn wrong(mismatch: &Mismatch) -> String {
    let Mismatch { offset, expected, found } = mismatch;
    let expected: Vec<String> = expected.iter().map(|version| format!("write {version}")).collect();
    format!("\n  at byte {offset}: expected {}, found {found}", expected.join(" or "))
}
