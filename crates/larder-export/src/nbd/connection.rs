//! One client: what state it is in, and when it is over.
//!
//! A connection is over only when the kernel has no operation on its socket and the engine no request of it: its number is not
//! reused before, so whatever ends finds the connection that began it.

mod leave;

use super::exports::Seat;
use super::frontend::{Arrival, Shared, Token};
use super::limits::{BYTES_PER_CONNECTION, RECEIVE_BUFFER_BYTES, REQUESTS_PER_CONNECTION, STALL_TIME_MAX};
use super::patience::Patience;
use super::receive::{Allowance, Receive, Received, Step, WaitsFor};
use super::send::SendQueue;
use super::turn::TurnShare;
use crate::handover::ClientState;
use larder_engine::{TenantId, VolumeId};
use larder_io::{Buffer, Context, SendList, SocketId};
use larder_nbd::consts::PAYLOAD_BYTES_MAX;
use larder_nbd::server::{Handshake, Negotiated, Progress};
use larder_nbd::{Command, Limits};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// How far the connection is.
#[derive(Debug)]
enum Phase {
    /// Options.
    Handshake(Box<Handshake>),
    /// The client chose a volume of another reactor. Once our last words are sent, the connection goes there.
    Leaving { reactor: usize, negotiated: Negotiated },
    /// Requests.
    Serving(Serving),
}

/// What was agreed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub tenant: TenantId,
    pub volume: VolumeId,
    pub limits: Limits,
    pub structured: bool,
}

/// How the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not in sight.
    Open,
    /// Nothing more is taken up. What is in flight ends and is answered, then another process goes on.
    Moving,
    /// Nothing more is received. What is in flight ends and is answered, then the socket is closed.
    Finishing,
    /// The socket is closed.
    Closed,
}

/// What is to become of the connection after a batch.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It goes on.
    Stay,
    /// It is over: nothing refers to it any more.
    Over,
    /// It goes to another reactor.
    HandOver { reactor: usize, fd: OwnedFd, arrival: Arrival },
    /// It goes to another process.
    Leave { fd: OwnedFd, state: Box<ClientState> },
}

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    /// Its number.
    pub index: usize,
    /// Replies on their way.
    pub send: SendQueue,
    /// Requests in the engine.
    pub executing: usize,
    /// Memory of their buffers, in bytes.
    pub executing_memory: usize,
    /// What it had of the present turn.
    pub turn_share: TurnShare,
    /// Already on the list of those to be settled.
    pub touched: bool,
    socket: SocketId,
    /// Gone once the connection is handed over.
    seat: Option<Seat>,
    phase: Phase,
    receive: Receive,
    fate: Fate,
    /// What it holds of its tenant's memory, as last told.
    accounted: usize,
    patience: Patience,
    /// When bytes last moved.
    moved: Instant,
}

impl Connection {
    /// A client that has yet to say what it wants, with a buffer for that. The greeting is queued.
    pub fn greet(
        cx: &mut Context,
        shared: &mut Shared,
        index: usize,
        socket: SocketId,
        seat: Seat,
        buffer: Buffer,
    ) -> Self {
        let mut greeting = Vec::new();
        let phase = Phase::Handshake(Box::new(Handshake::new(&mut greeting)));
        let mut connection = Self::new(cx, index, socket, seat, buffer, phase);
        if !connection.send.push(cx, &mut shared.spare, &greeting, None) {
            connection.close(cx, shared);
        }
        connection
    }

    /// A client that another reactor greeted, and that chose a volume of this one.
    pub fn adopt(
        cx: &mut Context,
        shared: &mut Shared,
        index: usize,
        socket: SocketId,
        arrival: Arrival,
        buffer: Buffer,
    ) -> Self {
        let Arrival { seat, negotiated, stream, skip } = arrival;
        let phase = Phase::Leaving { reactor: shared.reactor, negotiated };
        let mut connection = Self::new(cx, index, socket, seat, buffer, phase);
        if connection.receive.resume(cx, &stream, skip) {
            connection.serve(cx, shared, negotiated);
            connection.advance(cx, shared);
        } else {
            connection.complain(shared, "no memory for another connection");
            connection.close(cx, shared);
        }
        connection
    }

    fn new(cx: &Context, index: usize, socket: SocketId, seat: Seat, buffer: Buffer, phase: Phase) -> Self {
        Self {
            index,
            send: SendQueue::new(socket, Token::Send(index).to_bits()),
            executing: 0,
            executing_memory: 0,
            turn_share: TurnShare::default(),
            touched: false,
            socket,
            seat: Some(seat),
            phase,
            receive: Receive::new(socket, Token::Receive(index).to_bits(), buffer),
            fate: Fate::Open,
            accounted: 0,
            patience: Patience::for_handshake(cx.now()),
            moved: cx.now(),
        }
    }

    /// What was agreed; `None` during the handshake.
    pub fn serving(&self) -> Option<Serving> {
        match self.phase {
            Phase::Serving(serving) => Some(serving),
            Phase::Handshake(_) | Phase::Leaving { .. } => None,
        }
    }

    /// True once nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.fate == Fate::Closed
    }

    /// What the next request waits for, if it has to.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        self.receive.waits_for().filter(|_| self.fate == Fate::Open)
    }

    /// The tenant whose request waits for memory.
    pub fn short_tenant(&self) -> Option<TenantId> {
        let serving = self.serving().filter(|_| self.waits_for() == Some(WaitsFor::Memory));
        serving.map(|serving| serving.tenant)
    }

    /// Memory that it holds, but for its receive buffer, in bytes.
    #[inline]
    fn memory(&self) -> usize {
        self.executing_memory + self.send.memory() + self.receive.payload_memory()
    }

    /// Tell what it holds of its tenant's memory.
    #[inline]
    pub(super) fn account(&mut self, shared: &mut Shared) {
        let Phase::Serving(serving) = self.phase else { return };
        let held = self.memory();
        if held != self.accounted {
            shared.memory.update(serving.tenant, self.accounted, held);
            self.accounted = held;
        }
    }

    /// A receive ended: act on what came.
    #[inline]
    pub fn received(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        buffer: Buffer,
        result: io::Result<usize>,
    ) {
        self.moved = cx.now();
        match self.receive.received(buffer, result) {
            Received::Bytes => self.advance(cx, shared),
            Received::End => self.finish(cx),
            Received::Interrupted if self.fate == Fate::Moving => {}
            Received::Broken | Received::Interrupted => self.close(cx, shared),
        }
    }

    /// A send ended.
    #[inline]
    pub fn sent(&mut self, cx: &mut Context, shared: &mut Shared, list: SendList, result: io::Result<usize>) {
        self.moved = cx.now();
        if !self.send.sent(cx, &mut shared.spare, list, result) {
            self.close(cx, shared);
        }
        self.account(shared);
    }

    /// Act on everything that was received, as far as the limits allow.
    #[inline]
    fn advance(&mut self, cx: &mut Context, shared: &mut Shared) {
        if self.fate == Fate::Open && matches!(self.phase, Phase::Handshake(_)) {
            self.negotiate(cx, shared);
        }
        while self.fate == Fate::Open && !self.is_full() {
            let Phase::Serving(serving) = self.phase else { return };
            self.account(shared);
            let allowance = Allowance {
                memory: shared.memory.allowance(serving.tenant),
                status: shared.turn.allows_status(self.turn_share),
            };
            match self.receive.next(cx, &serving.limits, allowance) {
                Step::Wait => return,
                Step::Request(request, _) if request.command == Command::Disconnect => self.finish(cx),
                Step::Request(request, buffer) => self.execute(cx, shared, &serving, request, buffer),
                Step::Refused(request, code) => self.refuse(cx, shared, &serving, &request, code),
                Step::Close(violation) => {
                    self.complain(shared, &violation.to_string());
                    self.close(cx, shared);
                }
            }
        }
    }

    /// True where the client has to wait until something is answered.
    #[inline]
    fn is_full(&self) -> bool {
        match self.phase {
            // Options are short and their replies may be long: one batch at a time.
            Phase::Handshake(_) | Phase::Leaving { .. } => self.send.segments() > 0,
            Phase::Serving(_) => {
                self.executing + self.send.segments() >= REQUESTS_PER_CONNECTION
                    || self.memory() >= BYTES_PER_CONNECTION
            }
        }
    }

    fn negotiate(&mut self, cx: &mut Context, shared: &mut Shared) {
        let (Phase::Handshake(handshake), Some(seat)) = (&mut self.phase, &self.seat) else { return };
        let mut out = Vec::new();
        let outcome = handshake.feed(self.receive.unread(), seat.offer(), &mut out);
        if !out.is_empty() && !self.send.push_bytes(cx, &mut shared.spare, &out) {
            self.complain(shared, "no memory for the replies of a handshake");
            return self.close(cx, shared);
        }
        match outcome {
            Ok((consumed, progress)) => {
                self.receive.consume(consumed);
                match progress {
                    Progress::NeedMore => {}
                    Progress::Ready(negotiated) => self.enter(cx, shared, negotiated),
                    Progress::Closed => self.finish(cx),
                }
            }
            Err(error) => {
                self.complain(shared, &error.to_string());
                self.finish(cx);
            }
        }
    }

    /// The client chose an export: serve it here, or prepare to hand it over.
    fn enter(&mut self, cx: &mut Context, shared: &mut Shared, negotiated: Negotiated) {
        let export = self.seat.as_ref().and_then(|seat| seat.offer().export(negotiated.export));
        match export.map(|export| export.reactor) {
            Some(reactor) if reactor != shared.reactor => self.phase = Phase::Leaving { reactor, negotiated },
            _ if self.receive.grow(cx, RECEIVE_BUFFER_BYTES) => self.serve(cx, shared, negotiated),
            _ => {
                self.complain(shared, "no memory for another connection");
                self.close(cx, shared);
            }
        }
    }

    /// Transmission begins.
    fn serve(&mut self, cx: &mut Context, shared: &mut Shared, negotiated: Negotiated) {
        let export = self.seat.as_mut().and_then(|seat| seat.choose(negotiated.export));
        let found = export.and_then(|export| cx.tenant(export.volume).map(|tenant| (export, tenant)));
        let Some((export, tenant)) = found else {
            self.complain(shared, "the volume has left while the client connected");
            return self.close(cx, shared);
        };
        shared.memory.have(cx.tenants(), cx.tenants_here());
        if shared.log.allows() {
            tracing::info!(export = export.name, "a client connected");
        }
        let limits = Limits {
            size: export.info.bytes,
            flags: negotiated.flags,
            min_block: export.info.min_block,
            max_payload: PAYLOAD_BYTES_MAX,
            base_allocation: negotiated.base_allocation,
        };
        let structured = negotiated.structured;
        self.phase = Phase::Serving(Serving { tenant, volume: export.volume, limits, structured });
        self.patience = Patience::Endless;
    }

    /// After a batch: take up what had to wait, start what can be started, see whether it is over.
    #[inline]
    pub fn settle(&mut self, cx: &mut Context, shared: &mut Shared) -> Verdict {
        self.advance(cx, shared);
        if self.fate == Fate::Open && !self.is_full() && !matches!(self.phase, Phase::Leaving { .. }) {
            self.receive.start(cx);
        }
        if self.fate != Fate::Closed {
            self.send.start(cx);
        }
        let verdict = match self.fate {
            Fate::Open if !shared.stopping => self.hand_over(cx),
            Fate::Moving => self.leave(cx),
            _ => self.wind_down(cx, shared),
        };
        self.account(shared);
        verdict
    }

    /// Where the client belongs to another reactor, and nothing of it is left here: give it away.
    #[inline]
    fn hand_over(&mut self, cx: &mut Context) -> Verdict {
        let Phase::Leaving { reactor, negotiated } = self.phase else { return Verdict::Stay };
        if self.send.segments() > 0 || self.receive.is_receiving() {
            return Verdict::Stay;
        }
        let Some(fd) = cx.detach(self.socket) else { return Verdict::Stay };
        let Some(seat) = self.seat.take() else { return Verdict::Stay };
        let (stream, skip) = self.receive.rest();
        self.receive.release(cx);
        Verdict::HandOver { reactor, fd, arrival: Arrival { seat, negotiated, stream, skip } }
    }

    /// Close once everything is answered; over once everything has ended.
    fn wind_down(&mut self, cx: &mut Context, shared: &mut Shared) -> Verdict {
        if self.executing == 0 && self.send.segments() == 0 {
            self.close(cx, shared);
        }
        let idle = self.executing == 0 && !self.send.is_sending() && !self.receive.is_receiving();
        if self.fate != Fate::Closed || !idle {
            return Verdict::Stay;
        }
        self.receive.release(cx);
        Verdict::Over
    }

    /// The server stops: answer what is in flight, refuse the rest, then close; or go on in another process, where there is one.
    pub fn stop(&mut self, cx: &mut Context, shared: &mut Shared) {
        match self.phase {
            Phase::Serving(_) if shared.heir.is_some() => self.move_away(cx),
            Phase::Serving(_) => self.patience = Patience::for_farewell(cx.now()),
            Phase::Handshake(_) | Phase::Leaving { .. } => self.close(cx, shared),
        }
    }

    /// A second has passed: is patience at its end?
    pub fn tick(&mut self, cx: &mut Context, shared: &mut Shared, now: Instant) {
        if self.fate == Fate::Moving {
            self.urge(cx);
        }
        let late = self.patience.is_over(now, self.executing);
        let reason = match self.patience {
            _ if self.fate == Fate::Closed => return,
            _ if self.is_stalled(shared, now) => {
                "the client does not move its data while requests wait for the memory"
            }
            Patience::Handshake(_) if late => "the handshake took too long",
            Patience::Farewell(_) if late && shared.stopping => {
                "the server stops, and the client does not take its last replies"
            }
            Patience::Farewell(_) if late => "the client left, and does not take its last replies",
            _ => return,
        };
        self.complain(shared, reason);
        self.close(cx, shared);
        self.account(shared);
    }

    /// True where it keeps memory from others and has not moved a byte for long.
    fn is_stalled(&self, shared: &Shared, now: Instant) -> bool {
        let missed = self.serving().is_some_and(|serving| shared.memory.keeps_from_others(serving.tenant));
        let holds_memory = self.send.memory() + self.receive.payload_memory() > 0;
        missed && holds_memory && now.saturating_duration_since(self.moved) >= STALL_TIME_MAX
    }

    /// Receive nothing more; end when everything is answered.
    fn finish(&mut self, cx: &mut Context) {
        if matches!(self.fate, Fate::Open | Fate::Moving) {
            self.fate = Fate::Finishing;
            self.patience = Patience::for_farewell(cx.now());
        }
    }

    /// Close the socket. Requests in the engine still end, unanswered.
    pub fn close(&mut self, cx: &mut Context, shared: &mut Shared) {
        if self.fate != Fate::Closed {
            self.fate = Fate::Closed;
            cx.close(self.socket);
            self.send.discard(cx, &mut shared.spare);
        }
    }

    fn complain(&self, shared: &mut Shared, message: &str) {
        if shared.log.allows() {
            tracing::warn!("an NBD client's connection ends: {message}");
        }
    }
}
