//! What a trace is replayed on: opened so that nothing can be lost that nobody has agreed to lose.

use larder_daemon::units::HumanSize;
use larder_io::{Backing, BackingError, PlainDisk};

use super::layout::Misfit;
use super::options::Options;
use super::survey::Survey;
use crate::number::grouped;
use crate::problem::Problem;

/// Bytes of buffers for requests outstanding.
const BUFFER_BYTES: usize = 256 << 20;

/// Open it: for reading alone, unless writes were agreed to.
pub fn open(options: &Options) -> Result<PlainDisk, Problem> {
    let to = &options.to;
    let opened = match options.destroy_data {
        true => Backing::open_alone(to),
        false => Backing::open_to_read(to),
    };
    let disk = PlainDisk::new(opened.map_err(|error| problem(&error))?, BUFFER_BYTES).map_err(|error| {
        let what = format!("cannot drive {to}: {error}");
        Problem::new(
            what,
            "io_uring has to work here: is kernel.io_uring_disabled set, or a seccomp filter in the way?",
        )
    })?;
    match options.destroy_data && disk.is_read_only() {
        true => Err(Problem::new(
            format_args!("{to} is read-only"),
            "let the server take writes (nbdkit: without --readonly), or leave them out (--reads-only)",
        )),
        false => Ok(disk),
    }
}

fn problem(error: &BackingError) -> Problem {
    Problem::new(error, error.remedy())
}

/// Somebody must have agreed to what is lost.
pub fn check_consent(options: &Options, survey: Option<&Survey>) -> Result<(), Problem> {
    let Options { trace, to, .. } = options;
    let help =
        "if nothing on it is needed any more: --destroy-data; or leave out what changes it: --reads-only";
    if options.destroy_data || options.reads_only {
        return Ok(());
    }
    match survey {
        None => Err(Problem::new(
            format_args!("nobody knows whether {trace} writes, which would destroy what {to} holds"),
            help,
        )),
        Some(Survey { writes: 0, discards: 0, .. }) if options.flush_every.is_none() => Ok(()),
        Some(Survey { writes, discards, .. }) => {
            let (writes, discards) = (grouped(*writes), grouped(*discards));
            let what =
                format!("{trace} has {writes} writes and {discards} discards, which destroy what {to} holds");
            Err(Problem::new(what, help))
        }
    }
}

/// The trace has to have times if it is to be replayed by them.
pub fn check_times(options: &Options, survey: &Survey) -> Result<(), Problem> {
    if options.closed.is_some() || survey.requests < 2 || survey.first_ns < survey.last_ns {
        return Ok(());
    }
    let what = format!("{} has no times by which it could be replayed", options.trace);
    Err(Problem::new(what, "keep a number of requests outstanding instead: --closed 32"))
}

/// The trace has to fit.
pub fn check_room(options: &Options, needs_bytes: u64, disk: &PlainDisk) -> Result<(), Problem> {
    match needs_bytes > disk.bytes() && !options.wrap {
        true => Err(misfit(options, Misfit::Beyond { needs_bytes }, disk)),
        false => Ok(()),
    }
}

/// A request that cannot be replayed.
pub fn misfit(options: &Options, misfit: Misfit, disk: &PlainDisk) -> Problem {
    let Options { trace, to, .. } = options;
    match misfit {
        Misfit::Beyond { needs_bytes } => Problem::new(
            format_args!(
                "{trace} needs {needs_bytes} bytes ({}), and {to} has {} ({})",
                HumanSize(needs_bytes),
                disk.bytes(),
                HumanSize(disk.bytes())
            ),
            "give it that size, fold what lies behind its end into it (--wrap), or take one volume of several (--volume)",
        ),
        Misfit::SecondVolume => Problem::new(
            format_args!(
                "{trace} has several volumes, and cannot be looked at beforehand to find room for them"
            ),
            "choose one (--volume), or put the trace in a file",
        ),
    }
}
