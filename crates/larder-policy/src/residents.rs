//! How long what a partition holds lies idle, by a sample of its blocks; and what it brings to hold more of it.
//!
//! Of some hundred blocks of a partition is known when each was used last: when the one in the middle was, so long half of the partition lies idle. Of whoever wants more it is known how fast blocks enter, and
//! how often reads hit what it holds. By that partitions lend places to each other ([`lends`]) sooner than anybody decides anew: a burst turns its blocks over in seconds, and hits some of them, while who has
//! paused holds what nobody has asked for for minutes. Of two that share one LRU cache the least recently used blocks leave, whosever they are, so that both have the same age in the end; here the one's have to be
//! [`TIMES`] as old as the other's.
//!
//! What is idle may be wanted again all the same, where there are many blocks that are each used now and then. So whoever reads much again of the half that has been idle for longer keeps it
//! ([`RARELY`]): few hot blocks beside a scan have as many hits as a burst, and would bring nothing for what they took.
//!
//! Blocks are sampled by a hash of their numbers, as in SHARDS (Waldspurger and others, 2015): each use of one that is sampled is seen, and all others cost a comparison.

use std::collections::{BTreeMap, VecDeque};

use crate::index::hash;

/// Blocks of a partition that are looked at, at most.
const SAMPLED: usize = 256;

/// ...and at least, of one that holds so many and has changed.
const FEWEST: u32 = 64;

/// Where fewer are left of a sample, it tells nothing.
const TELLING: usize = 4;

/// Blocks of the idle half that were read again, of those that are looked at: by the last so many it is known how much comes again.
const LATE: usize = 16;

/// A turn takes no less: clocks go on once for all requests that come together.
const TURN_SECONDS: f64 = 0.01;

/// Who lends holds what has been idle for so many times as long as it takes who borrows to fill as many places as it has.
///
/// A place that changes hands has to be filled, and filled again when it is given back.
pub const TIMES: f64 = 8.0;

/// ...and reads less than this of the half that has been idle for longer again in as long.
pub const RARELY: f64 = 1.0 / 8.0;

/// How idle what a partition holds is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// Seconds for which half of it has not been used.
    pub seconds: f64,
    /// How much of that half is read again in as long, lately.
    pub comes_again: f64,
}

/// What one who wants more makes of what it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Seconds in which as many blocks enter as it holds.
    pub seconds: f64,
    /// Reads that hit, a second, for each block that it holds.
    pub hits: f64,
}

/// True if idle blocks are worth more to one who makes so much of its own: these come and go several times meanwhile, and reads hit each of them, in the mean, while few of the idle ones are read again.
pub fn lends(idle: Idle, borrower: Turn) -> bool {
    let Idle { seconds, comes_again } = idle;
    seconds > TIMES * borrower.seconds && seconds * borrower.hits > 1.0 && comes_again < RARELY
}

fn seconds_between(since_ns: u64, now_ns: u64) -> f64 {
    (now_ns.saturating_sub(since_ns) as f64 / 1e9).max(TURN_SECONDS)
}

/// Blocks with this number are sampled at a level.
#[inline]
fn is_sampled(id: u64, level: u32) -> bool {
    hash(id & u64::from(u32::MAX)).leading_zeros() >= level
}

/// A sample of what a partition holds. A block's number is its own alone; the lower half is where it is on its volume.
#[derive(Clone, Debug, Default)]
pub struct Residents {
    /// Of the blocks that are used each of 2^level is sampled.
    level: u32,
    /// Blocks that are used in a span: half as many as it holds.
    span: u32,
    /// What was used lately.
    lately: Span,
    /// In the span before that.
    before: Span,
    /// Blocks used before these spans.
    earlier: u64,
    /// The block that was used last.
    last: u64,
    /// By number.
    sampled: BTreeMap<u64, Resident>,
    /// Not all blocks that were used were sampled.
    thinned: bool,
    /// Some are sampled that were not when they were used before.
    widened: bool,
    middle: Middle,
    /// The last blocks that came again late.
    late: VecDeque<Late>,
    /// Nothing is known of what was before. Blocks of which nothing is known have not been used since.
    since_ns: u64,
}

/// A block that is there.
#[derive(Clone, Copy, Debug)]
struct Resident {
    used_ns: u64,
    /// It stands for 2^level blocks.
    level: u32,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    Enters,
    Read,
    Other,
}

/// When the block in the middle was used last.
#[derive(Clone, Copy, Debug, Default)]
struct Middle {
    ns: u64,
    /// Of so many blocks.
    held: u32,
    /// Changes of the sample since that was found.
    changes: usize,
}

/// A block of the half that had been idle for longer was read.
#[derive(Clone, Copy, Debug)]
struct Late {
    ns: u64,
    /// For how long that half had been idle, times its part that this block stands for.
    seconds: f64,
}

/// What was used in some time.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    since_ns: u64,
    used: u32,
    entered: u32,
    read_hits: u32,
}

impl Residents {
    /// Nothing is known of what was before now.
    pub fn new(now_ns: u64) -> Self {
        let span = Span { since_ns: now_ns, ..Span::default() };
        let middle = Middle { ns: now_ns, ..Middle::default() };
        Self { since_ns: now_ns, lately: span, before: span, middle, ..Self::default() }
    }

    /// A block enters a partition that holds so many with it.
    pub fn entered(&mut self, id: u64, held: u32, now_ns: u64) {
        self.span = held / 2;
        self.fit_level(held);
        self.lately.entered += 1;
        self.last = id;
        self.uses(id, Use::Enters, now_ns);
    }

    /// A block is hit, by a read or a write. One that is read piece by piece is read once.
    #[inline]
    pub fn hit(&mut self, id: u64, reads: bool, now_ns: u64) {
        let reads = reads && id != self.last;
        self.lately.read_hits += u32::from(reads);
        self.last = id;
        self.uses(id, if reads { Use::Read } else { Use::Other }, now_ns);
    }

    #[inline]
    fn uses(&mut self, id: u64, by: Use, now_ns: u64) {
        self.lately.used += 1;
        if self.lately.used >= self.span.max(FEWEST) {
            self.go_on(now_ns);
        }
        if self.is_sampled(id) {
            self.sample(id, by, now_ns);
        }
    }

    /// Another span begins.
    #[cold]
    fn go_on(&mut self, now_ns: u64) {
        self.earlier += u64::from(self.before.used);
        self.before = std::mem::replace(&mut self.lately, Span { since_ns: now_ns, ..Span::default() });
        // Before anything has entered, or anybody asked, it is not known what is held.
        if self.span > 0 {
            self.idle_seconds(self.span * 2, now_ns);
        }
    }

    /// A block leaves.
    #[inline]
    pub fn left(&mut self, id: u64) {
        if self.is_sampled(id) && self.sampled.remove(&id).is_some() {
            self.middle.changes += 1;
        }
    }

    /// Blocks that were used until now.
    #[inline]
    pub fn used(&self) -> u64 {
        self.earlier + u64::from(self.before.used) + u64::from(self.lately.used)
    }

    /// By the block's place on its volume, so that whoever runs the same requests samples the same blocks, whatever it numbers volumes by.
    #[inline]
    fn is_sampled(&self, id: u64) -> bool {
        is_sampled(id, self.level)
    }

    fn sample(&mut self, id: u64, by: Use, now_ns: u64) {
        let level = self.level;
        let unknown = if by == Use::Enters || self.widened { now_ns } else { self.since_ns };
        let resident = self.sampled.entry(id).or_insert(Resident { used_ns: unknown, level });
        if by == Use::Read && self.span > 0 && resident.used_ns <= self.middle.ns {
            if self.late.len() == LATE {
                self.late.pop_front();
            }
            let idle = now_ns.saturating_sub(self.middle.ns) as f64 / 1e9;
            let part = (1u64 << resident.level) as f64 / f64::from(self.span);
            self.late.push_back(Late { ns: now_ns, seconds: idle * part });
        }
        resident.used_ns = now_ns;
        self.middle.changes += 1;
        while self.sampled.len() > SAMPLED {
            self.level += 1;
            self.thinned = true;
            let level = self.level;
            self.sampled.retain(|&id, resident| {
                resident.level = resident.level.max(level);
                is_sampled(id, level)
            });
        }
    }

    /// Of fewer blocks more are sampled from now on.
    fn fit_level(&mut self, held: u32) {
        while self.level > 0 && held >> self.level < FEWEST {
            self.level -= 1;
            self.widened = true;
        }
    }

    /// How idle the blocks `held` are.
    pub fn idle(&mut self, held: u32, now_ns: u64) -> Idle {
        self.span = held / 2;
        Idle { seconds: self.idle_seconds(held, now_ns), comes_again: self.comes_again(now_ns) }
    }

    fn comes_again(&self, now_ns: u64) -> f64 {
        let known_all = self.late.len() < LATE;
        let since_ns = self.late.front().filter(|_| !known_all).map_or(self.since_ns, |late| late.ns);
        let later = self.late.iter().skip(usize::from(!known_all)).map(|late| late.seconds);
        later.sum::<f64>() / seconds_between(since_ns, now_ns)
    }

    /// Seconds for which half of the blocks `held` have not been used; none where too few of them are known.
    fn idle_seconds(&mut self, held: u32, now_ns: u64) -> f64 {
        self.fit_level(held);
        if self.thinned && self.sampled.len() < TELLING {
            return 0.0;
        }
        // One that was used moves the middle by a block at most.
        let changed = self.middle.changes > self.sampled.len() / 8;
        if changed || self.middle.held.abs_diff(held) > held / 8 {
            self.middle = Middle { ns: self.used_in_the_middle(held), held, changes: 0 };
        }
        now_ns.saturating_sub(self.middle.ns) as f64 / 1e9
    }

    fn used_in_the_middle(&self, held: u32) -> u64 {
        let known = self.sampled.values().map(|resident| (resident.used_ns, 1u64 << resident.level));
        let mut uses: Vec<(u64, u64)> = known.collect();
        let known: u64 = uses.iter().map(|&(_, blocks)| blocks).sum();
        uses.push((self.since_ns, u64::from(held).saturating_sub(known)));
        uses.sort_unstable();
        let mut older = 0;
        let middle = uses.iter().find(|&&(_, blocks)| {
            older += blocks;
            older * 2 >= known.max(held.into())
        });
        middle.map_or(self.since_ns, |&(ns, _)| ns)
    }

    /// What is made of the blocks `held`, by the last that were used: as many as these, or half as many.
    pub fn turn(&self, held: u32, now_ns: u64) -> Turn {
        let (lately, before) = (&self.lately, &self.before);
        let seconds = seconds_between(before.since_ns, now_ns);
        let each = |count: u32| f64::from(count) / f64::from(held.max(1)) / seconds;
        Turn {
            seconds: 1.0 / each(lately.entered + before.entered),
            hits: each(lately.read_hits + before.read_hits),
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.sampled.len() * size_of::<(u64, Resident)>() + self.late.capacity() * size_of::<Late>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Rng;

    const SECOND: u64 = 1_000_000_000;

    /// Every block that is there, and when it was used last.
    #[derive(Default)]
    struct Model(BTreeMap<u64, u64>);

    impl Model {
        /// Which share of the blocks was used before.
        fn older(&self, ns: u64) -> f64 {
            self.0.values().filter(|&&used| used < ns).count() as f64 / self.0.len() as f64
        }
    }

    #[test]
    fn half_of_the_blocks_are_idle_for_so_long_whatever_was_used() {
        for (seed, blocks) in [(1, 300u64), (2, 5_000), (3, 50_000)] {
            let (mut rng, mut model, mut residents) =
                (Rng::new(seed), Model::default(), Residents::default());
            let mut now = 0;
            for step in 0..blocks * 20 {
                now += 1 + rng.below(1_000_000);
                // A tenth of the blocks has most uses; now and then one leaves.
                let id = if rng.below(10) < 8 { rng.below(blocks / 10) } else { rng.below(blocks * 2) };
                let there = model.0.insert(id, now).is_some();
                if there {
                    residents.hit(id, true, now);
                } else {
                    residents.entered(id, model.0.len() as u32, now);
                }
                if rng.below(4) == 0 {
                    let gone = rng.below(blocks * 2);
                    model.0.remove(&gone);
                    residents.left(gone);
                }
                if step % blocks == blocks - 1 {
                    let idle = residents.idle_seconds(model.0.len() as u32, now);
                    let older = model.older(now - (idle * 1e9) as u64);
                    // Half, but for what a sample of a hundred tells, an eighth of which may have been used since it was looked at.
                    assert!((older - 0.5).abs() < 0.2, "seed {seed}, step {step}: {older}");
                }
            }
            assert!(residents.sampled.len() <= SAMPLED && residents.sampled.len() > SAMPLED / 4);
        }
    }

    #[test]
    fn a_few_blocks_in_use_hide_no_others_that_are_idle() {
        let mut residents = Residents::default();
        (0..10_000).for_each(|id| residents.entered(id, id as u32 + 1, SECOND));
        (2..1000).for_each(|second| (0..400).for_each(|id| residents.hit(id, true, second * SECOND)));
        assert_eq!(residents.idle_seconds(10_000, 1000 * SECOND), 999.0);
        // Another half is used: none of it is idle.
        (0..6_000).for_each(|id| residents.hit(id, false, 1000 * SECOND));
        assert_eq!(residents.idle_seconds(10_000, 1000 * SECOND), 0.0);
        // Most leave, and of those that come each is looked at again.
        (0..9_900).for_each(|id| residents.left(id));
        (20_000..20_300).for_each(|id| residents.entered(id, 100 + (id - 20_000) as u32, 1001 * SECOND));
        assert_eq!(residents.idle_seconds(400, 1002 * SECOND), 1.0);
        assert!(residents.level <= 1, "{}", residents.level);
        // What is left of a sample weighs what it stood for: a half that was used, of what many others have left.
        let mut residents = Residents::default();
        (0..40_000).for_each(|id| residents.entered(id, id as u32 + 1, SECOND));
        (0..40_000).for_each(|id| residents.hit(id, true, 2 * SECOND));
        (4_000..40_000).for_each(|id| residents.left(id));
        (0..2_500).for_each(|id| residents.hit(id, true, 10 * SECOND));
        residents.entered(50_000, 4_001, 10 * SECOND);
        assert_eq!(residents.idle_seconds(4_001, 10 * SECOND), 0.0);
        // Too few to tell of.
        (2..4_000).for_each(|id| residents.left(id));
        assert!(residents.sampled.len() < TELLING && residents.idle_seconds(3, 99 * SECOND) == 0.0);
    }

    #[test]
    fn what_was_there_before_anything_was_known_has_not_been_used_since() {
        let mut residents = Residents::new(10 * SECOND);
        assert_eq!(residents.idle_seconds(1000, 70 * SECOND), 60.0);
        (0..400).for_each(|id| residents.hit(id, true, 50 * SECOND));
        assert_eq!(residents.idle_seconds(1000, 70 * SECOND), 60.0);
        (400..800).for_each(|id| residents.hit(id, true, 50 * SECOND));
        assert_eq!(residents.idle_seconds(1000, 70 * SECOND), 20.0);
        // A clock that begins anew.
        assert_eq!(residents.idle_seconds(1000, SECOND), 0.0);
    }

    #[test]
    fn a_turn_is_of_what_was_used_last() {
        let mut residents = Residents::default();
        assert_eq!(residents.turn(1000, SECOND).hits, 0.0);
        assert!(!lends(idle(f64::MAX), residents.turn(1000, SECOND)), "nothing entered");
        // A hundred blocks a second of which each is read at once again, for a hundred seconds; then a pause of as many.
        for second in 1..=100 {
            for at in 0..100 {
                let id = second * 100 + at;
                let now = second * SECOND + at * SECOND / 100;
                // Blocks in pieces, and blocks that are written, are no hits of reads.
                residents.entered(id, 1000, now);
                residents.hit(id, true, now);
                residents.hit(id - 1, false, now);
                residents.hit(id - 1, true, now);
                residents.hit(id, true, now);
            }
        }
        let turn = residents.turn(1000, 101 * SECOND);
        assert!((turn.seconds - 10.0).abs() < 0.5 && (turn.hits - 0.1).abs() < 0.005, "{turn:?}");
        let turn = residents.turn(1000, 200 * SECOND);
        assert!(turn.seconds > 200.0 && turn.hits < 0.005, "{turn:?}");
        // All at one moment: no faster than clocks tell.
        let mut residents = Residents::default();
        (0..1000).for_each(|id| residents.entered(id, 1000, SECOND));
        assert!(residents.turn(1000, SECOND).seconds >= TURN_SECONDS);
    }

    fn idle(seconds: f64) -> Idle {
        Idle { seconds, comes_again: 0.0 }
    }

    #[test]
    fn what_is_read_again_after_a_long_time_is_wanted_until_it_no_longer_is() {
        for blocks in [200u64, 20_000] {
            let (mut rng, mut residents) = (Rng::new(blocks), Residents::new(SECOND));
            let second = |now: u64| now * SECOND / (blocks / 20);
            let now = 20 * blocks;
            (0..blocks).for_each(|id| residents.entered(id, id as u32 + 1, second(0)));
            // All of them, as it comes: half have been idle for ln 2 of the mean time between two reads, and as much of them comes again.
            for now in 1..now {
                residents.hit(rng.below(blocks), true, second(now));
            }
            let held = blocks as u32;
            let again = residents.idle(held, second(now)).comes_again;
            assert!((again - std::f64::consts::LN_2).abs() < 0.35, "{blocks}: {again}");
            // Nothing at all for as long as it takes to read twice as many as there are.
            let again = residents.idle(held, second(now + 2 * blocks)).comes_again;
            assert!(again < RARELY, "{blocks}: {again}");
            // A few of them for as long again: the others have a pause. Writes do not count.
            for now in now..2 * now {
                residents.hit(rng.below(blocks / 20), true, second(now));
                residents.hit(rng.below(blocks), false, second(now));
                residents.hit(rng.below(blocks / 20), true, second(now));
            }
            let again = residents.idle(held, second(2 * now)).comes_again;
            assert!(again < RARELY, "{blocks}: {again}");
        }
    }

    #[test]
    fn what_was_there_before_is_wanted_if_it_is_read_for_the_first_time_since() {
        let blocks = 20_000u64;
        let (mut rng, mut residents) = (Rng::new(1), Residents::new(SECOND));
        // Nobody has asked how much is held: the sample is as it was.
        (0..blocks).for_each(|at| residents.hit(at % 5_000, true, SECOND + at));
        assert!(residents.level >= 3 && residents.sampled.len() > SAMPLED / 4, "{}", residents.level);
        residents.idle(blocks as u32, 2 * SECOND);
        // All of them, as it comes, half as often as there are.
        for at in 1..blocks / 2 {
            residents.hit(rng.below(blocks), true, 2 * SECOND + at * 10 * SECOND / blocks);
        }
        let again = residents.idle(blocks as u32, 7 * SECOND).comes_again;
        assert!(again > RARELY, "{again}");
    }

    #[test]
    fn who_has_paused_lends_to_a_burst_and_nobody_to_a_scan_or_while_it_uses_its_own() {
        let burst = Turn { seconds: 4.0, hits: 0.01 };
        assert!(lends(idle(800.0), burst));
        assert!(!lends(idle(800.0), Turn { hits: 0.0, ..burst }), "a scan");
        assert!(!lends(idle(800.0), Turn { hits: 0.001, ..burst }), "what it holds is idle too");
        assert!(!lends(idle(800.0), Turn { seconds: 110.0, ..burst }), "few enter");
        assert!(!lends(idle(30.0), Turn { hits: 1.0, ..burst }), "it is in use");
        assert!(!lends(Idle { seconds: 800.0, comes_again: 0.2 }, burst), "it is wanted again");
        assert!(!lends(idle(0.0), Turn { seconds: 0.0, hits: f64::INFINITY }));
    }
}
