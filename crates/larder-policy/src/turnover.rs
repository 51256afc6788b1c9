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
    /// Reads of blocks that were hit. A write that misses is no slower where the cache takes it.
    pub read_hits: u64,
}

/// What a partition used, and when.
#[derive(Clone, Debug, Default)]
pub struct Turnover {
    marks: Vec<Used>,
}

impl Turnover {
    /// So much was used until now. Counters or clocks that begin anew tell nothing of what was before.
    pub fn note(&mut self, now: Used) {
        match self.marks.last() {
            Some(last) if now.ns < last.ns || now.blocks < last.blocks => self.marks.clear(),
            Some(last) if now.blocks - last.blocks < APART => return,
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

    /// How often the blocks `held` were hit, by what was used until `now`: no less. Where nothing is known it never was.
    pub fn hits_at_least(&self, now: Used, held: u32) -> Turn {
        self.turn(now, held, |_| 0).unwrap_or(Turn { seconds: f64::INFINITY, hits: 0.0 })
    }

    /// The same, no more: of blocks that were there before anything was known nobody knows that they were not hit.
    pub fn hits_at_most(&self, now: Used, held: u32) -> Turn {
        self.turn(now, held, |unknown| unknown).unwrap_or(Turn { seconds: 0.0, hits: f64::INFINITY })
    }

    fn turn(&self, now: Used, held: u32, of_unknown: impl Fn(u64) -> u64) -> Option<Turn> {
        let first = self.marks.first().filter(|_| held > 0)?;
        let held = u64::from(held);
        let known = now.blocks.saturating_sub(first.blocks);
        let then = match known >= held {
            true => self.at(now.blocks - held, now),
            false => *first,
        };
        let hits = now.read_hits.saturating_sub(then.read_hits) + of_unknown(held.saturating_sub(known));
        let seconds = now.ns.saturating_sub(then.ns).max(1) as f64 * 1e-9;
        Some(Turn { seconds, hits: hits as f64 / held as f64 / seconds })
    }

    /// The moment by which so many blocks had been used: between two that are remembered they are taken to be used evenly.
    fn at(&self, blocks: u64, now: Used) -> Used {
        let after = self.marks.partition_point(|mark| mark.blocks <= blocks);
        let (Some(before), after) = (self.marks[..after].last(), self.marks.get(after).unwrap_or(&now))
        else {
            return now;
        };
        let part = (blocks - before.blocks) as f64 / (after.blocks - before.blocks).max(1) as f64;
        let between = |from: u64, to: u64| from + (to.saturating_sub(from) as f64 * part) as u64;
        Used {
            ns: between(before.ns, after.ns),
            blocks,
            read_hits: between(before.read_hits, after.read_hits),
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.marks.capacity() * size_of::<Used>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn used(seconds: u64, blocks: u64, read_hits: u64) -> Used {
        Used { ns: seconds * SECOND, blocks, read_hits }
    }

    fn near(found: Turn, wanted: Turn) {
        let part = |found: f64, wanted: f64| (found / wanted - 1.0).abs();
        let far = part(found.seconds, wanted.seconds).max(part(found.hits, wanted.hits));
        assert!(far < 0.05, "{found:?}, not {wanted:?}");
    }

    #[test]
    fn a_place_is_worth_what_it_is_hit_in_a_turn() {
        let mut turnover = Turnover::default();
        // For a hundred seconds a thousand blocks a second, of which a half hits.
        (0..=100).for_each(|second| turnover.note(used(second, second * 1000, second * 500)));
        let now = used(100, 100_000, 50_000);
        // Ten thousand blocks are turned over in ten seconds: of each two one hits in that time.
        let burst = turnover.hits_at_least(now, 10_000);
        near(burst, Turn { seconds: 10.0, hits: 0.05 });
        near(turnover.hits_at_most(now, 10_000), burst);
        near(turnover.hits_at_least(now, 100_000), Turn { seconds: 100.0, hits: 0.005 });
        // A pause of a quarter of an hour, in which a block a second is hit: 900 of these, and half of 9,100 from before.
        let later = used(1000, 100_900, 50_900);
        let paused = turnover.hits_at_most(later, 10_000);
        near(paused, Turn { seconds: 909.0, hits: 0.545 / 909.0 });
        near(turnover.hits_at_most(later, 900), Turn { seconds: 900.0, hits: 1.0 / 900.0 });
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
        near(turnover.hits_at_least(now, 1000), Turn { seconds: 100.0, hits: 10.0 / 1000.0 / 100.0 });
        near(turnover.hits_at_most(now, 1000), Turn { seconds: 100.0, hits: 1.0 / 100.0 });
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
        for held in [200, 5_000, 100_000, 4_000_000, 90_000_000] {
            let seconds = f64::from(held) / 100.0;
            near(turnover.hits_at_least(now, held), Turn { seconds, hits: 0.25 / seconds });
        }
    }

    #[test]
    fn what_begins_anew_is_not_what_was() {
        let mut turnover = Turnover::default();
        (0..=100).for_each(|second| turnover.note(used(second, second * 1000, 0)));
        turnover.note(used(200, 10, 10));
        assert_eq!(turnover.marks, [used(200, 10, 10)]);
        turnover.note(used(100, 500, 10));
        assert_eq!(turnover.marks, [used(100, 500, 10)]);
    }
}
