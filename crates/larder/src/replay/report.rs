//! What a replay found: a table with a few lines for people, an object for programs.

use std::fmt::Write;
use std::time::Duration;

use larder_daemon::units::HumanSize;
use larder_trace::RequestKind;
use serde::Serialize;

use super::latency::Percentiles;
use super::layout::Changes;
use super::run::{Ending, Pace};
use super::tally::{Mismatch, OfKind, Tally};
use crate::columns::Columns;
use crate::number::{compact, grouped, time};

const HEADINGS: [&str; 11] = [
    "",
    "requests",
    "per\nsecond",
    "data",
    "data per\nsecond",
    "mean",
    "50 %",
    "95 %",
    "99 %",
    "99.9 %",
    "max",
];

const KINDS: [(RequestKind, &str); 4] = [
    (RequestKind::Read, "reads"),
    (RequestKind::Write, "writes"),
    (RequestKind::Flush, "flushes"),
    (RequestKind::Discard, "discards"),
];

/// All that is told.
#[derive(Serialize)]
pub struct Report {
    trace: String,
    format: String,
    target: String,
    target_bytes: u64,
    pace: PaceTold,
    seconds: f64,
    /// `trace`, `duration` or `signal`.
    ended_by: &'static str,
    reads: KindTold,
    writes: KindTold,
    flushes: KindTold,
    discards: KindTold,
    /// Sent so long after their time; in open loop.
    lateness_seconds: Option<Percentiles>,
    /// Requests that were due while as many as may be were outstanding.
    held_up_requests: u64,
    #[serde(flatten)]
    changes: Changes,
    /// Of what was written, and checked.
    seed: u64,
    verification: Option<Verification>,
}

#[derive(Serialize)]
#[serde(tag = "loop", rename_all = "lowercase")]
enum PaceTold {
    Open { rate: f64 },
    Closed { outstanding: u32 },
}

#[derive(Serialize)]
struct KindTold {
    requests: u64,
    bytes: u64,
    requests_per_second: f64,
    bytes_per_second: f64,
    errors: u64,
    latency_seconds: Option<Percentiles>,
}

#[derive(Serialize)]
struct Verification {
    checked_sectors: u64,
    read_back_sectors: u64,
    wrong_sectors: u64,
    unread_requests: u64,
    first_wrong: Vec<WrongTold>,
}

#[derive(Serialize)]
struct WrongTold {
    offset_bytes: u64,
    expected_writes: Vec<u64>,
    found: String,
}

/// What there is to tell.
pub struct Facts<'a> {
    pub trace: String,
    pub format: String,
    pub target: String,
    pub target_bytes: u64,
    pub pace: Pace,
    pub ending: Ending,
    pub elapsed: Duration,
    pub tally: &'a Tally,
    pub changes: Changes,
    pub seed: u64,
    pub is_verified: bool,
}

impl Report {
    pub fn new(facts: Facts<'_>) -> Self {
        let Facts { tally, changes, seed, elapsed, .. } = facts;
        let per_second = |count: u64| count as f64 / elapsed.as_secs_f64().max(1e-9);
        let told = |kind| {
            let OfKind { requests, bytes, errors, latency } = tally.of(kind);
            let (requests, bytes, errors) = (*requests, *bytes, *errors);
            let (requests_per_second, bytes_per_second) = (per_second(requests), per_second(bytes));
            let latency_seconds = latency.percentiles();
            KindTold { requests, bytes, requests_per_second, bytes_per_second, errors, latency_seconds }
        };
        Self {
            trace: facts.trace,
            format: facts.format,
            target: facts.target,
            target_bytes: facts.target_bytes,
            pace: match facts.pace {
                Pace::Open { rate } => PaceTold::Open { rate },
                Pace::Closed { outstanding } => PaceTold::Closed { outstanding },
            },
            seconds: elapsed.as_secs_f64(),
            ended_by: match facts.ending {
                Ending::Trace => "trace",
                Ending::Duration => "duration",
                Ending::Signal => "signal",
            },
            reads: told(RequestKind::Read),
            writes: told(RequestKind::Write),
            flushes: told(RequestKind::Flush),
            discards: told(RequestKind::Discard),
            lateness_seconds: tally.lateness.percentiles(),
            held_up_requests: tally.held_up,
            changes,
            seed,
            verification: facts.is_verified.then(|| Verification::new(tally)),
        }
    }

    fn of(&self, kind: RequestKind) -> &KindTold {
        match kind {
            RequestKind::Read => &self.reads,
            RequestKind::Write => &self.writes,
            RequestKind::Flush => &self.flushes,
            RequestKind::Discard => &self.discards,
        }
    }

    /// In lines of at most `width` columns where the words allow it.
    pub fn text(&self, width: u16) -> String {
        let mut text = self.head();
        text.push('\n');
        text.push_str(&self.table().text(width));
        let lines = [self.lateness(), self.changed(), self.checked()];
        lines.into_iter().flatten().for_each(|line| text += &format!("\n{line}\n"));
        text
    }

    fn head(&self) -> String {
        let Self { trace, format, target, target_bytes, .. } = self;
        let pace = match self.pace {
            PaceTold::Open { rate: 1.0 } => "open loop at the trace's times".into(),
            PaceTold::Open { rate } => format!("open loop at {rate} times the trace's speed"),
            PaceTold::Closed { outstanding } => format!("closed loop with {outstanding} outstanding"),
        };
        let end = match self.ended_by {
            "trace" => "",
            "duration" => ", ended by --duration",
            _ => ", ended by a signal",
        };
        format!(
            "{trace} ({format}) on {target} ({}): {pace}, {}{end}\n",
            HumanSize(*target_bytes),
            time(self.seconds)
        )
    }

    fn table(&self) -> Columns {
        let mut table = Columns::new(HEADINGS).words([0]);
        for (kind, name) in KINDS {
            let told = self.of(kind);
            if told.requests > 0 {
                table.row(Self::row(name, told));
            }
        }
        table
    }

    fn row(name: &str, told: &KindTold) -> Vec<String> {
        let mut row = vec![
            name.to_owned(),
            grouped(told.requests),
            compact(told.requests_per_second as u64),
            HumanSize(told.bytes).to_string(),
            HumanSize(told.bytes_per_second as u64).to_string(),
        ];
        row.extend(match &told.latency_seconds {
            Some(Percentiles { mean, p50, p95, p99, p999, max }) => {
                [mean, p50, p95, p99, p999, max].map(|seconds| time(*seconds))
            }
            None => std::array::from_fn(|_| "-".into()),
        });
        row
    }

    fn lateness(&self) -> Option<String> {
        let Percentiles { mean, p50, p99, max, .. } = self.lateness_seconds?;
        let [mean, p50, p99, max] = [mean, p50, p99, max].map(time);
        let mut line = format!(
            "sent after their time: mean {mean}, 50 % within {p50}, 99 % within {p99}, the last {max}"
        );
        if self.held_up_requests > 0 {
            // Writing to a String cannot fail.
            let _ = write!(
                line,
                "\nthe target does not keep up: {} requests were due while as many as may be were outstanding",
                grouped(self.held_up_requests)
            );
        }
        Some(line)
    }

    fn changed(&self) -> Option<String> {
        let Changes { empty_requests, left_out_requests, rounded_requests, wrapped_requests } = self.changes;
        let parts = [
            (left_out_requests, "requests left out that are no reads"),
            (empty_requests, "left out that read or write nothing"),
            (rounded_requests, "made larger, to whole units of the target"),
            (wrapped_requests, "folded into the target"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn checked(&self) -> Option<String> {
        let Verification { checked_sectors, read_back_sectors, wrong_sectors, .. } =
            self.verification.as_ref()?;
        let (checked, back) = (grouped(*checked_sectors), grouped(*read_back_sectors));
        Some(format!(
            "checked: {checked} sectors in reads of the trace, {back} read again at the end; {} wrong",
            grouped(*wrong_sectors)
        ))
    }
}

impl Verification {
    fn new(tally: &Tally) -> Self {
        let verified = &tally.verified;
        let told = |mismatch: &Mismatch| WrongTold {
            offset_bytes: mismatch.offset,
            expected_writes: mismatch.expected.clone(),
            found: mismatch.found.to_string(),
        };
        Self {
            checked_sectors: verified.checked,
            read_back_sectors: verified.read_back,
            wrong_sectors: verified.wrong,
            unread_requests: tally.unread,
            first_wrong: verified.told.iter().map(told).collect(),
        }
    }
}
