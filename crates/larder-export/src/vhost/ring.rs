//! One queue of a device: taking requests from the guest, giving them back, and who has to be woken.

use super::memory::Snapshot;
use super::record::Record;
use larder_io::{Context, SocketId};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use virtio_bindings::virtio_ring::VRING_AVAIL_F_NO_INTERRUPT;
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress};

/// A queue that is to be served.
#[derive(Debug)]
pub(super) struct RingSetup {
    /// Set up, valid in the memory.
    pub queue: Queue,
    pub memory: Arc<Snapshot>,
    /// The guest adds to this event counter when there is something new.
    pub kick: OwnedFd,
    /// The guest is told by this one. Without it, it looks by itself.
    pub call: Option<OwnedFd>,
    pub record: Option<Record>,
    /// Requests that a daemon before us took and did not give back: heads of chains, oldest first.
    pub again: Vec<u16>,
}

/// How far a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is served.
    Serving,
    /// It takes nothing new, and gives back what it has.
    Ending,
    /// It does not touch the guest's memory any more.
    Dead,
}

/// A queue at work.
#[derive(Debug)]
pub(super) struct Ring {
    queue: Queue,
    memory: Arc<Snapshot>,
    record: Option<Record>,
    again: VecDeque<u16>,
    kick: SocketId,
    watching: bool,
    call: Option<SocketId>,
    /// Additions to the guest's counters under way.
    signals: u32,
    /// Something was given back while one was under way.
    signal_again: bool,
    /// Something was given back since the guest was last told.
    answered: bool,
    /// The guest is told the next time whether it asked to be or not: what told it of earlier answers may never have reached it.
    tell_anyway: bool,
    closed: bool,
    /// Who waits for its end, to be told where it stopped.
    waiting: Option<Sender<u16>>,
    pub phase: Phase,
    /// Requests that are being executed.
    pub in_flight: u32,
    /// On the frontend's list of those to look at in every turn.
    pub awake: bool,
    /// Turns in which there was nothing.
    pub idle_turns: u32,
    /// The next request waits for memory, until one in flight ends.
    pub short: bool,
}

/// The guest broke the queue itself.
#[derive(Debug, thiserror::Error)]
#[error("its queue is broken: {0}")]
pub(super) struct BrokenRing(#[from] virtio_queue::Error);

/// A head that was taken, and whether an earlier daemon had taken it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub index: u16,
    again: bool,
}

impl Ring {
    /// Serve a queue. The guest is told once in any case: an earlier daemon may have died before it did.
    pub fn new(cx: &mut Context, setup: RingSetup) -> io::Result<Self> {
        let RingSetup { queue, memory, kick, call, record, again } = setup;
        let kick = cx.adopt_counter(kick)?;
        let call = match call.map(|call| cx.adopt_counter(call)).transpose() {
            Ok(call) => call,
            Err(error) => {
                cx.close(kick);
                return Err(error);
            }
        };
        Ok(Self {
            queue,
            memory,
            record,
            again: again.into(),
            kick,
            watching: false,
            call,
            signals: 0,
            signal_again: false,
            answered: true,
            tell_anyway: true,
            closed: false,
            waiting: None,
            phase: Phase::Serving,
            in_flight: 0,
            awake: false,
            idle_turns: 0,
            short: false,
        })
    }

    /// The guest's memory, for a request that begins now.
    pub fn memory(&self) -> &Arc<Snapshot> {
        &self.memory
    }

    /// Where its descriptors are, and how many.
    pub fn table(&self) -> (u64, u16) {
        (self.queue.desc_table(), self.queue.size())
    }

    /// Ask for an event when the guest tells of something new.
    pub fn watch(&mut self, cx: &mut Context, token: u64) {
        if !self.watching && !self.closed {
            self.watching = true;
            cx.watch(self.kick, token);
        }
    }

    /// That event came.
    pub fn watched(&mut self) {
        self.watching = false;
    }

    /// The guest's memory is another from here on. False where the queue is not in it.
    pub fn set_memory(&mut self, memory: &Arc<Snapshot>) -> bool {
        self.memory = Arc::clone(memory);
        self.queue.is_valid(&***memory)
    }

    /// The guest is told by another counter from here on, and once now: what was sent to the old one may be lost.
    pub fn set_call(&mut self, cx: &mut Context, call: Option<OwnedFd>) -> io::Result<()> {
        let fresh = call.map(|call| cx.adopt_counter(call)).transpose()?;
        std::mem::replace(&mut self.call, fresh).into_iter().for_each(|old| cx.close(old));
        (self.answered, self.tell_anyway) = (true, true);
        Ok(())
    }

    /// The guest need not tell of new requests: we look.
    pub fn hush(&mut self) -> Result<(), BrokenRing> {
        Ok(self.queue.disable_notification(&**self.memory)?)
    }

    /// The guest is to tell of new requests. True where there are some already.
    pub fn listen(&mut self) -> Result<bool, BrokenRing> {
        Ok(self.queue.enable_notification(&**self.memory)?)
    }

    /// True where there is something to take.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.phase == Phase::Serving
            && !self.short
            // A broken queue has no news; taking from it finds out.
            && self.queue.avail_idx(&**self.memory, Ordering::Acquire).is_ok_and(|index| index.0 != self.queue.next_avail())
    }

    /// The next request.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Head>, BrokenRing> {
        if let Some(index) = self.again.pop_front() {
            return Ok(Some(Head { index, again: true }));
        }
        if self.phase != Phase::Serving {
            return Ok(None);
        }
        let next = self.queue.iter(&**self.memory)?.next();
        Ok(next.map(|chain| Head { index: chain.head_index(), again: false }))
    }

    /// Not now: it is the next again.
    pub fn put_back(&mut self, head: Head) {
        match head.again {
            true => self.again.push_front(head.index),
            false => self.queue.go_to_previous_position(),
        }
    }

    /// A request is being executed.
    #[inline]
    pub fn began(&mut self, head: Head) {
        self.in_flight += 1;
        if let Some(record) = &mut self.record
            && !head.again
        {
            record.began(head.index);
        }
    }

    /// A request has ended: give it back, with the number of bytes that were written to the guest's memory.
    #[inline]
    pub fn ended(&mut self, head: u16, written: u32) -> Result<(), BrokenRing> {
        self.in_flight -= 1;
        self.short = false;
        if self.phase == Phase::Dead {
            return Ok(());
        }
        self.answered = true;
        if let Some(record) = &mut self.record {
            record.ending(head);
        }
        self.queue.add_used(&**self.memory, head, written)?;
        if let Some(record) = &mut self.record {
            record.ended(head, self.queue.next_used());
        }
        Ok(())
    }

    /// Tell the guest of what was given back, if it wants to be told.
    pub fn notify(&mut self, cx: &mut Context, token: u64) -> Result<(), BrokenRing> {
        if !std::mem::take(&mut self.answered) || self.phase == Phase::Dead {
            return Ok(());
        }
        let Some(call) = self.call else { return Ok(()) };
        let asked = self.queue.needs_notification(&**self.memory)? && !self.is_hushed();
        if std::mem::take(&mut self.tell_anyway) || asked {
            match self.signals {
                0 => self.signal(cx, call, token),
                // One that is under way may come too early for this. Its end is near.
                _ => self.signal_again = true,
            }
        }
        Ok(())
    }

    /// True where the guest said, in the way without an event index, that it looks by itself.
    fn is_hushed(&self) -> bool {
        let flags = GuestAddress(self.queue.avail_ring());
        !self.queue.event_idx_enabled()
            && self
                .memory
                .load::<u16>(flags, Ordering::Relaxed)
                .is_ok_and(|flags| u32::from(u16::from_le(flags)) & VRING_AVAIL_F_NO_INTERRUPT != 0)
    }

    fn signal(&mut self, cx: &mut Context, call: SocketId, token: u64) {
        self.signals += 1;
        self.signal_again = false;
        cx.signal(call, token);
    }

    /// An addition to the guest's counter has ended.
    pub fn signalled(&mut self, cx: &mut Context, token: u64) {
        self.signals -= 1;
        if let Some(call) = self.call
            && self.signal_again
            && self.signals == 0
        {
            self.signal(cx, call, token);
        }
    }

    /// Take nothing new, and tell the waiting one where it stopped once everything was given back.
    pub fn end(&mut self, waiting: Sender<u16>) {
        self.phase = self.phase.max_end(Phase::Ending);
        self.waiting = Some(waiting);
    }

    /// Take nothing new, but stay.
    pub fn quiesce(&mut self) {
        self.phase = self.phase.max_end(Phase::Ending);
    }

    /// Have nothing to do with the guest any more.
    pub fn die(&mut self) {
        self.phase = Phase::Dead;
        self.again.clear();
    }

    /// True where everything that was taken was given back, and the guest told.
    pub fn is_quiet(&self) -> bool {
        self.in_flight == 0 && self.again.is_empty() && self.signals == 0 && !self.answered
    }

    /// Where it is to end: bring that on. True once it can go.
    pub fn wind_down(&mut self, cx: &mut Context) -> bool {
        let leave = match self.phase {
            Phase::Serving => false,
            Phase::Ending => self.waiting.is_some() && self.is_quiet(),
            Phase::Dead => true,
        };
        if leave && !std::mem::replace(&mut self.closed, true) {
            cx.close(self.kick);
            self.call.take().into_iter().for_each(|call| cx.close(call));
        }
        let gone = self.closed && self.in_flight == 0 && !self.watching && self.signals == 0;
        if gone && let Some(waiting) = self.waiting.take() {
            // A connection that is gone need not know.
            let _ = waiting.send(self.queue.next_avail());
        }
        gone
    }
}

impl Phase {
    /// The later of the two.
    fn max_end(self, other: Self) -> Self {
        if self == Self::Serving { other } else { self }
    }
}
