//! From which sizes on a cache brings what: the knee of its curve, all useful hits, all hits.

use larder_locality::{PolicyCurves, SizeCurve};

/// Share of the hits that the knee brings.
const KNEE: f64 = 0.9;

/// Sizes in blocks, of an LRU cache that takes reads and writes. None where no cache has such hits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The smallest that has nine tenths of the hits of `useful`, or of `all` where no read hits.
    pub knee: Option<u64>,
    /// The smallest that serves every read that any serves: the largest URD and one.
    pub useful: Option<u64>,
    /// The smallest that has every hit that any has: the largest TRD and one.
    pub all: Option<u64>,
}

impl Reach {
    /// Of curves under `wb` or `wt`.
    pub fn new(curves: &PolicyCurves) -> Self {
        let counted = curves.counted();
        let first = |blocks: u64| (blocks > 0).then_some(blocks);
        let useful = counted.read_hits.steps().last().and_then(|&(blocks, _)| first(blocks));
        let of = if useful.is_some() { &counted.read_hits } else { &counted.write_hits };
        Self { knee: knee(of), useful, all: first(curves.full_blocks()) }
    }

    /// The size beyond which nothing more is had; 0 where no cache has anything.
    pub fn blocks(&self) -> u64 {
        self.all.unwrap_or(0)
    }

    /// All of them.
    pub fn marks(&self) -> impl IntoIterator<Item = u64> + use<> {
        [self.knee, self.useful, self.all].into_iter().flatten()
    }
}

fn knee(hits: &SizeCurve) -> Option<u64> {
    let enough = hits.last() as f64 * KNEE;
    hits.steps()
        .iter()
        .find(|&&(_, count)| count as f64 >= enough)
        .map(|&(blocks, _)| blocks)
        .filter(|&blocks| blocks > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_locality::{Counted, CurvePolicy};

    fn reach(reads: &[(u64, u64)], writes: &[(u64, u64)]) -> Reach {
        let curve = |steps: &[(u64, u64)]| SizeCurve::rising(steps.iter().copied());
        let counted = Counted { read_hits: curve(reads), write_hits: curve(writes), ..Counted::default() };
        Reach::new(&PolicyCurves::new(CurvePolicy::WriteBack, counted))
    }

    #[test]
    fn the_knee_has_nine_tenths_of_the_reads() {
        assert_eq!(
            reach(&[(2, 89), (5, 1), (50, 10)], &[(70, 1000)]),
            Reach { knee: Some(5), useful: Some(50), all: Some(70) }
        );
        assert_eq!(reach(&[(2, 7)], &[(1, 1)]), Reach { knee: Some(2), useful: Some(2), all: Some(2) });
    }

    #[test]
    fn without_reads_it_has_nine_tenths_of_the_writes() {
        assert_eq!(reach(&[], &[(3, 95), (4, 5)]), Reach { knee: Some(3), useful: None, all: Some(4) });
        assert_eq!(reach(&[], &[]), Reach::default());
    }
}
