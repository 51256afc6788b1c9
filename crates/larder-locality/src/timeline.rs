//! The order in which blocks were last accessed, and how many were accessed after a given one.
//!
//! Every access takes the next slot; a slot is live while it is its block's last access. One bit a slot says so, in
//! chunks of one cache line, with a Fenwick tree over the chunks: for four million blocks the bits take 4 MiB and the
//! tree 256 KiB, so that a count costs a few steps close to the processor.

const SLOTS_PER_WORD: u32 = u64::BITS;
const WORDS_PER_CHUNK: usize = 8;
/// Slots in a chunk.
pub(crate) const SLOTS_PER_CHUNK: u32 = SLOTS_PER_WORD * WORDS_PER_CHUNK as u32;

/// The slots, from the oldest to the next to be taken.
pub(crate) struct Timeline {
    /// One bit a slot, whole chunks.
    words: Vec<u64>,
    /// Fenwick tree of the live slots per chunk, for the chunks before the head (the chunk being filled).
    tree: Vec<u32>,
    next: u32,
    live: u32,
}

impl Timeline {
    /// Live slots at the start, followed by free ones: room for at least `slots` in all.
    pub(crate) fn new(live: u32, slots: u32) -> Self {
        let chunks = slots.max(live).div_ceil(SLOTS_PER_CHUNK).max(1) as usize;
        let mut timeline =
            Self { words: vec![0; chunks * WORDS_PER_CHUNK], tree: vec![0; chunks + 1], next: live, live };
        let full = (live / SLOTS_PER_WORD) as usize;
        timeline.words[..full].fill(u64::MAX);
        if !live.is_multiple_of(SLOTS_PER_WORD) {
            timeline.words[full] = below(live);
        }
        (0..timeline.head()).for_each(|chunk| timeline.tree_add(chunk, SLOTS_PER_CHUNK));
        timeline
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

    /// Take the next slot. The timeline must not be full.
    pub(crate) fn push(&mut self) {
        if self.next > 0 && self.next.is_multiple_of(SLOTS_PER_CHUNK) {
            let filled = self.head();
            let live = self.chunk(filled).iter().map(|word| word.count_ones()).sum();
            self.tree_add(filled, live);
        }
        self.words[word_of(self.next)] |= bit(self.next);
        self.next += 1;
        self.live += 1;
    }

    /// A live slot is live no longer.
    pub(crate) fn erase(&mut self, slot: u32) {
        debug_assert!(self.words[word_of(slot)] & bit(slot) != 0, "slot {slot} is not live");
        self.words[word_of(slot)] &= !bit(slot);
        self.live -= 1;
        if chunk_of(slot) < self.head() {
            // Minus one, modulo 2^32.
            self.tree_add(chunk_of(slot), u32::MAX);
        }
    }

    /// Live slots after this one.
    pub(crate) fn live_after(&self, slot: u32) -> u32 {
        let chunk = chunk_of(slot);
        let here = self.live_in_chunk_from(slot + 1, chunk);
        match chunk < self.head() {
            true => here + self.live - self.tree_sum(chunk + 1),
            false => here,
        }
    }

    /// For every slot, the number of live slots before it.
    pub(crate) fn ranks(&self) -> Ranks<'_> {
        let before = self.words.chunks_exact(WORDS_PER_CHUNK).scan(0, |sum, chunk| {
            let before = *sum;
            *sum += chunk.iter().map(|word| word.count_ones()).sum::<u32>();
            Some(before)
        });
        Ranks { timeline: self, before: before.collect() }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.tree.capacity() * size_of::<u32>()
    }

    /// The chunk of the newest slot: not in the tree yet.
    fn head(&self) -> usize {
        chunk_of(self.next.saturating_sub(1))
    }

    fn chunk(&self, chunk: usize) -> &[u64] {
        &self.words[chunk * WORDS_PER_CHUNK..][..WORDS_PER_CHUNK]
    }

    /// Live slots of a chunk from `slot` on, which is in it or the first after it.
    fn live_in_chunk_from(&self, slot: u32, chunk: usize) -> u32 {
        let end = (chunk + 1) * WORDS_PER_CHUNK;
        match self.words[..end].get(word_of(slot)..) {
            Some([first, rest @ ..]) => {
                (first & !below(slot)).count_ones() + rest.iter().map(|word| word.count_ones()).sum::<u32>()
            }
            _ => 0,
        }
    }

    fn tree_add(&mut self, chunk: usize, live: u32) {
        let mut at = chunk + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(live);
            at += at & at.wrapping_neg();
        }
    }

    /// Live slots in the first `chunks` chunks, all before the head.
    fn tree_sum(&self, chunks: usize) -> u32 {
        let mut sum = 0u32;
        let mut at = chunks;
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }
}

/// The ranks of a timeline's slots at one moment.
pub(crate) struct Ranks<'a> {
    timeline: &'a Timeline,
    before: Vec<u32>,
}

impl Ranks<'_> {
    /// Live slots before `slot`, which may be the one after the last.
    pub(crate) fn rank(&self, slot: u32) -> u32 {
        match self.before.get(chunk_of(slot)) {
            Some(before) => {
                let words = &self.timeline.words[chunk_of(slot) * WORDS_PER_CHUNK..=word_of(slot)];
                let whole = words[..words.len() - 1].iter().map(|word| word.count_ones()).sum::<u32>();
                before + whole + (words[words.len() - 1] & below(slot)).count_ones()
            }
            None => self.timeline.live,
        }
    }
}

fn chunk_of(slot: u32) -> usize {
    (slot / SLOTS_PER_CHUNK) as usize
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
                timeline.push();
            }
            assert_eq!((timeline.next, timeline.live), (1024, 1024));
            check(&timeline);
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
