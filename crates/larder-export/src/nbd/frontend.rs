//! The server on its reactor: every call of the reactor finds its listener or its connection here.

use super::connection::{Connection, Verdict};
use super::execute::InFlight;
use super::exports::{ExportTable, Seat};
use super::limits::HANDSHAKE_BUFFER_BYTES;
use super::memory::Memory;
use super::receive::WaitsFor;
use super::resume::{Unresumed, resumed};
use super::send::SpareLists;
use super::turn::Turn;
use crate::door::Door;
use crate::front::ExportCommand;
use crate::handover::{ClientState, Handed, Heir};
use crate::listener::{ListenAddress, Listener};
use crate::log::LogBudget;
use larder_engine::IoError;
use larder_io::{Buffer, Context, Event, Extent, Frontend, Handle, SocketId};
use larder_nbd::server::Negotiated;
use slab::Slab;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// A silent TCP client is asked for a sign of life after this time; a dead one is gone some minutes later.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// What other threads may tell the server.
#[derive(Debug)]
pub struct NbdCommand(Command);

#[derive(Debug)]
enum Command {
    /// Serve a client that another reactor greeted.
    Adopt { fd: OwnedFd, arrival: Arrival },
    /// Listen there too.
    Listen { listener: Listener, table: Arc<ExportTable> },
    /// Listen there no more; answered when that is so.
    Close { address: ListenAddress, answer: Sender<()> },
}

impl NbdCommand {
    /// Serve those who come to another listener.
    pub fn listen(listener: Listener, table: Arc<ExportTable>) -> Self {
        Self(Command::Listen { listener, table })
    }

    /// Go on with a client that another process served, and that came to the listener with this table; and the reactor that is to be told.
    ///
    /// # Errors
    /// Why that cannot be: the client is to be closed.
    pub fn resume(
        table: &Arc<ExportTable>,
        fd: OwnedFd,
        state: ClientState,
    ) -> Result<(usize, Self), Unresumed> {
        let (reactor, arrival) = resumed(table, state)?;
        Ok((reactor, Self(Command::Adopt { fd, arrival })))
    }

    /// Take nobody any more at this address; answered when that is so. Those who have come stay.
    pub fn close(address: ListenAddress, answer: Sender<()>) -> Self {
        Self(Command::Close { address, answer })
    }
}

/// A client on its way to the reactor of its volume.
#[derive(Debug)]
pub(super) struct Arrival {
    pub seat: Seat,
    pub negotiated: Negotiated,
    /// What it sent beyond the handshake, or beyond what another process understood of it.
    pub stream: Vec<u8>,
    /// Bytes to be skipped before that, or before what comes after it.
    pub skip: usize,
}

/// What the connections of a reactor share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Index of the reactor.
    pub reactor: usize,
    pub requests: Slab<InFlight>,
    pub spare: SpareLists,
    /// For reuse.
    pub extents: Vec<Extent>,
    pub log: LogBudget,
    pub memory: Memory,
    pub turn: Turn,
    pub stopping: bool,
    /// Who goes on with the clients when this stops.
    pub heir: Option<Heir>,
}

/// Names of socket operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A listener's accept.
    Accept(usize),
    /// A connection's receive.
    Receive(usize),
    /// A connection's send.
    Send(usize),
}

impl Token {
    /// As the reactor takes it.
    pub fn to_bits(self) -> u64 {
        let (index, kind) = match self {
            Self::Accept(index) => (index, 0),
            Self::Receive(index) => (index, 1),
            Self::Send(index) => (index, 2),
        };
        (index as u64) << 2 | kind
    }

    /// Number of the listener or connection.
    fn index(bits: u64) -> usize {
        (bits >> 2) as usize
    }
}

/// A listener at work, and what it offers.
#[derive(Debug)]
struct Entrance {
    door: Door,
    table: Arc<ExportTable>,
    full: bool,
}

/// The NBD server of one reactor.
#[derive(Debug)]
pub struct NbdFrontend {
    doors: Vec<Entrance>,
    /// The servers of all reactors, by index; this one among them.
    peers: Vec<Handle<ExportCommand>>,
    connections: Slab<Connection>,
    /// Numbers of connections to be settled at the end of the batch.
    touched: Vec<usize>,
    /// One of them only waits for the next turn.
    call_again: bool,
    shared: Shared,
}

impl NbdFrontend {
    /// The server of reactor number `reactor`, with the listeners that it is to serve. `peers` are the handles of all
    /// reactors, by number.
    pub fn new(
        reactor: usize,
        peers: Vec<Handle<ExportCommand>>,
        listeners: Vec<(Listener, Arc<ExportTable>)>,
    ) -> Self {
        let shared = Shared {
            reactor,
            requests: Slab::new(),
            spare: SpareLists::default(),
            extents: Vec::new(),
            log: LogBudget::new(),
            memory: Memory::default(),
            turn: Turn::default(),
            stopping: false,
            heir: None,
        };
        let entrance = |(listener, table)| Entrance { door: Door::new(listener), table, full: false };
        let doors = listeners.into_iter().map(entrance).collect();
        let (connections, touched) = (Slab::new(), Vec::new());
        Self { doors, peers, connections, touched, call_again: false, shared }
    }

    /// Leave listeners and clients to this heir when it stops.
    pub fn set_heir(&mut self, heir: Heir) {
        self.shared.heir = Some(heir);
    }

    /// A client came, or the wait for one failed.
    fn accepted(&mut self, cx: &mut Context, index: usize, result: io::Result<OwnedFd>) {
        let Some(entrance) = self.doors.get_mut(index) else { return };
        let accepted = entrance.door.accepted(cx, result);
        if let Some(fd) = accepted
            && !self.shared.stopping
        {
            entrance.door.open(cx, Token::Accept(index).to_bits());
            let table = Arc::clone(&entrance.table);
            self.greet(cx, index, &table, fd);
        }
    }

    fn greet(&mut self, cx: &mut Context, door: usize, table: &Arc<ExportTable>, fd: OwnedFd) {
        let seat = Seat::take(table);
        self.doors[door].note_full(seat.is_none());
        let Some(seat) = seat else { return };
        if matches!(self.doors[door].door.address(), ListenAddress::Tcp(_)) {
            tune_tcp(&fd);
        }
        let Some((socket, buffer)) = self.admit(cx, fd) else { return };
        let entry = self.connections.vacant_entry();
        let index = entry.key();
        entry.insert(Connection::greet(cx, &mut self.shared, index, socket, seat, buffer));
        self.touch(index);
    }

    /// Serve a client that another reactor greeted.
    fn adopt(&mut self, cx: &mut Context, fd: OwnedFd, arrival: Arrival) {
        if self.shared.stopping {
            return;
        }
        let Some((socket, buffer)) = self.admit(cx, fd) else { return };
        let entry = self.connections.vacant_entry();
        let index = entry.key();
        entry.insert(Connection::adopt(cx, &mut self.shared, index, socket, arrival, buffer));
        self.touch(index);
    }

    /// A place on the ring and a first buffer for a new connection. Where there is none, the connection is closed.
    fn admit(&mut self, cx: &mut Context, fd: OwnedFd) -> Option<(SocketId, Buffer)> {
        let buffer = cx.buffer_beyond(HANDSHAKE_BUFFER_BYTES);
        let outcome = match buffer {
            Some(buffer) => cx.adopt(fd).map(|socket| (socket, buffer)),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        };
        if let Err(error) = &outcome
            && self.shared.log.allows()
        {
            tracing::warn!(%error, "no room for another connection");
        }
        outcome.ok()
    }

    /// Something happened to a connection: settle it at the end of the batch.
    #[inline]
    fn touch(&mut self, index: usize) {
        if let Some(connection) = self.connections.get_mut(index)
            && !std::mem::replace(&mut connection.touched, true)
        {
            self.touched.push(index);
        }
    }

    #[inline]
    fn settle(&mut self, cx: &mut Context, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        connection.touched = false;
        match connection.settle(cx, &mut self.shared) {
            Verdict::Stay => match connection.waits_for() {
                None => {}
                Some(WaitsFor::Memory) => self.touch(index),
                Some(WaitsFor::Turn) => {
                    self.touch(index);
                    self.call_again = true;
                }
            },
            Verdict::Over => drop(self.connections.remove(index)),
            Verdict::HandOver { reactor, fd, arrival } => {
                self.connections.remove(index);
                self.hand_over(reactor, fd, arrival);
            }
            Verdict::Leave { fd: socket, state } => {
                self.connections.remove(index);
                let handed =
                    self.shared.heir.as_ref().map(|heir| heir.send(Handed::Client { socket, state }));
                if handed.is_none_or(|sent| sent.is_err()) {
                    tracing::warn!("a client cannot be handed over: its connection is closed");
                }
            }
        }
    }

    fn open_doors(&mut self, cx: &mut Context) {
        for (index, entrance) in self.doors.iter_mut().enumerate() {
            entrance.door.open(cx, Token::Accept(index).to_bits());
        }
    }

    /// Find out which tenants' requests wait for memory.
    fn note_shortages(&mut self) {
        self.shared.memory.nobody_is_short();
        let short = self.connections.iter().filter_map(|(_, connection)| connection.short_tenant());
        short.for_each(|tenant| self.shared.memory.note_short(tenant));
    }

    fn hand_over(&self, reactor: usize, fd: OwnedFd, arrival: Arrival) {
        let Some(peer) = self.peers.get(reactor) else {
            tracing::error!(reactor, "BUG: a volume belongs to a reactor that is not there");
            return;
        };
        if let Err(error) = peer.frontend(ExportCommand::Nbd(NbdCommand(Command::Adopt { fd, arrival }))) {
            tracing::warn!(reactor, %error, "a client is lost on its way to its reactor");
        }
    }
}

impl Frontend for NbdFrontend {
    type Command = NbdCommand;

    fn start(&mut self, cx: &mut Context) {
        self.shared.memory = Memory::new(cx.buffer_budget(), cx.tenants());
        self.open_doors(cx);
    }

    fn command(&mut self, cx: &mut Context, NbdCommand(command): NbdCommand) {
        match command {
            Command::Adopt { fd, arrival } => self.adopt(cx, fd, arrival),
            Command::Listen { .. } if self.shared.stopping => {}
            Command::Listen { listener, table } => {
                self.doors.push(Entrance { door: Door::new(listener), table, full: false });
                self.open_doors(cx);
            }
            Command::Close { address, answer } => {
                // Places are names of accepts under way, so nobody else gets one.
                let closed = self.doors.iter_mut().filter(|entrance| *entrance.door.address() == address);
                closed.for_each(|entrance| entrance.door.close(cx));
                // Nobody may be there to hear it.
                let _ = answer.send(());
            }
        }
    }

    #[inline]
    fn event(&mut self, cx: &mut Context, event: Event) {
        match event {
            Event::Accepted { token, result } => self.accepted(cx, Token::index(token), result),
            Event::Received { token, buffer, result } => {
                let index = Token::index(token);
                match self.connections.get_mut(index) {
                    Some(connection) => connection.received(cx, &mut self.shared, buffer, result),
                    None => cx.recycle(buffer),
                }
                self.touch(index);
            }
            Event::Sent { token, mut list, result } => {
                let index = Token::index(token);
                match self.connections.get_mut(index) {
                    Some(connection) => connection.sent(cx, &mut self.shared, list, result),
                    None => cx.recycle_list(&mut list),
                }
                self.touch(index);
            }
            // Those that wait for this turn are settled at the end of the batch; counters and commands are not for NBD.
            Event::CalledAgain
            | Event::Signalled { .. }
            | Event::SignalSent { .. }
            | Event::Commanded { .. } => {}
        }
    }

    #[inline]
    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        let connection = self.shared.requests.get(cookie as usize).map(|in_flight| in_flight.connection);
        let Some((index, connection)) =
            connection.and_then(|index| Some((index, self.connections.get_mut(index)?)))
        else {
            tracing::error!(cookie, "BUG: a reply to a request that nobody made");
            return buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        };
        connection.completed(cx, &mut self.shared, cookie, result, buffer);
        self.touch(index);
    }

    #[inline]
    fn end_of_batch(&mut self, cx: &mut Context) {
        // Those that are touched while this runs have their turn in the next batch.
        let count = self.touched.len();
        for place in 0..count {
            self.settle(cx, self.touched[place]);
        }
        self.touched.drain(..count);
        self.shared.turn.begin();
        if std::mem::take(&mut self.call_again) {
            cx.call_again();
        }
    }

    fn tick(&mut self, cx: &mut Context, now: Instant) {
        match self.shared.stopping {
            false => self.open_doors(cx),
            true => self.doors.iter_mut().for_each(|entrance| entrance.door.urge(cx)),
        }
        self.note_shortages();
        for (_, connection) in &mut self.connections {
            connection.tick(cx, &mut self.shared, now);
        }
        let suppressed = self.shared.log.renew();
        if suppressed > 0 {
            tracing::warn!(suppressed, "more messages about NBD clients were left out");
        }
    }

    fn stop(&mut self, cx: &mut Context) {
        self.shared.stopping = true;
        for Entrance { door, .. } in &mut self.doors {
            match &self.shared.heir {
                Some(heir) => door.leave(cx, Some(heir)),
                None => door.close(cx),
            }
        }
        for (_, connection) in &mut self.connections {
            connection.stop(cx, &mut self.shared);
        }
        let all: Vec<usize> = self.connections.iter().map(|(index, _)| index).collect();
        all.into_iter().for_each(|index| self.touch(index));
    }

    fn is_idle(&self) -> bool {
        self.connections.is_empty() && !self.doors.iter().any(|entrance| entrance.door.is_leaving())
    }
}

impl Entrance {
    /// Say once that there are too many clients, not for each of them.
    fn note_full(&mut self, full: bool) {
        if full && !self.full {
            tracing::warn!(address = %self.door.address(), "too many connections; new ones are closed");
        }
        self.full = full;
    }
}

/// Replies are gathered already, so the kernel need not; and a client whose host died is to be noticed.
fn tune_tcp(fd: &OwnedFd) {
    let socket = SockRef::from(fd);
    let tuned = socket
        .set_tcp_nodelay(true)
        .and_then(|()| socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_AFTER)));
    if let Err(error) = tuned {
        tracing::debug!(%error, "cannot tune a connection");
    }
}
