//! The three sentences that matter: how much cache a workload can use, what it would bring, what it would cost in SSD writes.

use larder_daemon::units::HumanSize;

use super::found::Found;
use super::line::{Line, merged};
use crate::number::percent;

/// Shorter traces say nothing about a day.
const PACE_MIN_NS: u64 = 60_000_000_000;

const DAY_NS: f64 = 86_400e9;

/// A policy serves nearly as much as the best one if it serves this share of its reads.
const NEARLY: f64 = 0.9;

/// What is found, in words. Where there is nothing to weigh, the first sentence says all, and the others are absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How much cache it can use.
    pub size: String,
    /// What that would bring.
    pub gain: Option<String>,
    /// What it would cost.
    pub cost: Option<String>,
}

impl Verdict {
    /// Of what was found.
    pub fn new(found: &Found) -> Self {
        if found.summary.block_accesses == 0 {
            let what = match found.summary.requests() {
                0 => "The trace holds no reads or writes",
                _ => "The requests of this trace are empty",
            };
            return Self { size: format!("{what}: there is nothing to cache."), gain: None, cost: None };
        }
        if found.classes.total() == 0 {
            let size = "None of its blocks is in the sample: give a larger --sample, or leave it away.";
            return Self { size: size.into(), gain: None, cost: None };
        }
        let (size, gain, cost) = match (found.reach.knee, found.reach.useful) {
            (Some(knee), Some(useful)) => re_read(found, knee, useful),
            (Some(knee), None) => re_written(found, knee),
            (None, _) => used_once(found),
        };
        Self { size, gain: Some(gain), cost: Some(cost) }
    }

    /// The sentences with what they are about.
    pub fn sentences(&self) -> Vec<(&'static str, &str)> {
        let [gain, cost] = [&self.gain, &self.cost].map(|sentence| sentence.as_deref());
        let all = [("Use", Some(self.size.as_str())), ("Gain", gain), ("Cost", cost)];
        all.into_iter().filter_map(|(about, sentence)| Some((about, sentence?))).collect()
    }
}

/// Of a workload that reads blocks again.
fn re_read(found: &Found, knee: u64, useful: u64) -> (String, String, String) {
    let size = |blocks| HumanSize(found.bytes(blocks));
    let mut how_much = format!(
        "It can use up to {} of cache: that serves every read of a block seen before (URD)",
        size(useful)
    );
    if knee < useful {
        how_much += &format!(", and {} serve nine tenths of them", size(knee));
    }
    how_much += ".";
    // Where the two look the same, the second says nothing.
    let [by_reads, by_all] = [useful, found.reach.blocks()].map(|blocks| size(blocks).to_string());
    if by_reads != by_all {
        how_much += &format!(" Sized by all accesses, rewrites among them, it would take {by_all} (TRD).");
    }
    let mut gain = format!(
        "With {}, {}",
        size(knee),
        served(found, knee, "of the blocks read come", "of the requests hit")
    );
    if knee < useful {
        gain += &format!("; with {}, {}", size(useful), served(found, useful, "", ""));
    }
    if let Some(share) = found.lru.backing_write_ratio(knee) {
        gain += &format!(". Write-back sends the backing {} of the blocks written", percent(Some(share)));
    }
    (how_much, gain + ".", cost_of_reads(found, knee))
}

/// `60.4 % of the blocks read come from it, and 55 % of the requests hit`.
fn served(found: &Found, blocks: u64, reads: &str, requests: &str) -> String {
    let [of_reads, of_requests] =
        [found.lru.read_hit_ratio(blocks), found.lru.request_hit_ratio(blocks)].map(percent);
    match (reads, requests) {
        ("", _) => format!("{of_reads} and {of_requests}"),
        _ => format!("{of_reads} {reads} from the cache and {of_requests} {requests}"),
    }
}

/// What the policy costs that writes least among those that serve nearly as much as the best, and the dearest of them.
fn cost_of_reads(found: &Found, blocks: u64) -> String {
    let mut lines: Vec<Line> = found.telling().into_iter().chain(found.estimates.iter().cloned()).collect();
    let best = lines.iter().filter_map(|line| line.read_hit_ratio(blocks)).fold(0.0, f64::max);
    lines.retain(|line| {
        line.read_hit_ratio(blocks).is_some_and(|ratio| ratio > 0.0 && ratio >= best * NEARLY)
    });
    let mut choices = merged(&lines, |line| (line.ssd_writes(blocks), percent(line.read_hit_ratio(blocks))));
    choices.sort_by_key(|(_, line)| line.ssd_writes(blocks));
    let told = |(names, line): &(String, &Line)| {
        let written = written_in(found, line.ssd_writes(blocks).unwrap_or_default());
        format!("{written} under {names}, serving {}", percent(line.read_hit_ratio(blocks)))
    };
    let size = HumanSize(found.bytes(blocks));
    match &choices[..] {
        [] => format!("At {size}, none of the policies that were asked for serves a read."),
        [only] => format!("At {size} the SSD would be written {} of the blocks read.", told(only)),
        [least, .., most] => {
            format!("At {size} the SSD would be written {} of the blocks read; {}.", told(least), told(most))
        }
    }
}

/// Of a workload whose blocks come again, but are never read again.
fn re_written(found: &Found, knee: u64) -> (String, String, String) {
    let size = |blocks| HumanSize(found.bytes(blocks));
    let all = found.reach.blocks();
    let mut how_much = "It can use no cache for reading: no block is read again (URD).".to_owned();
    how_much += &format!(" Blocks are written again within {} (TRD)", size(all));
    if knee < all {
        how_much += &format!(", nine tenths of those writes within {}", size(knee));
    }
    let share = percent(found.lru.backing_write_ratio(knee));
    let gain = format!(
        "Only write-back brings something: with {}, the backing gets {share} of the blocks written.",
        size(knee)
    );
    let written = found.lru.ssd_writes(knee).unwrap_or_default();
    let cost = format!("At {} the SSD would be written {} under wb.", size(knee), written_in(found, written));
    (how_much + ".", gain, cost)
}

/// Of a workload that uses no block twice.
fn used_once(found: &Found) -> (String, String, String) {
    let which = if found.is_exact() { "no block" } else { "no block of the sample" };
    let cost = match found.lru.ssd_writes(1).unwrap_or_default() {
        0 => "It would cost the SSD no writes.".to_owned(),
        written => {
            format!("It would only wear the SSD: {} under wb, whatever its size.", written_in(found, written))
        }
    };
    (
        format!("It can use no cache: {which} is accessed twice."),
        "A cache of any size would serve none of the blocks.".into(),
        cost,
    )
}

/// `12.3 GiB (4.4 TiB a day)`.
fn written_in(found: &Found, blocks: u64) -> String {
    let bytes = found.bytes(blocks);
    let size = HumanSize(bytes);
    match found.summary.elapsed_ns {
        ns if ns >= PACE_MIN_NS && bytes > 0 => {
            let a_day = HumanSize((bytes as f64 * DAY_NS / ns as f64) as u64);
            format!("{size} ({a_day} a day)")
        }
        _ => size.to_string(),
    }
}

#[cfg(test)]
mod tests;
