//! `larder record`: the requests of a running daemon's guests as a trace.
//!
//! The daemon sends them over its control socket, and this writes the file: the daemon needs no place to write to.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use larder_daemon::control_socket::REQUEST_BYTES_MAX;
use larder_daemon::record::lines::{
    Begun, Line, Lines, Recorded, RecordedKind, Round, VolumeLine, request_line,
};
use larder_daemon::units::parse_duration;
use larder_sim::Progress;
use larder_trace::{Format, Request, RequestKind, Volume};

use super::Failure;
use super::account::Account;
use super::destination::Destination;
use super::interrupt::Interrupt;
use super::options::{Care, written_format};
use super::output::Output;
use super::text::counted;
use crate::cli;
use crate::problem::Problem;
use crate::progress::Bar;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  larder record --out host.parquet --for 10m
  larder record web db --out both.csv.zst --max-requests 1000000
  larder simulate host.parquet --policy lru,arc --size 10GiB
  larder record --out host.parquet --account host.json --for 1h && larder simulate --like host.json --allocator larder,eci";

/// The most that one request of a trace may have, for a daemon's larger discards.
const PIECE_BYTES_MAX: u64 = 1 << 31;

/// Options of `larder record`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Tenants and volumes (TENANT/VOLUME where both have the name) whose requests are recorded [default: all].
    #[arg(value_name = "TENANT|VOLUME")]
    pub names: Vec<String>,
    /// The file to write, - for stdout. Its name tells the format, as in `larder trace convert`: .parquet, .csv (msr), .fio, .oracleGeneral; .gz or .zst after it compresses.
    #[arg(short, long, value_name = "OUT")]
    pub out: OsString,
    /// Also write what the daemon is like, what requests take, and what is decided meanwhile (JSON): `larder simulate --like FILE` does it again.
    #[arg(long, value_name = "FILE")]
    pub account: Option<PathBuf>,
    /// End after so much time: 90s, 10m, 2h [default: at Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// End after so many requests.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_requests: Option<u64>,
    /// The format of OUT: msr, oracle-general, parquet or fio [default: what its name says].
    #[arg(long, value_name = "FORMAT", value_parser = written_format)]
    pub to: Option<Format>,
    /// How to write it.
    #[command(flatten)]
    pub care: Care,
    /// The daemon.
    #[command(flatten)]
    pub daemon: cli::Daemon,
}

/// Do what the options say.
pub fn run(options: &Options) -> Result<(), Problem> {
    match record(options) {
        Err(Failure::Problem(problem)) => Err(problem),
        Ok(()) | Err(Failure::Closed) => Ok(()),
    }
}

fn record(options: &Options) -> Result<(), Failure> {
    let destination = Destination::new(&options.out, options.to, options.care.force)?;
    destination.check(&[])?;
    let mut account = options.account.as_deref().map(|path| Account::new(path, options)).transpose()?;
    let request = request_line(&options.names);
    if request.len() >= REQUEST_BYTES_MAX {
        let help = "record all (no name), and choose with `larder trace cut --tenant`";
        return Err(Problem::new("these are too many names for one request to the daemon", help).into());
    }
    let socket = status::socket(&options.daemon)?;
    let interrupt = Interrupt::listen()?;
    let (first, mut lines) = Lines::ask(&socket, &request)?;
    let refused = |what: &str| {
        Problem::new(what, "`larder status` lists the tenants and volumes; four can record at a time")
    };
    let _: Begun = status::understood(&first, &socket, refused)?;

    let mut taken = Taken::new(Output::new(destination, options.care)?, options);
    let bar = Bar::new("recording", None, None, !std::io::stderr().is_terminal());
    let mut finishing = false;
    let ended = loop {
        match lines.read()? {
            None => break false,
            Some(Line::Volume(volume)) => taken.meet(volume),
            Some(Line::Setup(setup)) => account.iter_mut().for_each(|account| account.begin(&setup)),
            Some(Line::Decided(decided)) => account.iter_mut().for_each(|account| account.decided(&decided)),
            Some(Line::Round(round)) => {
                if taken.take(&round)? {
                    break true;
                }
                bar.tell(Progress { requests: taken.written });
                if round.last {
                    break true;
                }
            }
        }
        if interrupt.is_set() && !finishing {
            finishing = true;
            lines.finish()?;
        }
    };
    bar.finish();
    account.map_or(Ok(()), |account| account.save())?;
    taken.end(ended)
}

/// What has come so far.
struct Taken {
    output: Output,
    /// By their numbers.
    volumes: HashMap<u32, Volume>,
    until_ns: u64,
    requests_max: u64,
    written: u64,
    dropped: u64,
}

impl Taken {
    fn new(output: Output, options: &Options) -> Self {
        let until_ns = options.duration.map_or(u64::MAX, |time| time.as_nanos() as u64);
        let requests_max = options.max_requests.unwrap_or(u64::MAX);
        Self { output, volumes: HashMap::new(), until_ns, requests_max, written: 0, dropped: 0 }
    }

    fn meet(&mut self, VolumeLine { number, tenant, name }: VolumeLine) {
        self.volumes.insert(number, Volume::new(tenant, name));
    }

    /// Write what is wanted of a round; true where that is enough.
    fn take(&mut self, round: &Round) -> Result<bool, Failure> {
        self.dropped = round.dropped;
        for recorded in &round.requests {
            if recorded.0 > self.until_ns || self.written >= self.requests_max {
                return Ok(true);
            }
            let volume = self.volumes.get(&recorded.1).ok_or_else(|| {
                let what = format!(
                    "the daemon told of a request to volume number {}, which it had not named",
                    recorded.1
                );
                Problem::new(what, "use the `larder` of the daemon's version")
            })?;
            for request in requests(recorded) {
                self.output.write(&request, volume)?;
            }
            self.written += 1;
        }
        Ok(round.until_ns >= self.until_ns || self.written >= self.requests_max)
    }

    /// Give the file its name, and tell what is wrong with it.
    fn end(self, ended: bool) -> Result<(), Failure> {
        let Self { output, dropped, .. } = self;
        let written = output.finish()?;
        written.commit_and_tell()?;
        if dropped > 0 {
            let what = format!(
                "{} missing in the trace: they came faster than they could be recorded",
                counted(dropped, "request (of any tenant) is", "requests (of any tenant) are")
            );
            return Err(Problem::new(
                what,
                "write to a faster disk, or uncompressed (.csv), on a less busy host",
            )
            .into());
        }
        if !ended {
            let help = "the trace has what came until shortly before; look at the daemon's log";
            return Err(Problem::new("the daemon ended while it was recorded", help).into());
        }
        Ok(())
    }
}

/// A request as a trace has it: what is longer than a trace's requests can be is several.
fn requests(&Recorded(time_ns, volume, kind, offset, len): &Recorded) -> impl Iterator<Item = Request> {
    let kind = match kind {
        RecordedKind::Read => RequestKind::Read,
        RecordedKind::Write => RequestKind::Write,
        RecordedKind::Flush => RequestKind::Flush,
        // Zeroes are no data: a cache lets go of the blocks, as for a discard.
        RecordedKind::Discard | RecordedKind::Zero => RequestKind::Discard,
    };
    let pieces = len.div_ceil(PIECE_BYTES_MAX).max(1);
    (0..pieces).map(move |piece| {
        let at = piece * PIECE_BYTES_MAX;
        let len = (len - at).min(PIECE_BYTES_MAX) as u32;
        Request { time_ns, volume, kind, offset: offset + at, len }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_discards_are_cut_up_and_nothing_else_is() {
        let cut = |len| -> Vec<_> {
            let recorded = Recorded(7, 1, RecordedKind::Zero, 4096, len);
            requests(&recorded).map(|request| (request.kind, request.offset, request.len)).collect()
        };
        let discard = RequestKind::Discard;
        assert_eq!(cut(0), [(discard, 4096, 0)]);
        assert_eq!(cut(512), [(discard, 4096, 512)]);
        let piece = PIECE_BYTES_MAX as u32;
        assert_eq!(cut(PIECE_BYTES_MAX), [(discard, 4096, piece)]);
        assert_eq!(
            cut(PIECE_BYTES_MAX + 512),
            [(discard, 4096, piece), (discard, 4096 + PIECE_BYTES_MAX, 512)]
        );
    }
}
