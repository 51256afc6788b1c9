//! The table of sizes and policies: its rows, for the summary as for the report.

use larder_daemon::units::HumanSize;

use super::found::Found;
use super::line::{Line, merged};
use super::sizes;
use crate::number::percent;

/// The table of a trace.
pub struct Rows<'a> {
    found: &'a Found,
    lines: Vec<Line>,
    /// Sizes in blocks, in rising order: one row each.
    pub sizes: Vec<u64>,
}

impl<'a> Rows<'a> {
    /// Of what was found.
    pub fn new(found: &'a Found) -> Self {
        let lines = found.telling().into_iter().chain(found.estimates.iter().cloned()).collect();
        Self { found, lines, sizes: sizes::of_table(found.summary.footprint_blocks, &found.reach) }
    }

    /// The columns, two for each: policies whose columns would look alike are told together.
    pub fn groups(&self) -> Vec<(String, &Line)> {
        let column =
            |line: &Line| self.sizes.iter().map(|&blocks| self.cells(line, blocks)).collect::<Vec<_>>();
        merged(&self.lines, column)
    }

    /// What stands over the two columns of each, in two parts.
    pub fn headings(&self) -> [[&'static str; 2]; 2] {
        let first = if self.found.lru.reads > 0 { ["read", "hits"] } else { ["backing", "written"] };
        [first, ["SSD", "written"]]
    }

    /// A size, its share of the footprint, and what begins there.
    pub fn size(&self, blocks: u64) -> [String; 3] {
        let footprint = self.found.summary.footprint_blocks.max(1);
        let share = percent(Some((blocks as f64 / footprint as f64).min(1.0)));
        let reach = &self.found.reach;
        let marks = [(reach.knee, "90 %"), (reach.useful, "URD"), (reach.all, "TRD")];
        let here: Vec<_> =
            marks.into_iter().filter(|mark| mark.0 == Some(blocks)).map(|mark| mark.1).collect();
        [HumanSize(self.found.bytes(blocks)).to_string(), share, here.join(", ")]
    }

    /// Where the trace reads, the hit ratio of its reads, else what the backing is written; and what the SSD is written.
    pub fn cells(&self, line: &Line, blocks: u64) -> [String; 2] {
        let size = |writes: Option<u64>| {
            writes.map_or_else(|| "-".into(), |writes| HumanSize(self.found.bytes(writes)).to_string())
        };
        let first = match self.found.lru.reads {
            0 => size(line.backing_writes(blocks)),
            _ => percent(line.read_hit_ratio(blocks)),
        };
        [first, size(line.ssd_writes(blocks))]
    }

    /// What the marks mean.
    pub fn legend(&self) -> String {
        let reach = &self.found.reach;
        let knee = match reach.useful {
            Some(_) => "90 %: nine tenths of all read hits.",
            None => "90 %: nine tenths of all write hits.",
        };
        let marks = [
            (reach.knee, knee),
            (reach.useful, "URD: all read hits."),
            (reach.all, "TRD: all hits, of writes too."),
        ];
        let told: Vec<_> = marks.into_iter().filter(|mark| mark.0.is_some()).map(|mark| mark.1).collect();
        told.join(" ")
    }
}
