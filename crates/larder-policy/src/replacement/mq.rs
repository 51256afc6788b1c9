//! MQ: LRU queues for blocks of ever higher use counts; what is not used for long sinks from queue to queue.
//!
//! Zhou, Philbin, Li: "The Multi-Queue Replacement Algorithm for Second Level Buffer Caches", USENIX 2001, section 4. A block used `f` times enters queue
//! `log2 f` (the last queue takes all above). The oldest block of the lowest queue leaves first, and is remembered with its use count in
//! `Qout`, a FIFO queue of ghosts. Each access is a tick; the oldest block of a queue that was not used, nor moved, for more than `lifeTime` ticks sinks one queue
//! (`Adjust`, which looks at each queue's oldest block only). Defaults: 8 queues, `Qout` four times the cache, as libCacheSim has them.
//!
//! `lifeTime` is best the distance at which most blocks are used again, of those above the size of the cache (the paper's "peak temporal
//! distance"), which only the workload tells. The default is [`LIFE_PER_BLOCK`] ticks per block of the cache, which grows and shrinks with it;
//! [`Mq::with_life_time`] fixes it.
//!
//! Where it differs from the paper: a block found in `Qout` leaves it before the victim enters it, so that a hit on a ghost drops no
//! other (so does libCacheSim's). What the paper has no word for: where all that the lowest queue could give up is pinned, the next one gives a block up.
//!
//! Differences from libCacheSim: its default `lifeTime` is 10,000 accesses whatever the cache's size; none known with the same `lifeTime`.

use super::{Evicted, PIN_REACH, Replacement};
use crate::words::Words;
use crate::{Handle, List, Nodes};

/// Queues, `m` in the paper.
pub const QUEUES: usize = 8;
/// Ghosts in `Qout` for each block of the cache.
pub const GHOSTS_PER_BLOCK: u32 = 4;
/// Ticks of the default `lifeTime` for each block of the cache: of 1, 2, 4, 8 and 16, the one with the fewest misses on a virtual machine's disk
/// (CloudPhysics, caches of 10 % and 30 % of the footprint).
pub const LIFE_PER_BLOCK: u32 = 4;
/// The longest `lifeTime`: ticks are compared modulo 2^32, so half of that must be above all differences that occur.
pub const LIFE_TIME_MAX: u32 = 1 << 30;

/// Use counts above this make no difference: the block is in the last queue.
const USES_MAX: u32 = 1 << (QUEUES - 1);

/// What is known of a resident block: its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    /// At most [`USES_MAX`].
    uses: u32,
    queue: usize,
    /// The tick after which it sinks.
    expiry: u32,
}

impl Life {
    /// From the low end: 16 bits of uses, 16 of the queue, 32 of the expiry.
    #[inline]
    fn to_word(self) -> u64 {
        u64::from(self.uses) | (self.queue as u64) << 16 | u64::from(self.expiry) << 32
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self {
            uses: word as u32 & 0xffff,
            queue: (word >> 16) as usize & 0xffff,
            expiry: (word >> 32) as u32,
        }
    }
}

/// `QueueNum`: the queue for a block used so often.
fn queue_for(uses: u32) -> usize {
    uses.ilog2() as usize
}

/// True if `time` lies before `now`, on a clock that wraps around.
fn before(time: u32, now: u32) -> bool {
    (time.wrapping_sub(now) as i32) < 0
}

/// The policy MQ. The tag of a resident block is the place of its word, that of a ghost its use count.
#[derive(Clone, Debug)]
pub struct Mq {
    /// The queues of resident blocks.
    queues: [List; QUEUES],
    /// `Qout`.
    out: List,
    words: Words,
    now: u32,
    /// No queue's oldest block expires before this tick, so `Adjust` has nothing to do.
    next_expiry: u32,
    resident: u32,
    capacity: u32,
    life_time: Option<u32>,
}

impl Default for Mq {
    fn default() -> Self {
        Self::new()
    }
}

impl Mq {
    /// An empty policy with the default `lifeTime`.
    pub const fn new() -> Self {
        Self {
            queues: [List::new(); QUEUES],
            out: List::new(),
            words: Words::new(),
            now: 0,
            next_expiry: 0,
            resident: 0,
            capacity: 0,
            life_time: None,
        }
    }

    /// An empty policy where a block sinks after `ticks` accesses, [`LIFE_TIME_MAX`] at most.
    pub fn with_life_time(ticks: u32) -> Self {
        Self { life_time: Some(ticks.min(LIFE_TIME_MAX)), ..Self::new() }
    }

    /// A queue of resident blocks.
    ///
    /// # Panics
    /// If `queue` is not below [`QUEUES`].
    pub fn queue(&self, queue: usize) -> &List {
        &self.queues[queue]
    }

    /// The ghosts, `Qout`.
    pub fn ghosts(&self) -> &List {
        &self.out
    }

    /// The use count of a block, resident or `ghost`; all from 128 on count as 128.
    pub fn uses<N: Nodes>(&self, nodes: &N, handle: Handle, ghost: bool) -> u32 {
        if ghost { nodes.tag(handle) } else { self.life(nodes, handle).uses }
    }

    /// Ticks without use after which a block sinks.
    pub fn life_time(&self) -> u32 {
        let default = || self.capacity.saturating_mul(LIFE_PER_BLOCK).min(LIFE_TIME_MAX);
        self.life_time.unwrap_or_else(default)
    }

    #[inline]
    fn life<N: Nodes>(&self, nodes: &N, handle: Handle) -> Life {
        Life::from_word(self.words.get(nodes.tag(handle)))
    }

    /// Take a block off its queue.
    #[inline]
    fn dequeue<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, queue: usize) {
        let was_oldest = self.queues[queue].oldest() == Some(handle);
        self.queues[queue].remove(nodes, handle);
        if was_oldest {
            self.note_oldest(nodes, queue);
        }
    }

    /// Put a block that is on no queue at the end of one, with its life ahead.
    #[inline]
    fn enqueue<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, uses: u32, queue: usize) {
        let life = Life { uses, queue, expiry: self.now.wrapping_add(self.life_time()) };
        self.words.set(nodes.tag(handle), life.to_word());
        self.queues[queue].push_newest(nodes, handle);
    }

    /// The block, on no queue, was used.
    #[inline]
    fn used<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, uses_before: u32) {
        let uses = (uses_before + 1).min(USES_MAX);
        self.enqueue(nodes, handle, uses, queue_for(uses));
        self.now = self.now.wrapping_add(1);
        if before(self.next_expiry, self.now) {
            self.adjust(nodes);
        }
    }

    /// `Adjust`: in each queue above the lowest, the oldest block sinks if its life is over.
    fn adjust<N: Nodes>(&mut self, nodes: &mut N) {
        self.next_expiry = self.now.wrapping_add(self.life_time());
        for queue in 1..QUEUES {
            let Some(oldest) = self.queues[queue].oldest() else { continue };
            let life = self.life(nodes, oldest);
            if before(life.expiry, self.now) {
                self.queues[queue].remove(nodes, oldest);
                self.enqueue(nodes, oldest, life.uses, queue - 1);
            }
        }
        (1..QUEUES).for_each(|queue| self.note_oldest(nodes, queue));
    }

    /// Another block is the oldest of its queue. It may expire before those of which `next_expiry` knows only after a change of the life time.
    fn note_oldest<N: Nodes>(&mut self, nodes: &N, queue: usize) {
        if let Some(oldest) = self.queues[queue].oldest().filter(|_| queue > 0) {
            let expiry = self.life(nodes, oldest).expiry;
            if before(expiry, self.next_expiry) {
                self.next_expiry = expiry;
            }
        }
    }

    /// Take a resident block out; returns its use count.
    #[inline]
    fn take<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) -> u32 {
        let life = self.life(nodes, handle);
        self.dequeue(nodes, handle, life.queue);
        self.words.remove(nodes.tag(handle));
        self.resident -= 1;
        life.uses
    }
}

impl Replacement for Mq {
    #[inline]
    fn hit<N: Nodes>(&mut self, nodes: &mut N, handle: Handle) {
        let life = self.life(nodes, handle);
        self.dequeue(nodes, handle, life.queue);
        self.used(nodes, handle, life.uses);
    }

    #[inline]
    fn miss<N: Nodes>(&mut self, nodes: &mut N, ghost: Option<Handle>) {
        if let Some(handle) = ghost {
            self.out.remove(nodes, handle);
        }
    }

    fn evict<N: Nodes>(&mut self, nodes: &mut N, pinned: impl Fn(&N, Handle) -> bool) -> Option<Evicted> {
        let oldest = |queue: &List| queue.oldest_unpinned(nodes, PIN_REACH, &pinned);
        let handle = self.queues.iter().find_map(oldest)?;
        *nodes.tag_mut(handle) = self.take(nodes, handle);
        self.out.push_newest(nodes, handle);
        Some(Evicted { handle, ghost: true })
    }

    #[inline]
    fn insert<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        let uses_before = if ghost { nodes.tag(handle) } else { 0 };
        *nodes.tag_mut(handle) = self.words.add(0);
        self.used(nodes, handle, uses_before);
        self.resident += 1;
    }

    #[inline]
    fn forget<N: Nodes>(&mut self, nodes: &mut N) -> Option<Handle> {
        let most = u64::from(self.capacity) * u64::from(GHOSTS_PER_BLOCK);
        if u64::from(self.out.len()) > most { self.out.pop_oldest(nodes) } else { None }
    }

    fn remove<N: Nodes>(&mut self, nodes: &mut N, handle: Handle, ghost: bool) {
        if ghost {
            self.out.remove(nodes, handle);
        } else {
            self.take(nodes, handle);
        }
    }

    #[inline]
    fn rename<N: Nodes>(&mut self, nodes: &mut N, old: Handle, new: Handle) {
        List::rename(self.queues.iter_mut().chain([&mut self.out]), nodes, old, new);
    }

    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        // With another life time, a block may expire before those that entered earlier, so the next tick looks again.
        self.next_expiry = self.now;
    }

    #[inline]
    fn resident(&self) -> u32 {
        self.resident
    }

    fn memory_bytes(&self) -> usize {
        self.words.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
