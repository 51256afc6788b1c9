//! A volume as the disk of a virtual machine: its queues, and what is executed for them.

use super::chain::{BrokenChain, Chain, Segment, gather, scatter};
use super::channel::Channel;
use super::fault::was_hurt;
use super::lend::{lend, note_written};
use super::limits::{AHEAD, BYTES_PER_DEVICE, IDLE_TURNS, QUEUES_MAX, REQUESTS_PER_TURN};
use super::memory::Snapshot;
use super::request::{Asked, ID_BYTES, Parsed, Status, parse};
use super::ring::{BrokenRing, Head, Phase, Ring};
use super::view::Memory;
use crate::door::Door;
use crate::front::VHOST;
use crate::log::LogBudget;
use crate::users::{User, Users};
use larder_engine::{IoError, RequestKind, VolumeId};
use larder_io::{Buffer, Context, GuestRequest, VolumeInfo};
use slab::Slab;
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use vm_memory::{Bytes, GuestAddress};

/// Names of a device's operations on counters and sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The wait for a hypervisor.
    Accept { device: usize },
    /// The wait for news in a queue.
    Kick { device: usize, ring: u16 },
    /// Telling the guest of what was given back.
    Call { device: usize, ring: u16 },
}

impl Token {
    /// As the reactor takes it.
    pub fn to_bits(self) -> u64 {
        let (kind, device, ring) = match self {
            Self::Accept { device } => (0, device, 0),
            Self::Kick { device, ring } => (1, device, ring),
            Self::Call { device, ring } => (2, device, ring),
        };
        VHOST | (device as u64) << 18 | u64::from(ring) << 2 | kind
    }

    pub fn from_bits(bits: u64) -> Self {
        let device = ((bits & !VHOST) >> 18) as usize;
        let ring = (bits >> 2) as u16;
        match bits & 3 {
            0 => Self::Accept { device },
            1 => Self::Kick { device, ring },
            _ => Self::Call { device, ring },
        }
    }
}

/// What the devices of a reactor share.
#[derive(Debug)]
pub(super) struct Shared {
    pub requests: Slab<InFlight>,
    /// Queues to look at in every turn.
    pub awake: Vec<(usize, u16)>,
    /// Of messages about each device, so that none takes another's.
    logs: Vec<LogBudget>,
    /// Requests that were taken off a queue and not begun with, within a queue's turn.
    ahead: VecDeque<Taken>,
    /// For reuse.
    chains: Vec<Chain>,
    spare: Vec<Vec<Segment>>,
}

impl Shared {
    pub fn new() -> Self {
        Self {
            requests: Slab::new(),
            awake: Vec::new(),
            logs: Vec::new(),
            ahead: VecDeque::new(),
            chains: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The budget of messages about a device.
    pub fn log(&mut self, device: usize) -> &mut LogBudget {
        if self.logs.len() <= device {
            self.logs.resize_with(device + 1, LogBudget::new);
        }
        &mut self.logs[device]
    }
}

/// A request in the engine.
#[derive(Debug)]
pub(super) struct InFlight {
    pub device: usize,
    ring: u16,
    head: u16,
    status: GuestAddress,
    /// Where the data of a read goes.
    data: Vec<Segment>,
    /// Devices write it there.
    lent: bool,
    /// Of data.
    bytes: usize,
    /// As it was when the request came.
    memory: Arc<Snapshot>,
}

/// The hypervisor's connection.
#[derive(Debug)]
pub(super) struct Session {
    /// Never given again.
    pub number: u64,
    /// To end it.
    pub stream: UnixStream,
    /// To tell the hypervisor something.
    pub channel: Arc<Channel>,
    pub _user: User,
}

/// Why a guest is not served any more until its hypervisor connects again.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Ring(#[from] BrokenRing),
    #[error(transparent)]
    Chain(#[from] BrokenChain),
    #[error("its memory is gone")]
    Gone,
}

/// A request that was taken off a queue, and read.
#[derive(Debug)]
struct Taken {
    place: Place,
    asked: Asked,
    chain: Chain,
}

/// What came of beginning with a request.
enum Step {
    Begun,
    /// It cannot be begun with now.
    Later,
}

/// A volume on its reactor.
#[derive(Debug)]
pub(super) struct Device {
    /// Its place among the reactor's.
    pub index: usize,
    pub name: String,
    pub volume: VolumeId,
    pub info: VolumeInfo,
    pub door: Door,
    pub users: Users,
    pub session: Option<Session>,
    /// Every write has to be durable when it completes.
    pub writes_through: bool,
    rings: Vec<Option<Ring>>,
    /// Its memory was gone when it was looked at for news.
    hurt: Cell<bool>,
    /// Of data of requests in the engine.
    bytes: usize,
    requests: u32,
    /// A queue waits for memory.
    short: bool,
}

impl Device {
    pub fn new(
        index: usize,
        name: String,
        volume: VolumeId,
        info: VolumeInfo,
        door: Door,
        users: Users,
    ) -> Self {
        let rings = (0..QUEUES_MAX).map(|_| None).collect();
        Self {
            index,
            name,
            volume,
            info,
            door,
            users,
            session: None,
            writes_through: false,
            rings,
            hurt: Cell::new(false),
            bytes: 0,
            requests: 0,
            short: false,
        }
    }

    pub fn ring(&mut self, ring: u16) -> Option<&mut Ring> {
        self.rings.get_mut(usize::from(ring))?.as_mut()
    }

    /// The queues that there are.
    pub fn rings(&mut self) -> impl Iterator<Item = (u16, &mut Ring)> {
        self.rings.iter_mut().enumerate().filter_map(|(index, ring)| Some((index as u16, ring.as_mut()?)))
    }

    /// Serve one more queue. False where there is one of this number.
    pub fn add_ring(&mut self, cx: &mut Context, shared: &mut Shared, number: u16, ring: Ring) -> bool {
        let Some(place @ None) = self.rings.get_mut(usize::from(number)) else { return false };
        let ring = place.insert(ring);
        ring.watch(cx, Token::Kick { device: self.index, ring: number }.to_bits());
        self.wake(shared, number);
        true
    }

    /// Look at a queue in every turn from here on.
    #[inline]
    pub fn wake(&mut self, shared: &mut Shared, number: u16) {
        let index = self.index;
        let Some(ring) = self.ring(number) else { return };
        ring.idle_turns = 0;
        if !std::mem::replace(&mut ring.awake, true) {
            shared.awake.push((index, number));
            if ring.phase == Phase::Serving {
                let hushed = ring.hush();
                self.judge(shared, hushed);
            }
        }
    }

    /// Let the guest tell of news in a queue instead. True where there is some already.
    pub fn listen(&mut self, shared: &mut Shared, number: u16) -> bool {
        let Some(ring) = self.ring(number).filter(|ring| ring.phase == Phase::Serving) else { return false };
        let listening = ring.listen().map(|news| news && !ring.short);
        self.judge(shared, listening).unwrap_or(false)
    }

    /// After every look at the guest's memory: where it broke the rules, or its memory is gone, its connection ends.
    fn judge<T>(&mut self, shared: &mut Shared, outcome: Result<T, impl Into<Broken>>) -> Option<T> {
        let broken = match outcome.map_err(Into::into) {
            _ if was_hurt() | self.hurt.take() => Broken::Gone,
            Ok(value) => return Some(value),
            Err(broken) => broken,
        };
        self.fail(shared, &broken);
        None
    }

    /// True where a queue has something to take, or has to be looked at because its memory is gone: that is kept with the device,
    /// for the thread looks at others' next.
    #[inline]
    pub fn has_news(&self, ring: u16) -> bool {
        let news = self.rings[usize::from(ring)].as_ref().is_some_and(Ring::has_news);
        if was_hurt() {
            self.hurt.set(true);
        }
        news || self.hurt.get()
    }

    /// A queue's share of a turn. True where it is to be looked at in the next as well.
    pub fn turn(&mut self, cx: &mut Context, shared: &mut Shared, number: u16) -> bool {
        let served = self.serve(cx, shared, number);
        self.judge(shared, served);
        let Some(ring) = self.ring(number) else { return false };
        if ring.wind_down(cx) {
            self.rings[usize::from(number)] = None;
            return false;
        }
        ring.idle_turns += 1;
        if ring.idle_turns < IDLE_TURNS {
            return true;
        }
        ring.idle_turns = 0;
        let stays = self.listen(shared, number);
        if let Some(ring) = self.ring(number) {
            ring.awake = stays;
        }
        stays
    }

    fn serve(&mut self, cx: &mut Context, shared: &mut Shared, number: u16) -> Result<(), Broken> {
        let (mut left, mut emptied) = (REQUESTS_PER_TURN, false);
        while left > 0 && !emptied {
            let read = self.read_ahead(shared, number);
            left -= shared.ahead.len().min(left);
            emptied = shared.ahead.len() < AHEAD;
            self.expect(cx, shared);
            while let Some(taken) = shared.ahead.pop_front() {
                let head = taken.place.head;
                match self.begin(cx, shared, taken) {
                    Ok(Step::Begun) => {}
                    Ok(Step::Later) => {
                        self.put_back(shared, number, head);
                        return self.notify(cx, number);
                    }
                    Err(broken) => {
                        shared.ahead.clear();
                        return Err(broken);
                    }
                }
            }
            read?;
        }
        if !emptied {
            cx.call_again();
        }
        self.notify(cx, number)
    }

    /// Take a queue's next requests, and read what they ask. Those before one that breaks the rules are there all the same.
    fn read_ahead(&mut self, shared: &mut Shared, number: u16) -> Result<(), Broken> {
        let Some(ring) = self.ring(number) else { return Ok(()) };
        while shared.ahead.len() < AHEAD
            && let Some(head) = ring.take()?
        {
            ring.idle_turns = 0;
            let (table, size) = ring.table();
            let memory = Arc::clone(ring.memory());
            let mut chain = shared.chains.pop().unwrap_or_default();
            chain.walk(&memory, table, size, head.index)?;
            let Parsed { asked, status } = parse(&mut chain, &memory)?;
            if was_hurt() || memory.is_hurt() {
                return Err(Broken::Gone);
            }
            let place = Place { ring: number, head, memory, status };
            shared.ahead.push_back(Taken { place, asked, chain });
        }
        Ok(())
    }

    /// Have the engine fetch what it will look at for several requests at once: one after the other, each would wait for memory.
    fn expect(&self, cx: &Context, shared: &Shared) {
        if shared.ahead.len() > 1 {
            for taken in &shared.ahead {
                if let Asked::Volume { kind: RequestKind::Read | RequestKind::Write, offset, .. } =
                    taken.asked
                {
                    cx.expect(self.volume, offset);
                }
            }
        }
    }

    /// Not now: this request, and those behind it, are the next again.
    fn put_back(&mut self, shared: &mut Shared, number: u16, head: Head) {
        let behind = shared.ahead.drain(..).map(|taken| taken.place.head);
        if let Some(ring) = self.ring(number) {
            behind.rev().for_each(|head| ring.put_back(head));
            ring.put_back(head);
            ring.short = true;
        }
        self.short = true;
    }

    fn notify(&mut self, cx: &mut Context, number: u16) -> Result<(), Broken> {
        let token = Token::Call { device: self.index, ring: number }.to_bits();
        Ok(self.ring(number).map_or(Ok(()), |ring| ring.notify(cx, token))?)
    }

    /// Begin with a request.
    fn begin(&mut self, cx: &mut Context, shared: &mut Shared, taken: Taken) -> Result<Step, Broken> {
        if self.requests > 0 && self.bytes >= BYTES_PER_DEVICE {
            return Ok(Step::Later);
        }
        let Taken { place, asked, mut chain } = taken;
        let step = match asked {
            Asked::Volume { kind, offset, len } => {
                self.execute(cx, shared, place, &mut chain, (kind, offset, len))
            }
            Asked::Id => {
                let told = self.tell_id(&chain.writable, &place.memory);
                self.answer(place, if told { Status::Ok } else { Status::Failed })
            }
            Asked::Refused(refused) => self.answer(place, refused),
        };
        if shared.chains.len() < AHEAD {
            shared.chains.push(chain);
        }
        step
    }

    /// Have the engine do what a request asks.
    fn execute(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        place: Place,
        chain: &mut Chain,
        (kind, offset, len): (RequestKind, u64, u64),
    ) -> Result<Step, Broken> {
        let moves_data = matches!(kind, RequestKind::Read | RequestKind::Write);
        let bytes = if moves_data { len as usize } else { 0 };
        let lends = kind == RequestKind::Read && cx.may_borrow(self.volume);
        let loan = if lends { lend(&place.memory, &chain.writable) } else { None };
        let buffer = match (moves_data && loan.is_none(), self.requests) {
            (false, _) => None,
            // One request finds memory in any case, and the others wait for its end if they have to.
            (true, 0) => match cx.buffer_beyond(bytes) {
                Some(buffer) => Some(buffer),
                None => return self.answer(place, Status::Failed),
            },
            (true, _) => match cx.buffer(bytes) {
                Some(buffer) => Some(buffer),
                None => return Ok(Step::Later),
            },
        };
        let (mut buffer, mut data) = (buffer, Vec::new());
        if kind == RequestKind::Write
            && let Some(bytes) = buffer.as_deref_mut()
            && (!gather(&place.memory, &chain.readable, bytes) || was_hurt() || place.memory.is_hurt())
        {
            buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
            return Err(Broken::Gone);
        }
        if kind == RequestKind::Read {
            data = std::mem::replace(&mut chain.writable, shared.spare.pop().unwrap_or_default());
        }
        let Place { ring: number, head, memory, status } = place;
        if let Some(ring) = self.ring(number) {
            ring.began(head);
        }
        self.requests += 1;
        self.bytes += bytes;
        let in_flight = InFlight {
            device: self.index,
            ring: number,
            head: head.index,
            status,
            data,
            lent: loan.is_some(),
            bytes,
            memory,
        };
        let cookie = shared.requests.insert(in_flight) as u64 | VHOST;
        // What a killed daemon had only noted in its memory would be lost under a guest that goes on.
        let fua = self.writes_through || cx.is_written_back(self.volume);
        let request = GuestRequest { volume: self.volume, kind, offset, len, fua };
        match loan {
            Some(loan) => cx.submit_lent(request, loan, cookie),
            None => cx.submit(request, buffer, cookie),
        }
        Ok(Step::Begun)
    }

    /// A request has ended.
    pub fn completed(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        request: InFlight,
        result: Result<(), IoError>,
        buffer: Option<Buffer>,
    ) {
        let InFlight { ring: number, head, status, mut data, lent, bytes, memory, .. } = request;
        self.requests -= 1;
        self.bytes -= bytes;
        let alive = self.ring(number).is_some_and(|ring| ring.phase != Phase::Dead);
        let mut ending = Status::from(result);
        let mut written = 1;
        if lent {
            note_written(&memory, &data);
            written += if result.is_ok() { bytes as u32 } else { 0 };
        } else if let (true, Ok(()), Some(buffer)) = (alive, result, &buffer)
            && !data.is_empty()
        {
            match scatter(&memory, &data, buffer) {
                true => written += bytes as u32,
                false => ending = Status::Failed,
            }
        }
        if memory.is_hurt() {
            self.hurt.set(alive || self.hurt.get());
            ending = Status::Failed;
        }
        buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        if data.capacity() > 0 && shared.spare.len() < SPARE_LISTS {
            data.clear();
            shared.spare.push(data);
        }
        let given = self.give_back(number, head, &memory, status, ending, written);
        self.judge(shared, given);
        // Memory is free again, for all of its queues.
        if self.short && self.bytes < BYTES_PER_DEVICE {
            self.short = false;
            let short: Vec<u16> =
                self.rings().filter(|(_, ring)| ring.short).map(|(number, _)| number).collect();
            short.into_iter().for_each(|number| self.go_on(shared, number));
        }
        self.go_on(shared, number);
    }

    /// A queue may find memory again.
    #[inline]
    fn go_on(&mut self, shared: &mut Shared, number: u16) {
        if let Some(ring) = self.ring(number) {
            ring.short = false;
        }
        self.wake(shared, number);
    }

    fn tell_id(&self, into: &[Segment], memory: &Memory) -> bool {
        let mut id = [0; ID_BYTES];
        let len = self.name.len().min(ID_BYTES);
        id[..len].copy_from_slice(&self.name.as_bytes()[..len]);
        scatter(memory, into, &id)
    }

    /// Answer a request without the engine.
    fn answer(&mut self, place: Place, ending: Status) -> Result<Step, Broken> {
        let Place { ring: number, head, memory, status } = place;
        if let Some(ring) = self.ring(number) {
            ring.began(head);
        }
        self.give_back(number, head.index, &memory, status, ending, 1)?;
        Ok(Step::Begun)
    }

    #[inline]
    fn give_back(
        &mut self,
        number: u16,
        head: u16,
        memory: &Memory,
        status: GuestAddress,
        ending: Status,
        written: u32,
    ) -> Result<(), Broken> {
        let Some(ring) = self.ring(number) else { return Ok(()) };
        let told = ring.phase == Phase::Dead || memory.write_obj(ending.to_byte(), status).is_ok();
        ring.ended(head, written)?;
        if told { Ok(()) } else { Err(Broken::Gone) }
    }

    /// The guest or its hypervisor broke the rules: its connection ends, and with it everything that it has here.
    fn fail(&mut self, shared: &mut Shared, broken: &Broken) {
        self.leave_queues();
        if shared.log(self.index).allows() {
            tracing::warn!(volume = self.name, "a guest misbehaves, and is disconnected: {broken}");
        }
        self.hang_up();
    }

    /// Nobody waits for answers any more.
    fn leave_queues(&mut self) {
        self.rings().for_each(|(_, ring)| {
            ring.memory().leave();
            ring.die();
        });
    }

    /// End the connection. Its thread tells when it is over.
    pub fn hang_up(&self) {
        if let Some(session) = &self.session {
            // Fails where it is over already.
            let _ = session.stream.shutdown(Shutdown::Both);
        }
    }

    /// The hypervisor is gone, or the daemon stops: what is in flight ends by itself.
    pub fn abandon(&mut self, shared: &mut Shared) {
        self.hurt.set(false);
        self.leave_queues();
        self.wake_all(shared);
    }

    /// Look at all queues in the next turn.
    pub fn wake_all(&mut self, shared: &mut Shared) {
        (0..QUEUES_MAX).for_each(|number| self.wake(shared, number));
    }

    /// True where it has no queue, and nothing in the engine.
    pub fn is_empty(&self) -> bool {
        self.requests == 0 && self.rings.iter().all(Option::is_none)
    }
}

/// A request that was taken: whose it is, and where its status goes.
#[derive(Debug)]
struct Place {
    ring: u16,
    head: Head,
    memory: Arc<Snapshot>,
    status: GuestAddress,
}

/// Lists of segments kept for reuse.
const SPARE_LISTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_their_way_through_the_reactor() {
        for device in [0, 1, 16_383] {
            for ring in [0, QUEUES_MAX - 1] {
                for token in
                    [Token::Accept { device }, Token::Kick { device, ring }, Token::Call { device, ring }]
                {
                    assert_eq!(Token::from_bits(token.to_bits()), token);
                    assert_ne!(token.to_bits() & VHOST, 0);
                }
            }
        }
    }
}
