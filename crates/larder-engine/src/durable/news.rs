//! What the journal is to say of dirty blocks, in order, and which guests wait for it.
//!
//! News go through the same stages as the data that they are about: they *wait* until a flush of the device begins that covers the
//! data, and may change until then; they are *gathered* by that flush, and are said from then on whatever happens, since a guest's
//! flush may count on them; when it has ended they are *ripe*, and the next round says them, all of one flush before any of the
//! next. A `Free` goes the same way, so that it never overtakes the `Map` before it.

use super::slots::SlotTable;
use crate::format::BlockId;
use crate::{RequestId, VolumeId};
use std::collections::VecDeque;

/// One thing to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The slot has newer data of the block than its backing.
    Map { block: BlockId, slot: u32, crc: u32, old: Option<u32> },
    /// The backing has newer data than the slot.
    Free { slot: u32 },
    /// The slot's data is lost: it is in no epoch's way any more.
    Lose { slot: u32 },
}

/// The news that one flush covers.
#[derive(Debug)]
struct Batch {
    /// All that was issued before it is said when it is.
    upto: u64,
    news: VecDeque<News>,
}

/// A guest whose flush has ended on the backing, and waits for the journal.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    volume: VolumeId,
    request: RequestId,
    upto: u64,
    round: u64,
}

/// All news.
#[derive(Debug, Default)]
pub(super) struct NewsDesk {
    /// Counted from the first; those that were withdrawn, too.
    issued: u64,
    waiting: Vec<Option<News>>,
    /// What was issued before the last gathering.
    gathered: u64,
    flushing: VecDeque<Batch>,
    ripe: VecDeque<Batch>,
    /// All issued up to here are said; and durable.
    said: u64,
    durable: u64,
    waiters: VecDeque<Waiter>,
    rounds_begun: u64,
    rounds_ended: u64,
}

impl NewsDesk {
    /// Another one; returns its number until it is gathered.
    pub fn add(&mut self, news: News) -> u32 {
        self.issued += 1;
        self.waiting.push(Some(news));
        (self.waiting.len() - 1) as u32
    }

    /// News in place of withdrawn ones.
    pub fn put(&mut self, at: u32, news: News) {
        self.issued += 1;
        self.waiting[at as usize] = Some(news);
    }

    /// A waiting `Map` will not be said. The slot that it was to free.
    pub fn withdraw(&mut self, at: u32) -> Option<u32> {
        match self.waiting[at as usize].take() {
            Some(News::Map { old, .. }) => old,
            _ => unreachable!("the slot table knows which news wait"),
        }
    }

    /// News that wait for a flush.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Nothing is left to say.
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.flushing.is_empty() && self.ripe.is_empty()
    }

    /// True if a round could say something.
    pub fn is_ripe(&self) -> bool {
        !self.ripe.is_empty()
    }

    /// A flush of the device begins: it covers the data of all that waits.
    pub fn gather(&mut self, slots: &mut SlotTable) {
        if self.issued == self.gathered {
            return;
        }
        let numbered = (0..).zip(self.waiting.drain(..));
        let stays = |(number, news): (u32, Option<News>)| match news? {
            News::Map { block, slot, .. } if !slots.gather(slot, number, block) => None,
            news => Some(news),
        };
        let news = numbered.filter_map(stays).collect();
        self.gathered = self.issued;
        self.flushing.push_back(Batch { upto: self.issued, news });
    }

    /// What has been gathered may be said although no flush has ended: a planted bug.
    pub fn hurry(&mut self, slots: &mut SlotTable) {
        self.gather(slots);
        self.flush_ended();
    }

    /// The flush has ended.
    pub fn flush_ended(&mut self) {
        self.ripe.append(&mut self.flushing);
    }

    /// The next to say, in order; [`NewsDesk::unsaid`] takes it back.
    pub fn next(&mut self) -> Option<News> {
        loop {
            let batch = self.ripe.front_mut()?;
            if let Some(news) = batch.news.pop_front() {
                return Some(news);
            }
            self.said = batch.upto;
            self.ripe.pop_front();
        }
    }

    /// The journal had no room for it.
    pub fn unsaid(&mut self, news: News) {
        match self.ripe.front_mut() {
            Some(batch) => batch.news.push_front(news),
            None => self.ripe.push_front(Batch { upto: self.said, news: VecDeque::from([news]) }),
        }
    }

    /// A round begins.
    pub fn round_begins(&mut self) {
        self.rounds_begun += 1;
    }

    /// It is durable, with all that was said.
    pub fn round_ended(&mut self) {
        self.rounds_ended = self.rounds_begun;
        self.nothing_new();
    }

    /// No round is under way: all that was said is durable.
    pub fn nothing_new(&mut self) {
        self.durable = self.said;
    }

    /// A request waits for all that was issued, and for the round that is under way where `round`. False if there is nothing to
    /// wait for.
    pub fn wait(&mut self, volume: VolumeId, request: RequestId, round: bool) -> bool {
        let round = if round { self.rounds_begun } else { 0 };
        let waiter = Waiter { volume, request, upto: self.issued, round };
        let waits = !self.is_over(&waiter) || !self.waiters.is_empty();
        if waits {
            self.waiters.push_back(waiter);
        }
        waits
    }

    /// Requests that wait.
    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// True if a request of this volume waits.
    pub fn has_waiter_of(&self, volume: VolumeId) -> bool {
        self.waiters.iter().any(|waiter| waiter.volume == volume)
    }

    /// A request that need not wait any longer.
    pub fn next_over(&mut self) -> Option<RequestId> {
        let over = self.waiters.front().is_some_and(|waiter| self.is_over(waiter));
        over.then(|| self.waiters.pop_front()).flatten().map(|waiter| waiter.request)
    }

    /// Nothing will be said any more: all requests that wait, with their volumes.
    pub fn give_up(&mut self) -> Vec<(VolumeId, RequestId)> {
        self.waiting.clear();
        self.flushing.clear();
        self.ripe.clear();
        self.waiters.drain(..).map(|waiter| (waiter.volume, waiter.request)).collect()
    }

    fn is_over(&self, waiter: &Waiter) -> bool {
        waiter.upto <= self.durable && waiter.round <= self.rounds_ended
    }
}
