//! An NBD backing at work on a reactor: commands become requests, replies end commands, a broken connection is replaced.
//!
//! Payload of a read goes from the socket to its destination; large ones without a stop in between. Requests name
//! memory that their commands hold; hence, when the connection breaks, commands fail only after the last operation on the
//! socket has ended.

use super::batch::SendBatch;
use super::connect::{Connection, NbdBacking};
use super::job::{Abilities, Job, Next, Piece};
use super::link::Live;
use super::outage::{News, Outage};
use super::reconnect::{Reconnect, Spawn, spawn};
use super::silence::{Silence, Word};
use super::unflushed::Unflushed;
use crate::Buffer;
use crate::command::{Command, CommandKind, Ended};
use crate::error_log::ErrorLog;
use crate::lane::Lane;
use crate::mailbox::Waker;
use crate::table::{Key, Table};
use larder_engine::IoError;
use larder_nbd::client::{Connected, Event, Outstanding, Outstandings};
use larder_nbd::{ErrorCode, Request, Uri};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Requests with the server at a time.
const REQUESTS_MAX: usize = 128;
/// Payload left from which on it is received straight into its destination.
const DIRECT_BYTES: u32 = 32 << 10;

/// An [`NbdBacking`] on a reactor.
pub(crate) struct NbdRunner {
    uri: Uri,
    index: usize,
    /// The disk as guests know it.
    agreed: Connected,
    server: Abilities,
    link: Link,
    jobs: Table<Job>,
    /// Jobs with requests to make.
    ready: VecDeque<Key>,
    requests: Requests,
    /// Answers to requests whose payload is still being sent: whoever asked gets its memory back only after that.
    parked: Vec<(Asked, Result<(), ErrorCode>)>,
    unflushed: Unflushed,
    /// Answered writes may be lost: the next flush has to fail.
    lost_writes: bool,
    /// What was read from the server so far may not be what it holds.
    distrust: bool,
    outage: Outage,
    silence: Silence,
    /// Time on the reactor's clock.
    now_ns: u64,
    closing: bool,
    waker: Arc<Waker>,
    spawn: Spawn,
    log: ErrorLog,
}

/// The connection.
enum Link {
    Up(Box<Live>),
    /// Broken, but operations on the socket are still in flight.
    Dying(Box<Live>),
    /// Without a helper where no thread could be had, and at the end.
    Down(Option<Reconnect>),
}

/// A request with the server.
struct Asked {
    job: Key,
    memory: *mut u8,
    outstanding: Outstanding,
    /// The batch in which its payload is sent, where it has some.
    payload_in: Option<u64>,
    asked_ns: u64,
}

struct Requests(Table<Asked>);

impl Outstandings for Requests {
    fn outstanding(&mut self, cookie: u64) -> Option<&mut Outstanding> {
        self.0.get_mut(Key::from_bits(cookie)).map(|asked| &mut asked.outstanding)
    }
}

impl Requests {
    fn ask(&mut self, batch: &mut SendBatch, batch_number: u64, job: Key, piece: Piece, asked_ns: u64) {
        let Piece { form, flags, offset, length, memory } = piece;
        let request = Request { cookie: 0, command: form, flags, offset, length };
        let payload_in = (request.payload_bytes() > 0).then_some(batch_number);
        let outstanding = Outstanding::new(&request);
        let key = self.0.insert(Asked { job, memory, outstanding, payload_in, asked_ns });
        let request = Request { cookie: key.to_bits(), ..request };
        batch.push(request.encode(), memory, request.payload_bytes() as usize);
    }

    /// Where a request's memory begins that the server sends payload for.
    fn memory(&self, cookie: u64, at: u32) -> Option<*mut u8> {
        self.0.get(Key::from_bits(cookie)).map(|asked| asked.memory.wrapping_add(at as usize))
    }
}

impl NbdRunner {
    pub fn new(backing: NbdBacking, index: usize, lane: &mut Lane, waker: &Arc<Waker>) -> io::Result<Self> {
        let NbdBacking { uri, connection } = backing;
        let mut runner = Self {
            uri,
            index,
            agreed: connection.agreed,
            server: Abilities::of(&connection.agreed),
            link: Link::Up(Box::new(Live::new(connection, index, lane)?)),
            jobs: Table::new(),
            ready: VecDeque::new(),
            requests: Requests(Table::new()),
            parked: Vec::new(),
            unflushed: Unflushed::default(),
            lost_writes: false,
            distrust: false,
            outage: Outage::new(Instant::now()),
            silence: Silence::default(),
            now_ns: 0,
            closing: false,
            waker: Arc::clone(waker),
            spawn,
            log: ErrorLog::default(),
        };
        runner.receive(lane);
        Ok(runner)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.agreed.size
    }

    /// True, once, where a connection broke and the server may since hold something else than was read from it.
    pub fn take_distrust(&mut self) -> bool {
        std::mem::take(&mut self.distrust)
    }

    /// True where the server may still lose something that it answered, or has lost it and no flush has told so.
    pub fn owes_flush(&self) -> bool {
        self.lost_writes || self.unflushed.may_revert()
    }

    /// The reactor is about to end: a connection that goes from now on is neither reported nor replaced.
    pub fn closing(&mut self) {
        self.closing = true;
        if let Link::Down(helper) = &mut self.link {
            *helper = None;
        }
    }

    /// Close the connection. What is in flight on its socket owns its memory.
    pub fn close(self, lane: &mut Lane) {
        if let Link::Up(live) | Link::Dying(live) = &self.link {
            live.close(lane);
        }
    }

    /// Tell an idle server that the connection ends here. No answer is expected.
    pub fn farewell(&mut self, lane: &mut Lane) {
        let Link::Up(live) = &mut self.link else { return };
        if !self.requests.0.is_empty() {
            return;
        }
        if let Some(batch) = live.batch() {
            let form = larder_nbd::Command::Disconnect;
            let request = Request { cookie: 0, command: form, flags: 0, offset: 0, length: 0 };
            batch.push(request.encode(), std::ptr::null(), 0);
        }
        live.send(lane);
    }

    /// Its URI.
    pub fn name(&self) -> String {
        self.uri.to_string()
    }

    /// Take a command. Its requests go out with the next [`NbdRunner::poll`].
    pub fn start(&mut self, command: Command) -> Option<Ended> {
        if command.kind == CommandKind::Flush && std::mem::take(&mut self.lost_writes) {
            self.report(&command, "writes before the connection broke may be lost");
            return Some(self.ended(command, Err(IoError::Io)));
        }
        let done = Ended {
            device: self.index,
            ticket: command.ticket,
            kind: command.kind,
            result: Ok(()),
            again: None,
        };
        let Some(job) = Job::new(command, self.server) else { return Some(done) };
        let key = self.jobs.insert(job);
        self.enqueue(key);
        None
    }

    /// Each job is in the queue once at most.
    fn enqueue(&mut self, key: Key) {
        if let Some(job) = self.jobs.get_mut(key)
            && !std::mem::replace(&mut job.queued, true)
        {
            self.ready.push_back(key);
        }
    }

    /// Once per turn, with the time on the reactor's clock: look for a new connection, send what can be sent, tell the log.
    pub fn poll(&mut self, now_ns: u64, lane: &mut Lane, ended: &mut VecDeque<Ended>) {
        self.now_ns = now_ns;
        match &self.link {
            Link::Down(None) => self.reconnect(ended),
            Link::Down(Some(reconnect)) => match reconnect.take() {
                Some(Ok(connection)) => self.revive(connection, lane, ended),
                Some(Err(cause)) => self.fail_jobs(&cause.to_string(), ended, |_| true),
                None => {}
            },
            Link::Up(_) | Link::Dying(_) => {}
        }
        self.send(lane);
        self.tell_news();
        self.tell_silence();
    }

    fn revive(&mut self, connection: Connection, lane: &mut Lane, ended: &mut VecDeque<Ended>) {
        let server = Abilities::of(&connection.agreed);
        match Live::new(connection, self.index, lane) {
            Ok(live) => {
                self.outage.connected(Instant::now());
                self.server = server;
                self.link = Link::Up(Box::new(live));
                self.begin_again(ended);
                self.receive(lane);
            }
            Err(error) => {
                self.outage.lost(&error.to_string(), Instant::now());
                self.fail_jobs(&error.to_string(), ended, |_| true);
                self.link = Link::Down(None);
                self.reconnect(ended);
            }
        }
    }

    /// Jobs that waited for the connection were made for the server as it was before.
    fn begin_again(&mut self, ended: &mut VecDeque<Ended>) {
        for key in std::mem::take(&mut self.ready) {
            let Some(Job { command, .. }) = self.jobs.remove(key) else { continue };
            ended.extend(self.start(command));
        }
    }

    /// Where no helper can be started, a later poll tries again.
    fn reconnect(&mut self, ended: &mut VecDeque<Ended>) {
        let now = Instant::now();
        if self.closing || !self.outage.may_try(now) {
            return;
        }
        let (uri, waker) = (self.uri.clone(), Arc::clone(&self.waker));
        match Reconnect::start(uri, self.agreed, self.outage.pause(), waker, self.spawn) {
            Ok(helper) => self.link = Link::Down(Some(helper)),
            Err(error) => {
                let cause = format!("cannot start a thread that connects: {error}");
                self.outage.no_helper(&cause, now);
                self.fail_jobs(&cause, ended, |_| true);
            }
        }
    }

    fn tell_news(&mut self) {
        if self.closing || self.outage.is_told() {
            return;
        }
        match self.outage.news(Instant::now()) {
            Some(News::Lost { losses, cause }) => {
                tracing::error!(backing = %self.uri, losses, "connection lost: {cause}");
            }
            Some(News::Back { losses }) => tracing::info!(backing = %self.uri, losses, "connected again"),
            None => {}
        }
    }

    fn tell_silence(&mut self) {
        if !self.silence.is_due(self.now_ns) {
            return;
        }
        let parked = self.parked.iter().map(|(asked, _)| asked);
        let open = self.requests.0.keys().filter_map(|key| self.requests.0.get(key));
        let oldest_ns = parked.chain(open).map(|asked| asked.asked_ns).min();
        match self.silence.look(self.now_ns, oldest_ns) {
            Some(Word::Silent { seconds }) => {
                tracing::warn!(backing = %self.uri, in_flight = self.requests.0.len(), "no answer for {seconds} s");
            }
            Some(Word::Answers) => tracing::info!(backing = %self.uri, "the server answers again"),
            None => {}
        }
    }

    /// Make requests for the jobs that have some, and send them.
    fn send(&mut self, lane: &mut Lane) {
        let Link::Up(live) = &mut self.link else { return };
        let number = live.batch_number();
        let Some(batch) = live.batch() else { return };
        while !batch.is_full() && self.requests.0.len() < REQUESTS_MAX {
            let Some(&key) = self.ready.front() else { break };
            let mark = self.unflushed.mark();
            let job = self.jobs.get_mut(key);
            match job.and_then(|job| job.next_piece(mark)) {
                Some(piece) => self.requests.ask(batch, number, key, piece, self.now_ns),
                None => _ = self.ready.pop_front(),
            }
        }
        live.send(lane);
    }

    /// A send ended.
    pub fn sent(
        &mut self,
        mut batch: Box<SendBatch>,
        result: i32,
        lane: &mut Lane,
        ended: &mut VecDeque<Ended>,
    ) {
        let complete = batch.advance(usize::try_from(result).unwrap_or(0));
        match &mut self.link {
            Link::Up(live) if result > 0 && !complete => return live.send_rest(batch, lane),
            Link::Up(live) | Link::Dying(live) => live.send_ended(batch),
            Link::Down(_) => {}
        }
        if result <= 0 {
            self.break_off(&cause(result), lane);
        }
        self.unpark(ended);
        self.bury(ended);
    }

    /// Receive, where large payload is at hand straight to where it belongs.
    fn receive(&mut self, lane: &mut Lane) {
        let Link::Up(live) = &mut self.link else { return };
        let direct = match live.parser.next(&[], &mut self.requests) {
            Ok((_, Some(Event::Payload { cookie, at, length }))) if length >= DIRECT_BYTES => {
                self.requests.memory(cookie, at).map(|memory| (memory, length))
            }
            _ => None,
        };
        live.receive(direct, lane);
    }

    /// A receive ended: into the connection's buffer, or, without one, straight into payload's destination.
    pub fn received(
        &mut self,
        input: Option<Buffer>,
        result: i32,
        lane: &mut Lane,
        ended: &mut VecDeque<Ended>,
    ) {
        let outcome = match u32::try_from(result) {
            Ok(count) if count > 0 => self.take_in(input.as_deref(), count, ended),
            _ => Err(cause(result)),
        };
        if let Link::Up(live) | Link::Dying(live) = &mut self.link {
            live.receive_ended(input);
        }
        match outcome {
            Ok(()) => self.receive(lane),
            Err(cause) => self.break_off(&cause, lane),
        }
        self.bury(ended);
    }

    fn take_in(
        &mut self,
        input: Option<&[u8]>,
        count: u32,
        ended: &mut VecDeque<Ended>,
    ) -> Result<(), String> {
        let Link::Up(live) = &mut self.link else { return Ok(()) };
        if input.is_none() {
            live.parser.payload_taken(count);
        }
        let bytes = input.and_then(|input| input.get(..count as usize)).unwrap_or_default();
        self.parse(bytes, ended).map_err(|error| format!("the server breaks the protocol: {error}"))
    }

    fn parse(
        &mut self,
        input: &[u8],
        ended: &mut VecDeque<Ended>,
    ) -> Result<(), larder_nbd::client::ReplyError> {
        let mut rest = input;
        loop {
            let Link::Up(live) = &mut self.link else { return Ok(()) };
            let (consumed, event) = live.parser.next(rest, &mut self.requests)?;
            rest = &rest[consumed..];
            match event {
                None => return Ok(()),
                Some(Event::Payload { .. }) if rest.is_empty() => return Ok(()),
                Some(Event::Payload { cookie, at, length }) => {
                    let (part, behind) = rest.split_at(rest.len().min(length as usize));
                    live.parser.payload_taken(part.len() as u32);
                    self.store(cookie, at, part);
                    rest = behind;
                }
                Some(Event::Hole { cookie, at, length }) => self.clear(cookie, at, length),
                Some(Event::Status { .. }) => {}
                Some(Event::Done { cookie, result }) => self.answered(cookie, result, ended),
            }
        }
    }

    fn store(&mut self, cookie: u64, at: u32, part: &[u8]) {
        let Some(memory) = self.requests.memory(cookie, at) else { return };
        // SAFETY: the parser keeps the range inside the request, whose memory is held by its command.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), memory, part.len()) };
    }

    fn clear(&mut self, cookie: u64, at: u32, length: u32) {
        let Some(memory) = self.requests.memory(cookie, at) else { return };
        // SAFETY: as in `store`.
        unsafe { std::ptr::write_bytes(memory, 0, length as usize) };
    }

    /// A server may answer a write before it has taken all of its payload.
    fn answered(&mut self, cookie: u64, result: Result<(), ErrorCode>, ended: &mut VecDeque<Ended>) {
        let Some(asked) = self.requests.0.remove(Key::from_bits(cookie)) else { return };
        match (&self.link, asked.payload_in) {
            (Link::Up(live), Some(batch)) if live.is_sending(batch) => self.parked.push((asked, result)),
            _ => self.settle(asked.job, result, ended),
        }
    }

    /// The batch is sent: the answers that waited for that count.
    fn unpark(&mut self, ended: &mut VecDeque<Ended>) {
        if matches!(self.link, Link::Up(_)) {
            for (asked, result) in std::mem::take(&mut self.parked) {
                self.settle(asked.job, result, ended);
            }
        }
    }

    fn settle(&mut self, key: Key, result: Result<(), ErrorCode>, ended: &mut VecDeque<Ended>) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        match job.answered(result, &mut self.server) {
            Next::Wait => {}
            Next::Continue => self.enqueue(key),
            Next::End(result) => self.end(key, result, "the server answers with an error", ended),
        }
    }

    fn end(&mut self, job: Key, result: Result<(), IoError>, cause: &str, ended: &mut VecDeque<Ended>) {
        let Some(job) = self.jobs.remove(job) else { return };
        self.keep_account(&job, result.is_ok());
        if result.is_err() {
            self.report(&job.command, cause);
        }
        ended.push_back(self.ended(job.command, result));
    }

    /// What a job's end means for what the server may lose.
    fn keep_account(&mut self, job: &Job, success: bool) {
        match job.command.kind {
            CommandKind::Read | CommandKind::Flush => {}
            CommandKind::Write | CommandKind::WriteZeroes { .. } if success => {
                if !job.is_durable() {
                    self.unflushed.promised();
                }
            }
            CommandKind::Write | CommandKind::WriteZeroes { .. } | CommandKind::Discard => {
                if job.has_begun() {
                    self.unflushed.doubtful();
                }
            }
        }
        if success && let Some(mark) = job.covers {
            self.unflushed.flushed(mark);
        }
    }

    fn report(&mut self, command: &Command, cause: &str) {
        let uri = self.uri.to_string();
        self.log.failed(&uri, command.kind.name(), command.offset, command.len, cause);
    }

    fn ended(&self, command: Command, result: Result<(), IoError>) -> Ended {
        Ended { device: self.index, ticket: command.ticket, kind: command.kind, result, again: None }
    }

    /// The connection is of no further use.
    fn break_off(&mut self, cause: &str, lane: &mut Lane) {
        let Link::Up(live) = &self.link else { return };
        live.close(lane);
        self.outage.lost(cause, Instant::now());
        self.tell_news();
        if let Link::Up(live) = std::mem::replace(&mut self.link, Link::Down(None)) {
            self.link = Link::Dying(live);
        }
    }

    /// Once nothing works on a broken connection's socket: fail what was with the server, and connect again. What was not
    /// begun waits for the new connection.
    fn bury(&mut self, ended: &mut VecDeque<Ended>) {
        if !matches!(&self.link, Link::Dying(live) if live.is_still()) {
            return;
        }
        self.lost_writes |= self.unflushed.take_promises();
        self.distrust |= self.unflushed.may_revert();
        self.parked.clear();
        self.silence.end();
        let lost = self.lost_writes;
        self.fail_jobs("the connection broke", ended, |job| {
            job.has_begun() || lost && job.command.kind == CommandKind::Flush
        });
        self.link = Link::Down(None);
        self.reconnect(ended);
    }

    /// Fail the jobs that are chosen, with their requests.
    fn fail_jobs(&mut self, cause: &str, ended: &mut VecDeque<Ended>, chosen: impl Fn(&Job) -> bool) {
        let keys: Vec<Key> =
            self.jobs.keys().filter(|&key| self.jobs.get(key).is_some_and(&chosen)).collect();
        for key in keys {
            let flush = self.jobs.get(key).is_some_and(|job| job.command.kind == CommandKind::Flush);
            self.lost_writes &= !flush;
            self.end(key, Err(IoError::Io), cause, ended);
        }
        self.ready.retain(|&key| self.jobs.get(key).is_some());
        let orphans: Vec<Key> = self.requests.0.keys().filter(|&key| self.is_orphan(key)).collect();
        for key in orphans {
            self.requests.0.remove(key);
        }
    }

    fn is_orphan(&self, request: Key) -> bool {
        self.requests.0.get(request).is_some_and(|asked| self.jobs.get(asked.job).is_none())
    }
}

/// What a result that is no progress means.
fn cause(result: i32) -> String {
    match result {
        0.. => "the server closed it".into(),
        errno => io::Error::from_raw_os_error(-errno).to_string(),
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
