//! The loop: pieces of the trace go to the disk when they are due, or as soon as one of those outstanding has ended; what comes
//! back is counted, and checked.

use std::io;
use std::time::{Duration, Instant};

use larder_engine::{IoError, RequestKind as DiskKind};
use larder_io::{Buffer, DiskEnd, DiskRequest, PlainDisk};
use larder_sim::Progress;
use larder_trace::RequestKind;
use slab::Slab;

use super::feed::{Feed, Next};
use super::layout::Piece;
use super::options::OUTSTANDING_MAX;
use super::stamps::{Found, SECTOR, Stamps};
use super::tally::{Mismatch, Tally};
use super::versions::Versions;

/// Requests sent before a look at what has ended.
const SENT_PER_TURN: usize = 64;

/// A sleep ends so much before the next request is due: the rest is waited for awake, since a wake-up takes as long.
const AWAKE: Duration = Duration::from_micros(60);

/// Between two looks at whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// Between two looks at a trace that has nothing yet.
const TRACE_LOOK: Duration = Duration::from_millis(1);

/// Between two words of how far it has come.
const TELL: Duration = Duration::from_millis(100);

/// Reads outstanding when everything is read again.
const READ_BACK: usize = 16;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At their times, so many times as fast.
    Open { rate: f64 },
    /// So many are outstanding.
    Closed { outstanding: u32 },
}

/// What is wanted of a replay.
pub struct Plan {
    pub pace: Pace,
    pub duration: Option<Duration>,
    pub flush_every: Option<u64>,
    pub stamps: Stamps,
    /// Reads are checked.
    pub checks: bool,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Trace,
    Duration,
    Signal,
}

/// Why nothing is sent at the moment.
enum Idle {
    /// There is more to send.
    Busy,
    /// Something has to end first.
    Full,
    /// The trace has nothing yet.
    NoInput,
    /// The next is due then.
    Until(Instant),
    Over(Ending),
}

/// A request outstanding.
struct Open {
    piece: Piece,
    sent: Instant,
    /// Its name among the versions.
    key: usize,
    /// It belongs to the last check.
    is_read_back: bool,
}

/// A replay under way.
pub struct Replay<'r> {
    pub disk: &'r mut PlainDisk,
    pub feed: &'r mut Feed,
    plan: &'r Plan,
    pub tally: Tally,
    versions: Versions,
    last_version: u64,
    open: Slab<Open>,
    began: Instant,
    /// The trace's clock at the beginning.
    origin_ns: Option<u64>,
    /// A request is never due before the one before it.
    due: Instant,
    unflushed_writes: u64,
    /// When last as many were outstanding as may be.
    last_full: Option<Instant>,
}

impl<'r> Replay<'r> {
    pub fn new(disk: &'r mut PlainDisk, feed: &'r mut Feed, plan: &'r Plan) -> Self {
        let began = Instant::now();
        Self {
            disk,
            feed,
            plan,
            tally: Tally::new(),
            versions: Versions::default(),
            last_version: 0,
            open: Slab::new(),
            began,
            origin_ns: None,
            due: began,
            unflushed_writes: 0,
            last_full: None,
        }
    }

    /// Replay until the trace ends, the time is up, or `stop` says so; wait for all that is outstanding.
    pub fn run(
        &mut self,
        stop: impl Fn() -> bool,
        told: impl Fn(Progress),
    ) -> io::Result<(Ending, Duration)> {
        self.began = Instant::now();
        self.due = self.began;
        let (mut ending, mut next_tell) = (None, self.began + TELL);
        loop {
            let idle = match (ending, stop()) {
                (Some(ending), _) => Idle::Over(ending),
                (None, true) => Idle::Over(Ending::Signal),
                (None, false) => self.send_some(),
            };
            let now = Instant::now();
            let sleep = match idle {
                Idle::Over(why) if self.open.is_empty() => return Ok((why, self.began.elapsed())),
                Idle::Over(why) => {
                    ending = Some(why);
                    Some(LOOK)
                }
                Idle::Busy => None,
                Idle::Full => Some(LOOK),
                Idle::NoInput => Some(TRACE_LOOK),
                Idle::Until(due) => {
                    Some(due.saturating_duration_since(now + AWAKE)).filter(|left| !left.is_zero())
                }
            };
            self.disk.turn(sleep)?;
            self.collect();
            if now >= next_tell {
                told(Progress { requests: self.tally.requests() });
                next_tell = now + TELL;
            }
        }
    }

    fn send_some(&mut self) -> Idle {
        for _ in 0..SENT_PER_TURN {
            if self.plan.duration.is_some_and(|duration| self.began.elapsed() >= duration) {
                return Idle::Over(Ending::Duration);
            }
            if self.open.len() >= self.outstanding_max() {
                self.last_full = Some(Instant::now());
                return Idle::Full;
            }
            if self.plan.flush_every.is_some_and(|every| self.unflushed_writes >= every) {
                self.unflushed_writes = 0;
                let piece = Piece { time_ns: 0, kind: RequestKind::Flush, offset: 0, len: 0 };
                self.send(piece, None, false);
                self.collect();
                continue;
            }
            // A pipe may have nothing for long: nobody is kept waiting for it.
            let patience = if self.open.is_empty() { TRACE_LOOK } else { Duration::ZERO };
            let piece = match self.feed.peek(patience) {
                Next::Piece(piece) => piece,
                Next::Wait => return Idle::NoInput,
                Next::End => return Idle::Over(Ending::Trace),
            };
            let due = self.due_of(&piece);
            if due.is_some_and(|due| due > Instant::now()) {
                return Idle::Until(due.unwrap_or(self.began));
            }
            let Some(buffer) = self.memory(&piece) else {
                self.last_full = Some(Instant::now());
                return Idle::Full;
            };
            self.feed.take();
            self.send_due(piece, buffer, due);
            self.collect();
        }
        Idle::Busy
    }

    fn outstanding_max(&self) -> usize {
        match self.plan.pace {
            Pace::Open { .. } => OUTSTANDING_MAX as usize,
            Pace::Closed { outstanding } => outstanding as usize,
        }
    }

    /// When a piece is to be sent; none in closed loop.
    fn due_of(&mut self, piece: &Piece) -> Option<Instant> {
        let Pace::Open { rate } = self.plan.pace else { return None };
        let origin_ns = *self.origin_ns.get_or_insert(piece.time_ns);
        let after = piece.time_ns.saturating_sub(origin_ns) as f64 / 1e9 / rate;
        // What is too long for a duration is never due.
        let after = Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX);
        let due = self.began.checked_add(after).unwrap_or(self.began + Duration::from_secs(u32::MAX.into()));
        self.due = self.due.max(due);
        Some(self.due)
    }

    /// Memory for a read or a write; none while it is all in use.
    fn memory(&mut self, piece: &Piece) -> Option<Option<Buffer>> {
        match piece.kind {
            RequestKind::Read | RequestKind::Write => self.disk.buffer(piece.len as usize).map(Some),
            RequestKind::Flush | RequestKind::Discard => Some(None),
        }
    }

    fn send_due(&mut self, piece: Piece, buffer: Option<Buffer>, due: Option<Instant>) {
        if let Some(due) = due {
            self.tally.lateness.add(due.elapsed().as_nanos() as u64);
            self.tally.held_up += u64::from(self.last_full.is_some_and(|full| due <= full));
        }
        self.unflushed_writes += u64::from(piece.kind == RequestKind::Write);
        self.send(piece, buffer, false);
    }

    fn send(&mut self, piece: Piece, mut buffer: Option<Buffer>, is_read_back: bool) {
        let Piece { kind, offset, len, .. } = piece;
        let sectors = offset / SECTOR..(offset + len) / SECTOR;
        let mut key = 0;
        if self.plan.checks {
            key = match kind {
                RequestKind::Read => self.versions.begin_read(sectors.clone()),
                RequestKind::Write | RequestKind::Discard => {
                    let discards = kind == RequestKind::Discard;
                    let (key, version) = self.versions.begin_write(sectors.clone(), discards);
                    self.last_version = version;
                    key
                }
                RequestKind::Flush => 0,
            };
        } else if kind == RequestKind::Write {
            self.last_version += 1;
        }
        if let (RequestKind::Write, Some(buffer)) = (kind, &mut buffer) {
            self.plan.stamps.fill(sectors.start, self.last_version, buffer);
        }
        let cookie = self.open.insert(Open { piece, sent: Instant::now(), key, is_read_back });
        let request = DiskRequest { kind: disk_kind(kind), offset, len };
        self.disk.submit(request, buffer, cookie as u64);
    }

    fn collect(&mut self) {
        while let Some(DiskEnd { cookie, result, buffer }) = self.disk.next_end() {
            if let Some(open) = self.open.try_remove(cookie as usize) {
                self.ended(&open, result, buffer.as_deref());
            }
            buffer.into_iter().for_each(|buffer| self.disk.recycle(buffer));
        }
    }

    fn ended(&mut self, open: &Open, result: Result<(), IoError>, bytes: Option<&[u8]>) {
        let Open { piece: Piece { kind, offset, len, .. }, sent, key, is_read_back } = *open;
        match is_read_back {
            true => self.tally.unread += u64::from(result.is_err()),
            false => self.tally.add(kind, offset, len, sent.elapsed().as_nanos() as u64, result),
        }
        match kind {
            _ if !self.plan.checks => {}
            RequestKind::Flush => {}
            RequestKind::Write | RequestKind::Discard => self.versions.end_write(key, result.is_ok()),
            RequestKind::Read if result.is_ok() => self.check(open, bytes.unwrap_or_default()),
            RequestKind::Read => self.versions.fail_read(key),
        }
    }

    fn check(&mut self, open: &Open, bytes: &[u8]) {
        let first = open.piece.offset / SECTOR;
        let holds = |sector: u64| {
            let at = ((sector - first) * SECTOR) as usize;
            self.plan.stamps.read(sector, bytes.get(at..at + SECTOR as usize).unwrap_or_default())
        };
        let version = |sector| match holds(sector) {
            Found::Version(version) => Some(version),
            _ => None,
        };
        let checked = self.versions.end_read(open.key, version);
        let verified = &mut self.tally.verified;
        match open.is_read_back {
            true => verified.read_back += checked.sectors,
            false => verified.checked += checked.sectors,
        }
        for wrong in checked.wrong {
            let found = holds(wrong.sector);
            verified.add_wrong(Mismatch { offset: wrong.sector * SECTOR, expected: wrong.expected, found });
        }
    }

    /// Bytes of the disk that may hold what was written, for the bar of [`Replay::read_back`].
    pub fn pages(&self) -> Vec<u64> {
        self.versions.pages()
    }

    /// Read again all that was written, and check it.
    pub fn read_back(
        &mut self,
        pages: &[u64],
        stop: impl Fn() -> bool,
        told: impl Fn(Progress),
    ) -> io::Result<()> {
        for (done, &page) in (1..).zip(pages) {
            for sectors in self.versions.known_in(page) {
                let (offset, len) = (sectors.start * SECTOR, (sectors.end - sectors.start) * SECTOR);
                let piece = self.whole_units(Piece { time_ns: 0, kind: RequestKind::Read, offset, len });
                while self.open.len() >= READ_BACK {
                    self.disk.turn(Some(LOOK))?;
                    self.collect();
                }
                let Some(buffer) = self.memory(&piece) else { return Err(io::ErrorKind::OutOfMemory.into()) };
                self.send(piece, buffer, true);
            }
            if stop() {
                break;
            }
            told(Progress { requests: done });
        }
        while !self.open.is_empty() {
            self.disk.turn(Some(LOOK))?;
            self.collect();
        }
        Ok(())
    }

    /// Writes are whole units of the target, but what is known of them may begin or end inside of one.
    fn whole_units(&self, piece: Piece) -> Piece {
        let unit = u64::from(self.disk.align());
        let end = (piece.offset + piece.len).next_multiple_of(unit);
        let offset = piece.offset / unit * unit;
        Piece { offset, len: end - offset, ..piece }
    }
}

fn disk_kind(kind: RequestKind) -> DiskKind {
    match kind {
        RequestKind::Read => DiskKind::Read,
        RequestKind::Write => DiskKind::Write,
        RequestKind::Flush => DiskKind::Flush,
        RequestKind::Discard => DiskKind::Discard,
    }
}
