//! Doors: which requests may write to the SSD, where its writes, or places in the cache, have a price.
//!
//! What a request's blocks are worth there depends on whose it is and of which [`Kind`]. Of each kind of each tenant's requests a share enters, spread evenly over them: the rest goes past the
//! SSD. Of streams whole runs enter or pass by: a device that sees every other request of a stream sees none. Whoever sees the requests ([`Doors::ask`]) need not know what they are worth, and whoever does sets the shares ([`Doors::open`]).
//!
//! Where the cache takes writes in place of the backing, a burst of them may wait long for the one while the other has nothing to do (`lines.rs`). Then one goes the other way that saves more
//! than its blocks' being there is worth ([`Terms::gains`]).

use lines::{Line, stripes};
use seen::Seen;
use streams::Streams;

mod kind;
mod lines;
mod seen;
mod streams;

pub use kind::{KINDS, Kind, SHAPES};
pub use seen::spread;

/// The share of the requests of each kind that enters, from 0 to 1, by [`Kind::index`].
pub type Shares = [f64; KINDS];

/// Everything enters.
pub const OPEN: Shares = [1.0; KINDS];

/// Seconds by which a block of each kind is worth more than its price if it enters, or less if negative, by [`Kind::index`].
pub type Gains = [f32; KINDS];

/// On what terms a tenant's requests enter.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What enters of each kind.
    pub shares: Shares,
    /// What enters of a kind of reads does so because there is room: nothing leaves for it, and it is among the first to leave once there is none. By [`Kind::index`].
    pub leaves_first: [bool; KINDS],
    /// What that gains for the tenant's writes; none where the backing takes them all the same.
    pub gains: Option<Box<Gains>>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { shares: OPEN, leaves_first: [false; KINDS], gains: None }
    }
}

/// Writes go the other way if that saves so much more: what lines are waited for is a guess.
const SURE_NS: f64 = 1e6;

/// A stream of which a share enters goes on as it did for so many requests more, or fewer, than that share.
const RUN: f64 = 16.0;

/// The door of one tenant.
#[derive(Clone, Debug)]
struct Door {
    terms: Terms,
    /// What is left of the shares of the requests so far.
    rest: Shares,
    streams: Streams,
    /// The tenant's writes past the SSD.
    past: Line,
}

impl Default for Door {
    fn default() -> Self {
        Self {
            terms: Terms::default(),
            rest: [0.0; KINDS],
            streams: Streams::default(),
            past: Line::default(),
        }
    }
}

impl Door {
    /// One more request, of which the one that it goes on from, if any, did enter or not: does it?
    fn enters(&mut self, kind: Kind, before: Option<bool>) -> bool {
        let (open, rest) = (self.terms.shares[kind.index()], &mut self.rest[kind.index()]);
        *rest += open;
        let enters = match before {
            _ if open <= 0.0 => false,
            _ if open >= 1.0 => true,
            None => *rest >= 1.0,
            Some(true) => *rest >= 1.0 - RUN,
            Some(false) => *rest >= 1.0 + RUN,
        };
        *rest -= f64::from(u8::from(enters));
        enters
    }

    /// A write of so many blocks that would enter, or not: is it better to do otherwise, while one waits so long for the SSD?
    fn turns(&self, kind: Kind, blocks: usize, enters: bool, ssd_wait_ns: u64) -> bool {
        let Some(gains) = &self.terms.gains else { return false };
        let gain = f64::from(gains[kind.index()]) * blocks as f64 * 1e9;
        let sooner = self.past.wait_ns() as f64 - ssd_wait_ns as f64;
        // What a part of enters gains nothing or a little.
        match enters {
            true => self.past.may_be_tried() && -sooner > SURE_NS + gain.max(0.0),
            false => sooner > SURE_NS - gain.min(0.0),
        }
    }
}

/// The doors of the tenants of a cache.
#[derive(Clone, Debug)]
pub struct Doors {
    seen: Seen,
    /// Writes to the SSD alone.
    ssd: Line,
    now_ns: u64,
    /// None of a tenant that has asked for nothing yet.
    tenants: Vec<Option<Box<Door>>>,
}

impl Doors {
    /// Doors that are open, around a cache of so many blocks: accesses to as many blocks are remembered, in 8 bytes for each.
    pub fn new(cache_blocks: u32) -> Self {
        Self { seen: Seen::new(cache_blocks), ssd: Line::default(), now_ns: 0, tenants: Vec::new() }
    }

    /// A tenant's request for blocks with these keys, of which those of neighbours follow each other: of which kind it is, and whether its blocks may be written to the SSD.
    pub fn ask(
        &mut self,
        tenant: usize,
        write: bool,
        keys: impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone,
    ) -> (Kind, bool) {
        let blocks = keys.len();
        let seen = keys.clone().map(|key| self.seen.see(key, write));
        let (levels, written) = seen.fold((0, 0), |(levels, written), (level, is_written)| {
            (levels + level, written + usize::from(is_written))
        });
        let level = (levels + blocks / 2) / blocks.max(1);
        let (first, last) = (keys.clone().next(), keys.clone().next_back());
        let ssd_wait_ns = self.ssd.wait_ns();
        let door = self.door(tenant);
        let (stream, before) = match (first, last) {
            (Some(first), Some(last)) => door.streams.go_on(first, last),
            _ => return (Kind::of(write, 0, false, 0, false), true),
        };
        let kind = Kind::of(write, blocks, before.is_some(), level, 2 * written > blocks);
        let enters = door.enters(kind, before);
        let enters = enters != (write && door.turns(kind, blocks, enters, ssd_wait_ns));
        door.streams.entered(stream, enters);
        let kind = kind.leaving_first(door.terms.leaves_first[kind.index()]);
        (kind.with_its_stream(before.is_none_or(|before| before == enters)), enters)
    }

    /// A block with this key will soon be asked for: what is known of it is at hand then.
    #[inline]
    pub fn expect(&self, key: u64) {
        self.seen.expect(key);
    }

    /// A tenant's write of so many bytes, which is taken by the SSD alone or passes it by, is under way until [`Self::ended`]: behind so many 64 KiB.
    pub fn began(&mut self, tenant: usize, by_ssd: bool, bytes: u64) -> u16 {
        let now_ns = self.now_ns;
        let ahead = self.line(tenant, by_ssd).enter(stripes(bytes), now_ns);
        u16::try_from(ahead).unwrap_or(u16::MAX)
    }

    /// It has ended, after so many nanoseconds if it ended well.
    pub fn ended(&mut self, tenant: usize, by_ssd: bool, bytes: u64, ahead: u16, took_ns: Option<u64>) {
        let now_ns = self.now_ns;
        self.line(tenant, by_ssd).leave(bytes, ahead.into(), took_ns, now_ns);
    }

    /// It is so late, in nanoseconds since any moment.
    #[inline]
    pub fn set_clock(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// What it was last.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A tenant's requests enter on these terms from now on.
    pub fn open(&mut self, tenant: usize, terms: &Terms) {
        self.door(tenant).terms.clone_from(terms);
    }

    /// A tenant has come, or does what it did not do before: all of it enters.
    pub fn restart(&mut self, tenant: usize) {
        if let Some(Some(door)) = self.tenants.get_mut(tenant) {
            (door.terms, door.rest) = (Terms::default(), [0.0; KINDS]);
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let doors = self.tenants.iter().flatten().count() * (size_of::<Door>() + size_of::<Gains>());
        self.seen.memory_bytes() + doors + self.tenants.capacity() * size_of::<Option<Box<Door>>>()
    }

    fn line(&mut self, tenant: usize, by_ssd: bool) -> &mut Line {
        if by_ssd { &mut self.ssd } else { &mut self.door(tenant).past }
    }

    fn door(&mut self, tenant: usize) -> &mut Door {
        if tenant >= self.tenants.len() {
            self.tenants.resize_with(tenant + 1, || None);
        }
        self.tenants[tenant].get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_its_share_enters_evenly() {
        let mut doors = Doors::new(1024);
        let mut terms = Terms::default();
        // Writes of one block elsewhere, of blocks that are not known: one in four.
        terms.shares[Kind::of(true, 1, false, 0, false).index()] = 0.25;
        doors.open(1, &terms);
        let mut enters = |tenant, key: u64, blocks: u64| {
            doors.ask(tenant, true, (0..blocks as usize).map(|at| key + at as u64)).1
        };
        let entered: Vec<bool> = (0..8).map(|at| enters(1, at * 1000, 1)).collect();
        assert_eq!(entered, [false, false, false, true, false, false, false, true]);
        // Those of two blocks, and another tenant's.
        assert!((10..20).all(|at| enters(1, at * 1000, 2) && enters(0, at * 1000 + 500, 1)));
    }

    #[test]
    fn of_a_stream_whole_runs_enter() {
        let mut doors = Doors::new(1 << 18);
        let mut terms = Terms::default();
        terms.shares[Kind::of(true, 1, true, 0, false).index()] = 0.25;
        doors.open(0, &terms);
        let asked: Vec<_> = (0..4000).map(|at| doors.ask(0, true, [at].into_iter())).collect();
        let entered = asked.iter().filter(|(_, enters)| *enters).count();
        assert!(entered.abs_diff(1000) <= 40, "{entered}");
        // A run of those that enter is 2 x 16 / (1 - 0.25) long; one that passes by three times that.
        let turns = asked.windows(2).filter(|two| two[0].1 != two[1].1).count();
        assert!((30..=60).contains(&turns), "{turns}");
        // For who serves it the first one of a run goes on from nothing.
        let (sequential, other) =
            [true, false].map(|it| Kind::of(true, 1, it, 0, false).shape_served()).into();
        for (at, two) in asked.windows(2).enumerate() {
            let expected = if two[0].1 == two[1].1 { sequential } else { other };
            assert_eq!(two[1].0.shape_served(), expected, "{at}");
        }
    }

    /// Writes of which the SSD serves one in a millisecond, and the backing two once that was seen.
    #[test]
    fn a_write_passes_by_while_the_ssd_is_busy_as_far_as_it_is_known_what_the_backing_can() {
        let mut doors = Doors::new(1024);
        doors.open(0, &Terms { gains: Some(Box::new([2e-3; KINDS])), ..Terms::default() });
        let serve = |doors: &mut Doors, by_ssd, from: u64, per_ms: u64| {
            let ahead: Vec<_> = (0..40).map(|_| doors.began(0, by_ssd, 4096)).collect();
            for (at, ahead) in (1..).zip(ahead) {
                doors.set_clock((from + at / per_ms) * 1_000_000);
                doors.ended(0, by_ssd, 4096, ahead, Some(at / per_ms * 1_000_000));
            }
        };
        let mut key = 0;
        let mut enters = |doors: &mut Doors| {
            key += 10;
            doors.ask(0, true, [key].into_iter()).1
        };
        serve(&mut doors, true, 0, 1);
        (0..100).for_each(|_| _ = doors.began(0, true, 4096));
        // They wait for 99 ms. Of the backing nothing is known: a few try it.
        assert!(!enters(&mut doors));
        (0..16).for_each(|_| _ = doors.began(0, false, 4096));
        assert!(enters(&mut doors));
        (0..16).for_each(|_| doors.ended(0, false, 4096, 0, None));
        serve(&mut doors, false, 100, 2);
        (0..100).for_each(|_| _ = doors.began(0, false, 4096));
        // It takes 50 ms there: 49 are more than the 2 by which a write is worth more than its price.
        assert!(!enters(&mut doors));
        // And as long as here.
        (0..110).for_each(|_| _ = doors.began(0, false, 4096));
        assert!(enters(&mut doors));
        // No read goes another way.
        assert!(doors.ask(0, false, [7].into_iter()).1);
    }

    #[test]
    fn who_begins_anew_enters() {
        let mut doors = Doors::new(1024);
        doors.open(0, &Terms { shares: [0.0; KINDS], ..Terms::default() });
        assert!(!doors.ask(0, false, [7].into_iter()).1);
        doors.restart(0);
        assert!(doors.ask(0, false, [7].into_iter()).1);
    }

    #[test]
    fn a_request_that_is_asked_for_again_is_of_another_kind() {
        let mut doors = Doors::new(1024);
        let mut kind = || doors.ask(0, false, [40, 41].into_iter()).0;
        assert_eq!(kind(), Kind::of(false, 2, false, 0, false));
        assert_eq!(kind(), Kind::of(false, 2, false, 1, false));
        assert_eq!(doors.ask(0, false, [42].into_iter()).0, Kind::of(false, 1, true, 0, false));
        assert_eq!(doors.ask(0, false, std::iter::empty()).0, Kind::of(false, 0, false, 0, false));
    }
}
