//! How much the blocks that a partition holds are hit, for how long they have been there.
//!
//! Nobody notes when each block was used last. But whoever has used so many blocks since some moment, one after the other, has used no more different ones: of what a partition holds some block has not been
//! used since the moment from which on it used as many as it holds. So counters of what was used that are read from time to time tell how old its blocks are. What it hits a second in that time, for each
//! block that it holds, is what a place is worth to it: a burst turns its few blocks over in seconds, and hits half of them; who has paused holds what nobody has asked for for minutes. By that partitions lend places to each other
//! ([`lends`]) sooner than anybody decides anew.

/// Moments that are remembered: the older they are, the farther from each other.
const MARKS: usize = 64;

/// Blocks used between two moments that are remembered, at least.
const APART: u64 = 64;

/// Who lends hits so many times less, for each place.
///
/// A place that changes hands has to be filled again when it is given back; and of who has paused it is the most that a place can have been worth, of who wants one what each was in the mean.
const LESS: f64 = 8.0;

/// ...and has held what it holds so many times as long: the blocks of one that has just come have had no time to be hit.
const LONGER: f64 = 8.0;

/// How often what a partition holds is hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Seconds in which it used as many blocks as it holds.
    pub seconds: f64,
    /// Reads that hit in that time, a second for each of these blocks.
    pub hits: f64,
}

/// A place is worth more to one who hits at least so much, and misses, than to another who hits at most so much.
pub fn lends(lender: Turn, borrower: Turn) -> bool {
    lender.hits * LESS < borrower.hits && lender.seconds >= LONGER * borrower.seconds
}

/// What was used up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The moment, in nanoseconds.
    pub ns: u64,
    /// Blocks that were hit, and that entered.
    pub blocks: u64,
    /// Those of them that were hit.
    pub hits: u64,
    /// Those that reads hit. A write that misses is no slower where the cache takes it.
    pub read_hits: u64,
}

/// What a partition used, and when.
#[derive(Clone, Debug, Default)]
pub struct Turnover {
    marks: Vec<Used>,
}

impl Turnover {
    /// So much was used until now. A clock that begins anew tells nothing of what was before.
    pub fn note(&mut self, now: Used) {
        match self.marks.last() {
            Some(last) if now.ns < last.ns => self.marks.clear(),
            Some(last) if now.blocks < last.blocks + APART => return,
            _ => {}
        }
        if self.marks.len() == MARKS {
            self.thin(now.blocks);
        }
        self.marks.push(now);
    }

    /// Forget the moment whose neighbours are nearest to each other for how long ago they are. The first stays, since before it nothing is known.
    fn thin(&mut self, blocks: u64) {
        let near = |at: usize| {
            let apart = self.marks[at + 1].blocks - self.marks[at - 1].blocks;
            apart as f64 / (blocks - self.marks[at].blocks + 1) as f64
        };
        let nearest = (1..self.marks.len() - 1).min_by(|&a, &b| near(a).total_cmp(&near(b)));
        if let Some(nearest) = nearest {
            self.marks.remove(nearest);
        }
    }

    /// How often reads hit the blocks `held`, by what was used until `now`: no more often than that, and no less long. Where nothing is known they never did.
    pub fn hits_at_least(&self, now: Used, held: u32) -> Turn {
        let Some((before, after, _)) = self.then(now, held) else {
            return Turn { seconds: f64::INFINITY, hits: 0.0 };
        };
        let hits = now.read_hits.saturating_sub(after.read_hits);
        turn(now, before, hits, held)
    }

    /// How often anything hit them: no less often than that, and no longer. Of blocks that were there before anything was known nobody knows that they were not hit.
    pub fn hits_at_most(&self, now: Used, held: u32) -> Turn {
        let Some((before, after, unknown)) = self.then(now, held) else {
            return Turn { seconds: 0.0, hits: f64::INFINITY };
        };
        let hits = now.hits.saturating_sub(before.hits) + unknown;
        turn(now, after, hits, held)
    }

    /// The moments that are remembered before and after the one since which as many blocks were used as are `held`; and how many of these were used before the first, if that is not known.
    fn then(&self, now: Used, held: u32) -> Option<(Used, Used, u64)> {
        let (first, held) = (self.marks.first().filter(|_| held > 0)?, u64::from(held));
        let known = now.blocks.saturating_sub(first.blocks);
        if known < held {
            return Some((*first, *first, held - known));
        }
        let then = now.blocks - held;
        let before = self.marks.partition_point(|mark| mark.blocks <= then).saturating_sub(1);
        let after = self.marks.partition_point(|mark| mark.blocks < then);
        Some((self.marks[before], self.marks.get(after).copied().unwrap_or(now), 0))
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Used>()
    }
}

/// So many hits of the blocks `held` since `then`.
fn turn(now: Used, then: Used, hits: u64, held: u32) -> Turn {
    let seconds = now.ns.saturating_sub(then.ns).max(1) as f64 * 1e-9;
    Turn { seconds, hits: hits as f64 / f64::from(held) / seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn used(seconds: u64, blocks: u64, hits: u64) -> Used {
        Used { ns: seconds * SECOND, blocks, hits, read_hits: hits }
    }

    /// What is found is such bounds of the truth, and not far from it.
    fn bound(turnover: &Turnover, now: Used, held: u32, truth: Turn) -> (Turn, Turn) {
        let (least, most) = (turnover.hits_at_least(now, held), turnover.hits_at_most(now, held));
        assert!(
            least.hits <= truth.hits * 1.001 && truth.hits <= most.hits * 1.001,
            "{least:?} {truth:?} {most:?}"
        );
        assert!(least.seconds >= truth.seconds * 0.999 && truth.seconds >= most.seconds * 0.999);
        assert!(most.hits < 2.0 * least.hits, "{least:?} {most:?}");
        (least, most)
    }

    #[test]
    fn a_place_is_worth_what_it_is_hit_in_a_turn() {
        let mut turnover = Turnover::default();
        // For a hundred seconds a thousand blocks a second, of which a half hits.
        (0..=100).for_each(|second| turnover.note(used(second, second * 1000, second * 500)));
        let now = used(100, 100_000, 50_000);
        // Ten thousand blocks are turned over in ten seconds: of each two one hits in that time.
        let (burst, _) = bound(&turnover, now, 10_000, Turn { seconds: 10.0, hits: 0.05 });
        bound(&turnover, now, 90_000, Turn { seconds: 90.0, hits: 0.5 / 90.0 });
        // A pause of a quarter of an hour, in which a block a second is hit: 900 of these, and half of 9,100 from before.
        let later = used(1000, 100_900, 50_900);
        let (_, paused) = bound(&turnover, later, 10_000, Turn { seconds: 909.1, hits: 0.545 / 909.1 });
        assert!(lends(paused, burst) && !lends(burst, burst) && !lends(burst, paused));
        // Not to one who hits as seldom, nor one that has just come to one whose blocks have been there for longer.
        assert!(!lends(paused, Turn { hits: paused.hits * LESS * 0.9, ..burst }));
        assert!(!lends(Turn { seconds: burst.seconds * LONGER * 0.9, ..paused }, burst));
    }

    #[test]
    fn what_is_not_known_is_no_hit_of_who_wants_and_one_of_who_lends() {
        let mut turnover = Turnover::default();
        let now = used(100, 0, 0);
        let (least, most) = (turnover.hits_at_least(now, 10), turnover.hits_at_most(now, 10));
        assert_eq!((least.hits, most.hits), (0.0, f64::INFINITY));
        assert!(!lends(least, least) && !lends(most, most) && !lends(most, least));
        // Of a thousand that were kept over a restart ten were used since.
        turnover.note(now);
        let now = used(200, 10, 10);
        assert_eq!(turnover.hits_at_least(now, 1000), Turn { seconds: 100.0, hits: 10.0 / 1000.0 / 100.0 });
        assert_eq!(turnover.hits_at_most(now, 1000), Turn { seconds: 100.0, hits: 1000.0 / 1000.0 / 100.0 });
        // Nothing is held: it has no place to tell of.
        assert_eq!(turnover.hits_at_least(now, 0).hits, 0.0);
    }

    #[test]
    fn old_moments_are_remembered_farther_apart() {
        let mut turnover = Turnover::default();
        for second in 0..1_000_000 {
            turnover.note(used(second, second * 100, second * 25));
        }
        assert_eq!(turnover.marks.len(), MARKS);
        let now = used(1_000_000, 100_000_000, 25_000_000);
        for held in [1_000, 5_000, 100_000, 4_000_000, 90_000_000] {
            let seconds = f64::from(held) / 100.0;
            bound(&turnover, now, held, Turn { seconds, hits: 0.25 / seconds });
        }
    }

    #[test]
    fn between_two_moments_nobody_knows_when_blocks_were_used() {
        let mut turnover = Turnover::default();
        turnover.note(used(0, 0, 0));
        turnover.note(used(100, 1000, 0));
        // A pause of nine hours, and then all of it is hit at once.
        turnover.note(used(32_500, 2000, 1000));
        let now = used(32_500, 2000, 1000);
        let (least, most) = (turnover.hits_at_least(now, 900), turnover.hits_at_most(now, 900));
        assert!(most.seconds < 1.0 && most.hits > 1.0, "it may have been now: {most:?}");
        assert!(least.seconds > 32_399.0 && least.hits == 0.0, "or just after the second: {least:?}");
        // Writes that hit count for who lends alone.
        turnover.note(Used { ns: 32_600 * SECOND, blocks: 3000, hits: 2000, read_hits: 1000 });
        let now = Used { ns: 32_700 * SECOND, blocks: 4000, hits: 3000, read_hits: 1000 };
        assert_eq!(turnover.hits_at_least(now, 1000).hits, 0.0);
        assert_eq!(turnover.hits_at_most(now, 1000), Turn { seconds: 100.0, hits: 1000.0 / 1000.0 / 100.0 });
    }

    #[test]
    fn a_clock_that_begins_anew_tells_nothing_of_what_was() {
        let mut turnover = Turnover::default();
        (0..=100).for_each(|second| turnover.note(used(second, second * 1000, 0)));
        // A hit that was none after all is taken back.
        turnover.note(used(101, 99_999, 0));
        assert_eq!(turnover.marks.last(), Some(&used(100, 100_000, 0)));
        turnover.note(used(50, 100_500, 10));
        assert_eq!(turnover.marks, [used(50, 100_500, 10)]);
    }
}
