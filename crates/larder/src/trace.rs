//! `larder trace`: look at traces, convert them, cut them up and put them together.

mod account;
mod convert;
mod cut;
mod destination;
mod encoder;
mod head;
mod info;
pub mod interrupt;
mod losses;
mod merge;
pub mod options;
mod output;
pub mod record;
mod split;
mod text;

use std::io::{self, Write};

use larder_trace::{Request, Volume};

use crate::input::Input;
use crate::problem::Problem;
use interrupt::Interrupt;
use options::TraceCommand;

/// Requests read at a time.
const BATCH: usize = 4096;

/// Do what the options say.
pub fn run(command: &TraceCommand) -> Result<(), Problem> {
    let done = match command {
        TraceCommand::Info(options) => info::show(options),
        TraceCommand::Convert(options) => convert::convert(options),
        TraceCommand::Head(options) => head::show(options),
        TraceCommand::Split(options) => split::split(options),
        TraceCommand::Merge(options) => merge::merge(options),
        TraceCommand::Cut(options) => cut::cut(options),
    };
    match done {
        Err(Failure::Problem(problem)) => Err(problem),
        Ok(()) | Err(Failure::Closed) => Ok(()),
    }
}

/// Why a command ends early.
#[derive(Debug)]
enum Failure {
    /// Something is wrong.
    Problem(Problem),
    /// Whoever reads stdout has seen enough (`larder trace head | head -1`).
    Closed,
}

impl<P: Into<Problem>> From<P> for Failure {
    fn from(problem: P) -> Self {
        Self::Problem(problem.into())
    }
}

impl Failure {
    /// Writing to stdout failed.
    fn of_stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => {
                Problem::new(format_args!("stdout: cannot be written: {error}"), "check where it goes").into()
            }
        }
    }
}

/// Tell something on stderr. That nobody can hear it is no reason to fail.
fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether there is more to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    More,
    Enough,
}

/// Hand over each request with its volume, until the trace ends or `take` has enough.
fn for_each(
    input: &mut Input,
    interrupt: &Interrupt,
    mut take: impl FnMut(&Request, &Volume) -> Result<Next, Failure>,
) -> Result<(), Failure> {
    let mut batch = Vec::with_capacity(BATCH);
    while input.read_batch(&mut batch, BATCH)? {
        interrupt.check()?;
        let volumes = input.volumes();
        for request in &batch {
            if take(request, &volumes[request.volume as usize])? == Next::Enough {
                return Ok(());
            }
        }
        batch.clear();
    }
    Ok(())
}
