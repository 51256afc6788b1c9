//! What an analysis found, as far as it is told: the curves at chosen sizes only, so that many traces fit in memory beside each other.

use larder_locality::{ClassCounts, CurvePolicy, PolicyCurves, Sampling};
use larder_sim::{AddressMap, Analysis, BlockSize, Region, Span, Summary, Window};

use super::distances::Distances;
use super::line::Line;
use super::reach::Reach;
use super::sizes;
use crate::head::Head;

/// What was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The trace as the command line names it, without its folder.
    pub trace: String,
    /// A short name of its own among the traces of the command line.
    pub name: String,
    /// How the trace is written.
    pub format: String,
    /// Its volumes by number.
    pub volumes: Vec<String>,
    /// Which blocks were to be looked at.
    pub sampling: Sampling,
    /// Whose curves are to be shown.
    pub write_policies: Vec<CurvePolicy>,
    /// When the mover was to fill the cache.
    pub mover_epoch: Span,
}

/// What was found of a trace.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was asked.
    pub asked: Asked,
    /// What the trace holds.
    pub summary: Summary,
    /// The unit of caching.
    pub block: BlockSize,
    /// Share of the blocks that was looked at.
    pub rate: f64,
    /// Blocks that were looked at.
    pub sampled_blocks: u64,
    /// Bytes of memory that it took.
    pub memory_bytes: u64,
    /// Block accesses by request class.
    pub classes: ClassCounts,
    /// Reuse distances of all accesses.
    pub trd: Distances,
    /// Reuse distances of reads of blocks seen before.
    pub urd: Distances,
    /// From which sizes on a cache brings what.
    pub reach: Reach,
    /// An LRU cache under write-back, whether it was asked for or not.
    pub lru: Line,
    /// The curves that were asked for.
    pub lines: Vec<Line>,
    /// Estimates of other policies.
    pub estimates: Vec<Line>,
    /// The trace over time.
    pub windows: Vec<Window>,
    /// Accesses over time and address.
    pub map: AddressMap,
    /// Where most of the accesses went.
    pub hot: Vec<Region>,
}

impl Found {
    /// What is told of an analysis.
    pub fn new(asked: Asked, analysis: Analysis) -> Self {
        let lru = of(CurvePolicy::WriteBack, &analysis.curves);
        let lru = lru.expect("write-back is in every plan: distances are those of its cache");
        let reach = Reach::new(lru);
        let sizes = sizes::of_curve(analysis.summary.footprint_blocks, &reach);
        let asked_for = asked.write_policies.iter().filter_map(|&policy| of(policy, &analysis.curves));
        let counted = lru.counted();
        let totals = [counted.reads, counted.writes, analysis.summary.requests()];
        Self {
            trd: Distances::new(&lru.distances()),
            urd: Distances::new(&lru.useful_distances()),
            lines: asked_for.map(|curves| Line::of_curves(curves, &sizes)).collect(),
            estimates: analysis.bank.iter().map(|curve| Line::of_bank(curve, totals)).collect(),
            lru: Line::of_curves(lru, &sizes),
            reach,
            asked,
            summary: analysis.summary,
            block: analysis.block,
            rate: analysis.rate,
            sampled_blocks: analysis.sampled_blocks,
            memory_bytes: analysis.memory_bytes,
            classes: analysis.classes,
            windows: analysis.windows,
            map: analysis.map,
            hot: analysis.hot,
        }
    }

    /// The trace in a line.
    pub fn head(&self) -> Head<'_> {
        Head {
            trace: &self.asked.trace,
            format: &self.asked.format,
            summary: &self.summary,
            block: self.block,
        }
    }

    /// So many blocks in bytes.
    pub fn bytes(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.block.bytes().into())
    }

    /// True where every block was looked at.
    pub fn is_exact(&self) -> bool {
        self.rate >= 1.0
    }

    /// True where the trace tells times.
    pub fn has_times(&self) -> bool {
        self.map.column_ns > 0
    }

    /// True where a mover would have filled the cache at least once.
    pub fn has_moved(&self) -> bool {
        match self.asked.mover_epoch {
            Span::Requests(requests) => self.summary.requests() > requests,
            Span::TimeNs(ns) => self.summary.elapsed_ns >= ns,
        }
    }

    /// The lines that tell a reader something: a mover that never moved does not.
    pub fn telling(&self) -> Vec<Line> {
        let tells = |line: &&Line| self.has_moved() || !line.is_of(CurvePolicy::Batched);
        self.lines.iter().filter(tells).cloned().collect()
    }

    /// What a reader of the curves must know besides.
    pub fn caveats(&self) -> Vec<&'static str> {
        let estimates = "Other policies than LRU are estimated from scaled-down caches of some sizes (-: smaller than all of them); between these a figure is interpolated, which is rough where hits rise steeply.";
        let batched = "batched is left out: no mover epoch ends in this trace (--mover-epoch).";
        let never_moved = self.asked.write_policies.contains(&CurvePolicy::Batched) && !self.has_moved();
        let all = [(!self.estimates.is_empty(), estimates), (never_moved, batched)];
        all.into_iter().filter(|caveat| caveat.0).map(|caveat| caveat.1).collect()
    }

    /// What to call a volume.
    pub fn volume(&self, number: u32) -> String {
        self.asked
            .volumes
            .get(number as usize)
            .filter(|name| !name.is_empty())
            .map_or_else(|| number.to_string(), String::clone)
    }

    /// What the sampling means for the figures; none where they are exact.
    pub fn sampling_note(&self) -> Option<String> {
        let share = self.rate * 100.0;
        let digits = if share < 1.0 { 4 } else { 2 };
        let what =
            format!("{} blocks ({share:.digits$} % of all)", crate::number::grouped(self.sampled_blocks));
        (!self.is_exact())
            .then(|| format!("Estimated from a sample of {what}: sizes and shares are approximate."))
    }
}

fn of(policy: CurvePolicy, curves: &[PolicyCurves]) -> Option<&PolicyCurves> {
    curves.iter().find(|curves| curves.policy() == policy)
}
