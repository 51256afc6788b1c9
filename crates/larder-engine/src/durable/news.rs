//! What the journal is to say of dirty blocks, in order, and which guests wait for it.
//!
//! News *wait* until a round begins, and may change until then: newer data of a block take the place of older ones, with which a guest's flush that waits for those
//! is served as well. A round says all that wait, in order. Its flush makes durable what it says together with the data that this is about
//! ([`Entry::Write`](crate::format::Entry::Write)). A `Free` goes the same way, so that it never overtakes the `Map` before it.

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
    /// In order; none in the places of those that were withdrawn.
    waiting: VecDeque<Option<News>>,
    /// All before this place are said; and durable. Places are counted from the first.
    said: u64,
    durable: u64,
    waiters: VecDeque<Waiter>,
    rounds_begun: u64,
    rounds_ended: u64,
}

impl NewsDesk {
    /// Another one; returns its number, which is its own while it waits.
    pub fn add(&mut self, news: News) -> u32 {
        let place = self.end();
        self.waiting.push_back(Some(news));
        place as u32
    }

    /// News in place of withdrawn ones.
    pub fn put(&mut self, number: u32, news: News) {
        *self.place(number) = Some(news);
    }

    /// A waiting `Map` will not be said. The slot that it was to free.
    pub fn withdraw(&mut self, number: u32) -> Option<u32> {
        match self.place(number).take() {
            Some(News::Map { old, .. }) => old,
            _ => unreachable!("the slot table knows which news wait"),
        }
    }

    /// The checksum in a `Map` that waits.
    #[inline]
    pub fn crc(&self, number: u32) -> Option<u32> {
        match self.waiting.get(number.wrapping_sub(self.said as u32) as usize) {
            Some(Some(News::Map { crc, .. })) => Some(*crc),
            _ => None,
        }
    }

    fn place(&mut self, number: u32) -> &mut Option<News> {
        &mut self.waiting[number.wrapping_sub(self.said as u32) as usize]
    }

    /// The place behind the last.
    fn end(&self) -> u64 {
        self.said + self.waiting.len() as u64
    }

    /// News that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The next to say, in order, with its number; [`NewsDesk::unsaid`] takes it back.
    pub fn next(&mut self) -> Option<(u32, News)> {
        loop {
            let news = self.waiting.pop_front()?;
            let number = self.said as u32;
            self.said += 1;
            if let Some(news) = news {
                return Some((number, news));
            }
        }
    }

    /// The journal had no room for it.
    pub fn unsaid(&mut self, news: News) {
        self.said -= 1;
        self.waiting.push_front(Some(news));
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

    /// A request waits for all that there is to say, and for the round that is under way where `round`. False if there is nothing to wait for.
    pub fn wait(&mut self, volume: VolumeId, request: RequestId, round: bool) -> bool {
        let round = if round { self.rounds_begun } else { 0 };
        let waiter = Waiter { volume, request, upto: self.end(), round };
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

    /// Nothing will be said any more: all requests that wait, with their volumes. What was to be said stays, for its checksums: reads may be under way.
    pub fn give_up(&mut self) -> Vec<(VolumeId, RequestId)> {
        self.waiters.drain(..).map(|waiter| (waiter.volume, waiter.request)).collect()
    }

    fn is_over(&self, waiter: &Waiter) -> bool {
        waiter.upto <= self.durable && waiter.round <= self.rounds_ended
    }
}
