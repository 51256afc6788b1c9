//! One client that records: the copies of the reactors' batches, put in order of time, and sent to it until it has enough.
//!
//! Several times a second all reactors are asked for a snapshot. They hand on what their monitors hold before they answer, and tell a moment before which nothing comes any more: all
//! requests up to the earliest of these moments are complete, and go out in order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use larder_engine::{RequestKind, VolumeId};
use larder_io::{Handle, HandleError, MonitorRecord, monitor_clock_ns};

use super::account::{Decided, NumberedVolume, Period, Setup};
use super::lines::{Begun, Line, Recorded, RecordedKind, Round, VolumeLine};
use super::{Recorders, Recording};
use crate::analyzer::AnalyzerHandle;
use crate::collector::Collector;
use crate::control::Refusal;

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(250);
/// How long the client may take for what it is sent: it writes to a disk.
const WRITE_WITHIN: Duration = Duration::from_secs(30);
/// How long reactors may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Requests in a line.
const LINE_REQUESTS: usize = 4096;
/// Tenants of a decision in a line.
const LINE_TENANTS: usize = 256;

/// A recording for a client that is about to begin.
pub struct Session<C> {
    collector: Arc<Collector<C>>,
    recording: Recording,
    /// The tenants and volumes that are wanted; all where there are none.
    names: Vec<String>,
    /// The numbers of the volumes met so far; `None` for those that are not wanted.
    numbers: HashMap<(usize, VolumeId), Option<u32>>,
    next_number: u32,
    held: Vec<(usize, MonitorRecord)>,
    /// Requests to volumes that came or went at that moment.
    unknown: u64,
    /// It ends by then, if the client does not end it before.
    until: Option<Instant>,
    /// Who decides meanwhile, and the number of the decision that is told next.
    decisions: Option<(AnalyzerHandle, u64)>,
}

/// What the reactors said.
enum Horizon {
    /// Nothing comes any more from before.
    Ns(u64),
    /// One is busy: try again.
    Silent,
    /// One has ended: the daemon stops.
    Ended,
}

impl<C> Session<C> {
    /// Record what goes to these tenants and volumes, to all where there are none.
    ///
    /// # Errors
    /// Where there is no such name, or too many record.
    pub fn begin(
        recorders: &Recorders,
        collector: Arc<Collector<C>>,
        names: Vec<String>,
    ) -> Result<Self, Refusal> {
        let hosted = collector.hosted.get();
        if let Some(unknown) = names.iter().find(|name| hosted.named(name).is_empty()) {
            return Err(Refusal::Unknown(unknown.clone()));
        }
        let recording = recorders.begin(&names).ok_or(Refusal::Recordings)?;
        tracing::info!(names = names.join(" "), "recording requests for a client");
        let (numbers, next_number, held, unknown, until, decisions) = Default::default();
        Ok(Self { collector, recording, names, numbers, next_number, held, unknown, until, decisions })
    }

    /// What is decided meanwhile is told as well.
    pub fn with_decisions(self, analyzer: AnalyzerHandle) -> Self {
        Self { decisions: Some((analyzer, 0)), ..self }
    }

    /// It ends after this time, if the client does not end it before.
    pub fn for_at_most(self, time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time), ..self }
    }

    /// Send the client what it wants, until it has enough, or is gone.
    ///
    /// # Errors
    /// When it does not take what it is sent.
    pub fn run(mut self, mut stream: UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(WRITE_WITHIN))?;
        stream.set_read_timeout(Some(ROUND))?;
        send(&mut stream, &Begun { recording: env!("CARGO_PKG_VERSION").into() })?;
        self.tell_setup(&mut stream)?;
        let mut last = false;
        while !last {
            // This is also the pause between two rounds. A client says nothing more, and then hangs up.
            let enough = match stream.read(&mut [0; 64]) {
                Ok(0) => true,
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(error) if is_timeout(&error) => false,
                Err(error) => return Err(error),
            };
            let horizon = self.ask();
            let is_over = self.until.is_some_and(|until| Instant::now() >= until);
            let enough = enough || is_over || self.recording.is_to_end();
            last = enough || matches!(horizon, Horizon::Ended);
            let until = match horizon {
                _ if last => u64::MAX,
                Horizon::Ns(until) => until,
                // Nothing is taken either: so what waits is bounded.
                Horizon::Silent | Horizon::Ended => 0,
            };
            if until > 0 {
                self.gather();
            }
            self.tell_decisions(&mut stream)?;
            self.send_until(&mut stream, until, last)?;
        }
        tracing::info!(dropped = self.recording.dropped(), "recorded");
        Ok(())
    }

    /// How the daemon stands, for who wants to know.
    fn tell_setup(&mut self, stream: &mut UnixStream) -> io::Result<()> {
        let Some((analyzer, next)) = &mut self.decisions else { return Ok(()) };
        // One that has ended is found out soon enough.
        let Ok(stands) = analyzer.stands() else { return Ok(()) };
        *next = stands.next;
        let loop_began_ns = monitor_clock_ns(self.collector.loop_began());
        let began_ns = self.recording.began_ns().saturating_sub(loop_began_ns);
        let hosted = self.collector.hosted.get();
        let volumes = hosted.volumes();
        let setup = Setup {
            config: hosted.config.to_string(),
            cache_blocks: self.collector.blocks(),
            epoch_seconds: stands.epoch_seconds,
            began_seconds: began_ns as f64 / 1e9,
            tenants: Vec::new(),
            seed: Some(stands.seed),
            volumes: volumes
                .map(|(config, place)| NumberedVolume { name: config.name.clone(), number: place.volume.0 })
                .collect(),
            period: stands.period.map(|it| Period {
                began_seconds: it.began_seconds,
                written_bytes: it.written_bytes,
                first: it.first,
            }),
        };
        send(stream, &Line::Setup(Box::new(setup)))?;
        // Who stands there from the begin is told like a decision of that moment.
        tell(stream, &Decided { tenants: stands.tenants, ..Decided::default() })
    }

    /// What has been decided since.
    fn tell_decisions(&mut self, stream: &mut UnixStream) -> io::Result<()> {
        let Some((analyzer, next)) = &mut self.decisions else { return Ok(()) };
        let Ok((decided, then)) = analyzer.decided_since(*next) else { return Ok(()) };
        *next = then;
        decided.iter().try_for_each(|decided| tell(stream, decided))
    }

    /// Have every reactor hand on what it holds.
    fn ask(&self) -> Horizon {
        let asked: Vec<_> = self.collector.reactors.iter().map(Handle::snapshot).collect();
        let mut until = u64::MAX;
        for answer in asked {
            match answer.map(|answer| answer.recv_timeout(ANSWER_WITHIN)) {
                Ok(Ok(snapshot)) => until = until.min(snapshot.monitor_clock_ns),
                Err(HandleError::Ended) | Ok(Err(RecvTimeoutError::Disconnected)) => return Horizon::Ended,
                Err(_) | Ok(Err(RecvTimeoutError::Timeout)) => return Horizon::Silent,
            }
        }
        Horizon::Ns(until)
    }

    /// Take what is there, of those that are wanted.
    fn gather(&mut self) {
        let began_ns = self.recording.began_ns();
        // More come all the time: what is there now is at most what fits into the channel.
        for _ in 0..super::BATCHES_MAX {
            let Some(batch) = self.recording.next() else { break };
            let records = batch.records.into_iter().filter(|record| record.time_ns >= began_ns);
            self.held.extend(records.map(|record| (batch.reactor, record)));
        }
    }

    /// Send everything that is held up to this moment.
    fn send_until(&mut self, stream: &mut UnixStream, until: u64, last: bool) -> io::Result<()> {
        // Stable: requests of one reactor at the same time stay in their order.
        self.held.sort_by_key(|(_, record)| record.time_ns);
        let ready = self.held.partition_point(|(_, record)| record.time_ns <= until);
        let ready: Vec<_> = self.held.drain(..ready).collect();
        let began_ns = self.recording.began_ns();
        let mut requests = Vec::with_capacity(LINE_REQUESTS.min(ready.len()));
        for (reactor, record) in ready {
            let Some(volume) = self.number(stream, reactor, record.volume)? else { continue };
            let time_ns = record.time_ns - began_ns;
            requests.push(Recorded(time_ns, volume, kind(record.kind), record.offset, record.len));
            if requests.len() == LINE_REQUESTS {
                self.round(stream, time_ns, false, std::mem::take(&mut requests))?;
            }
        }
        let told = requests.last().map_or(0, |request| request.0);
        // Of the last round nobody knows how long it took.
        let until_ns = if last { told } else { until.saturating_sub(began_ns) };
        self.round(stream, until_ns, last, requests)
    }

    fn round(
        &self,
        stream: &mut UnixStream,
        until_ns: u64,
        last: bool,
        requests: Vec<Recorded>,
    ) -> io::Result<()> {
        let dropped = self.recording.dropped() + self.unknown;
        send(stream, &Line::Round(Round { until_ns, dropped, last, requests }))
    }

    /// The number of a volume, which the client is told first; `None` where it is not wanted.
    fn number(
        &mut self,
        stream: &mut UnixStream,
        reactor: usize,
        volume: VolumeId,
    ) -> io::Result<Option<u32>> {
        let vacant = match self.numbers.entry((reactor, volume)) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(vacant) => vacant,
        };
        let hosted = self.collector.hosted.get();
        let is_it = |found: usize, at: VolumeId| (found, at) == (reactor, volume);
        let found = hosted.volumes().find(|(_, place)| is_it(place.reactor, place.volume));
        let Some((config, place)) = found else {
            self.unknown += 1;
            return Ok(None);
        };
        let named =
            |name: &String| hosted.named(name).iter().any(|(_, place)| is_it(place.reactor, place.volume));
        if !self.names.is_empty() && !self.names.iter().any(named) {
            vacant.insert(None);
            return Ok(None);
        }
        let number = self.next_number;
        self.next_number += 1;
        vacant.insert(Some(number));
        let tenant = hosted.config.tenants[place.tenant].name.clone();
        send(stream, &Line::Volume(VolumeLine { number, tenant, name: config.name.clone() }))?;
        Ok(Some(number))
    }
}

fn kind(kind: RequestKind) -> RecordedKind {
    match kind {
        RequestKind::Read => RecordedKind::Read,
        RequestKind::Write => RecordedKind::Write,
        RequestKind::Flush => RecordedKind::Flush,
        RequestKind::Discard => RecordedKind::Discard,
        RequestKind::WriteZeroes { .. } => RecordedKind::Zero,
    }
}

/// A decision, in lines of bounded length.
fn tell(stream: &mut UnixStream, decided: &Decided) -> io::Result<()> {
    decided.tenants.chunks(LINE_TENANTS).try_for_each(|tenants| {
        send(
            stream,
            &Line::Decided(Decided {
                seconds: decided.seconds,
                tenants: tenants.to_vec(),
                written: decided.written,
            }),
        )
    })
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn send(stream: &mut UnixStream, line: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.write_all(&text)
}
