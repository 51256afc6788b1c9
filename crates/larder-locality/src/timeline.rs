//! The order in which blocks were last accessed, and how many were accessed after a given one.
//!
//! Every access takes the next slot; a slot is live while it is its block's last access. One bit a slot says so. How many
//! live slots come before a word of bits is the sum of a few numbers: those before it in its group of words, those before
//! the group in its node of groups, and so on up. An erasure changes all numbers behind it in its group and in each node,
//! which the processor does in a few steps without a branch, as they lie side by side; a new slot is behind them all, and
//! changes none. For four million blocks the bits take 4 MiB and the numbers 1 MiB, so that a count costs a few steps close
//! to the processor.

const SLOTS_PER_WORD: u32 = u64::BITS;

const WORDS_PER_GROUP: usize = 32;

/// Groups or nodes in a node.
const FANOUT: usize = 16;

/// Timelines have whole chunks of so many slots.
pub(crate) const SLOTS_PER_CHUNK: u32 = 512;

/// Slots in a timeline that is laid out with room: they leave the topmost number free for other use.
const SLOTS_MAX: u32 = u32::MAX / SLOTS_PER_CHUNK * SLOTS_PER_CHUNK;

/// Slots for each live one when a timeline is laid out anew: one more bit of memory each, and the fewer such moments.
const SLOTS_PER_LIVE: u32 = 8;

/// The slots, from the oldest to the next to be taken.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// One bit a slot, whole chunks.
    words: Vec<u64>,
    /// For each word, the live slots before it in its group. Those of words behind the newest slot's have no meaning.
    groups: Vec<[u16; WORDS_PER_GROUP]>,
    /// Likewise for each group in its node, for each node in the node above it, and so on up to one node.
    levels: Vec<Vec<[u32; FANOUT]>>,
    next: u32,
    live: u32,
}

impl Timeline {
    /// Live slots at the start, followed by free ones: room for at least `slots` in all.
    pub(crate) fn new(live: u32, slots: u32) -> Self {
        let words = slots.max(live).div_ceil(SLOTS_PER_CHUNK).max(1) as usize
            * (SLOTS_PER_CHUNK / SLOTS_PER_WORD) as usize;
        let groups = words.div_ceil(WORDS_PER_GROUP);
        let mut timeline = Self {
            words: vec![0; words],
            groups: vec![[0; WORDS_PER_GROUP]; groups],
            levels: levels(groups),
            next: 0,
            live: 0,
        };
        let full = (live / SLOTS_PER_WORD) as usize;
        for word in 0..full {
            timeline.enter(word);
            timeline.words[word] = u64::MAX;
        }
        if !live.is_multiple_of(SLOTS_PER_WORD) {
            timeline.enter(full);
            timeline.words[full] = below(live);
        }
        (timeline.next, timeline.live) = (live, live);
        timeline
    }

    /// Live slots at the start, and free ones in proportion.
    pub(crate) fn with_room(live: u32) -> Self {
        Self::with_room_for(live, 0)
    }

    /// Live slots at the start, and free ones in proportion to them and to `more` to come: for those at least.
    pub(crate) fn with_room_for(live: u32, more: u32) -> Self {
        let slots = live.saturating_add(more).saturating_mul(SLOTS_PER_LIVE);
        Self::new(live, slots.clamp(2 * SLOTS_PER_CHUNK, SLOTS_MAX))
    }

    /// The slot that the next [`Timeline::push`] takes.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Live slots.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// True when there is no slot left to push.
    pub(crate) fn is_full(&self) -> bool {
        self.next as usize == self.words.len() * SLOTS_PER_WORD as usize
    }

    /// Slots left to push.
    pub(crate) fn room(&self) -> u32 {
        (self.words.len() * SLOTS_PER_WORD as usize - self.next as usize) as u32
    }

    /// Take the next slot. The timeline must not be full.
    #[inline]
    pub(crate) fn push(&mut self) {
        if self.next.is_multiple_of(SLOTS_PER_WORD) {
            self.enter(word_of(self.next));
        }
        self.words[word_of(self.next)] |= bit(self.next);
        self.next += 1;
        self.live += 1;
    }

    /// A live slot is live no longer.
    #[inline]
    pub(crate) fn erase(&mut self, slot: u32) {
        let word = word_of(slot);
        debug_assert!(self.words[word] & bit(slot) != 0, "slot {slot} is not live");
        self.words[word] &= !bit(slot);
        self.live -= 1;
        let (mut at, place) = (word / WORDS_PER_GROUP, word % WORDS_PER_GROUP);
        for (behind, before) in (0..).zip(&mut self.groups[at]) {
            *before = before.wrapping_sub(u16::from(behind > place as u16));
        }
        for level in &mut self.levels {
            let place = at % FANOUT;
            at /= FANOUT;
            for (behind, before) in (0..).zip(&mut level[at]) {
                *before = before.wrapping_sub(u32::from(behind > place as u32));
            }
        }
    }

    /// A live slot is live no longer: the live slots after it.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> u32 {
        let after = self.live_after(slot);
        self.erase(slot);
        after
    }

    /// Live slots after this one, which was taken.
    #[inline]
    pub(crate) fn live_after(&self, slot: u32) -> u32 {
        let here = self.words[word_of(slot)] & (below(slot) | bit(slot));
        self.live - self.before(word_of(slot)) - here.count_ones()
    }

    /// Read the memory that [`Timeline::take`] would need first; the number has no meaning.
    #[inline]
    pub(crate) fn warm(&self, slot: u32) -> u64 {
        let word = word_of(slot);
        let group = self.groups.get(word / WORDS_PER_GROUP).map_or(0, |group| group[word % WORDS_PER_GROUP]);
        self.words.get(word).map_or(0, |&bits| bits ^ u64::from(group))
    }

    /// For every slot, the number of live slots before it.
    pub(crate) fn ranks(&self) -> Ranks<'_> {
        Ranks { timeline: self }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let nodes: usize = self.levels.iter().map(Vec::capacity).sum();
        self.words.capacity() * size_of::<u64>()
            + self.groups.capacity() * size_of::<[u16; WORDS_PER_GROUP]>()
            + nodes * size_of::<[u32; FANOUT]>()
    }

    /// Live slots before a word that has been entered.
    #[inline]
    fn before(&self, word: usize) -> u32 {
        let mut at = word / WORDS_PER_GROUP;
        let mut sum = u32::from(self.groups[at][word % WORDS_PER_GROUP]);
        for level in &self.levels {
            sum += level[at / FANOUT][at % FANOUT];
            at /= FANOUT;
        }
        sum
    }

    /// Tell the numbers of a word that gets its first slot, from those of the word before it.
    #[inline(never)]
    fn enter(&mut self, word: usize) {
        let Some(last) = word.checked_sub(1) else { return };
        let (mut at, place) = (word / WORDS_PER_GROUP, word % WORDS_PER_GROUP);
        let mut live = self.words[last].count_ones();
        live += u32::from(self.groups[last / WORDS_PER_GROUP][last % WORDS_PER_GROUP]);
        if place > 0 {
            self.groups[at][place] = live as u16;
            return;
        }
        self.groups[at][0] = 0;
        // The group before it is complete.
        for level in &mut self.levels {
            let last = at - 1;
            live += level[last / FANOUT][last % FANOUT];
            let place = at % FANOUT;
            at /= FANOUT;
            level[at][place] = if place > 0 { live } else { 0 };
            if place > 0 {
                return;
            }
        }
    }
}

/// Nodes for so many groups, level by level.
fn levels(groups: usize) -> Vec<Vec<[u32; FANOUT]>> {
    let mut levels = Vec::new();
    let mut below = groups;
    while below > 1 {
        below = below.div_ceil(FANOUT);
        levels.push(vec![[0; FANOUT]; below]);
    }
    levels
}

/// The ranks of a timeline's slots at one moment.
pub(crate) struct Ranks<'a> {
    timeline: &'a Timeline,
}

impl Ranks<'_> {
    /// Live slots before `slot`, which may be the one after the last.
    pub(crate) fn rank(&self, slot: u32) -> u32 {
        if slot >= self.timeline.next {
            return self.timeline.live;
        }
        let word = word_of(slot);
        self.timeline.before(word) + (self.timeline.words[word] & below(slot)).count_ones()
    }
}

fn word_of(slot: u32) -> usize {
    (slot / SLOTS_PER_WORD) as usize
}

fn bit(slot: u32) -> u64 {
    1 << (slot % SLOTS_PER_WORD)
}

/// The bits of a slot's word that lie before it.
fn below(slot: u32) -> u64 {
    bit(slot) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn live_slots(timeline: &Timeline) -> Vec<u32> {
        (0..timeline.next).filter(|&slot| timeline.words[word_of(slot)] & bit(slot) != 0).collect()
    }

    fn check(timeline: &Timeline) {
        let live = live_slots(timeline);
        assert_eq!(timeline.live as usize, live.len());
        let ranks = timeline.ranks();
        for slot in 0..timeline.next {
            assert_eq!(timeline.live_after(slot) as usize, live.iter().filter(|&&at| at > slot).count());
            assert_eq!(ranks.rank(slot) as usize, live.iter().filter(|&&at| at < slot).count());
        }
        assert_eq!(ranks.rank(timeline.next), timeline.live);
    }

    #[test]
    fn it_starts_with_live_slots_and_fills_up() {
        for live in [0, 1, 63, 64, 511, 512, 513, 1024] {
            let mut timeline = Timeline::new(live, 1024);
            check(&timeline);
            while !timeline.is_full() {
                assert_eq!(timeline.room(), 1024 - timeline.next());
                timeline.push();
            }
            assert_eq!((timeline.next, timeline.live), (1024, 1024));
            check(&timeline);
        }
    }

    /// Three levels of nodes: every few slots are erased, with the count after each held against the count of all later.
    #[test]
    fn large_timelines_count_alike() {
        let slots = SLOTS_PER_WORD * (WORDS_PER_GROUP * FANOUT * FANOUT) as u32 + 3 * SLOTS_PER_CHUNK;
        let mut timeline = Timeline::new(slots / 3, slots);
        let mut step = 1;
        let mut erase = |timeline: &mut Timeline, from: u32| {
            let mut slot = from;
            while slot < timeline.next() {
                if timeline.words[word_of(slot)] & bit(slot) != 0 {
                    timeline.erase(slot);
                }
                step = step * 5 % 1009;
                slot += step;
            }
        };
        erase(&mut timeline, 7);
        (timeline.next()..slots).for_each(|_| timeline.push());
        erase(&mut timeline, 0);
        assert!(timeline.is_full() && timeline.levels.len() == 3);
        let (mut before, ranks) = (0, timeline.ranks());
        for slot in 0..slots {
            let live = u32::from(timeline.words[word_of(slot)] & bit(slot) != 0);
            assert_eq!(
                (ranks.rank(slot), timeline.live_after(slot)),
                (before, timeline.live() - before - live)
            );
            before += live;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn counts_are_those_of_a_plain_list(
            start in 0u32..1200, steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..900),
        ) {
            let mut timeline = Timeline::new(start, 2048);
            for (push, which) in steps {
                let live = live_slots(&timeline);
                if push || live.is_empty() {
                    timeline.push();
                } else {
                    timeline.erase(live[which.index(live.len())]);
                }
            }
            check(&timeline);
        }
    }
}
