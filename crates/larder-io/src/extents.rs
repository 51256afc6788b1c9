//! How a volume is allocated: what its backing says, and what the cache alone has.

use crate::frontend::Extent;

/// Extents told at most; what follows the last is told by asking again. Each takes two system calls, which hold up the
/// reactor.
pub(crate) const EXTENTS_MAX: usize = 32;

/// Blocks of holes that are looked up in the cache for one answer, for the same reason.
const LOOKS_MAX: u64 = 4096;

/// Append, or lengthen the last of the same kind.
pub(crate) fn push(into: &mut Vec<Extent>, first: usize, extent: Extent) {
    match into[first..].last_mut() {
        Some(last) if last.hole == extent.hole => last.len += extent.len,
        _ => into.push(extent),
    }
}

/// Append the extents of a backing, from `offset` on; what the cache alone has is no hole. `alone` tells how far from a byte on, up to another, that is so or
/// not, after a look at so many blocks at most.
pub(crate) fn with_alone(
    on_backing: Vec<Extent>,
    offset: u64,
    into: &mut Vec<Extent>,
    alone: impl Fn(u64, u64, u64) -> (u64, bool),
) {
    let (first, mut at, mut looks) = (into.len(), offset, LOOKS_MAX);
    for Extent { len, hole } in on_backing {
        let end = at + len;
        while at < end {
            if into.len() - first >= EXTENTS_MAX || (hole && looks == 0) {
                return;
            }
            let (next, is_alone) = if hole { alone(at, end, looks) } else { (end, true) };
            // A block has 4 KiB at least.
            looks = if hole { looks.saturating_sub((next - at).div_ceil(4096).max(1)) } else { looks };
            push(into, first, Extent { len: next - at, hole: !is_alone });
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;
    const fn data(blocks: u64) -> Extent {
        Extent { len: blocks * BLOCK, hole: false }
    }
    const fn hole(blocks: u64) -> Extent {
        Extent { len: blocks * BLOCK, hole: true }
    }

    /// Where the cache alone has these blocks.
    fn told(on_backing: &[Extent], offset: u64, alone: &[u64]) -> Vec<Extent> {
        let mut into = vec![data(1)];
        with_alone(on_backing.to_vec(), offset, &mut into, |start, end, looks| {
            let is_alone = |block: u64| alone.contains(&block);
            let first = start / BLOCK;
            let same = (first + 1..first + looks).find(|&block| is_alone(block) != is_alone(first));
            (end.min(same.unwrap_or(first + looks) * BLOCK), is_alone(first))
        });
        assert_eq!(into.remove(0), data(1), "what was there stays");
        into
    }

    #[test]
    fn what_the_cache_alone_has_is_no_hole() {
        assert_eq!(told(&[hole(8)], 0, &[]), [hole(8)]);
        assert_eq!(told(&[hole(8)], 0, &[0, 1, 5]), [data(2), hole(3), data(1), hole(2)]);
        assert_eq!(told(&[data(2), hole(6)], 0, &[1, 2]), [data(3), hole(5)]);
        let half = Extent { len: BLOCK / 2, hole: true };
        let (start, rest) = (Extent { hole: false, ..half }, hole(1));
        assert_eq!(told(&[Extent { len: BLOCK / 2 + BLOCK, hole: true }], BLOCK / 2, &[0]), [start, rest]);
    }

    #[test]
    fn an_answer_takes_a_bounded_time() {
        let every_other: Vec<u64> = (0..200).map(|block| block * 2).collect();
        assert_eq!(told(&[hole(1 << 20)], 0, &every_other).len(), EXTENTS_MAX);
        assert_eq!(told(&[hole(1 << 20), data(1)], 0, &[]), [hole(LOOKS_MAX)]);
        assert_eq!(told(&[data(1 << 20), hole(1)], 0, &[]), [data(1 << 20), hole(1)]);
    }
}
