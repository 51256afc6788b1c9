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
    let size = |blocks| HumanSize(found.bytes(blocks)).to_string();
    let share = percent(Some(found.classes.useful() as f64 / found.classes.total() as f64));
    let mut how_much = format!(
        "The workload can use up to {} of cache: that serves all reads of blocks seen before (URD), {share} of its accesses",
        size(useful)
    );
    if knee < useful {
        how_much += &format!("; {} serve nine tenths of these reads", size(knee));
    }
    how_much += ".";
    // Where the two look the same, the second says nothing.
    let by_all = size(found.reach.blocks());
    if by_all != size(useful) {
        how_much += &format!(" Sized by all accesses, rewrites among them, it would take {by_all} (TRD).");
    }
    (how_much, gain_of_reads(found, knee, useful), cost_of_reads(found, knee))
}

fn gain_of_reads(found: &Found, knee: u64, useful: u64) -> String {
    let size = |blocks| HumanSize(found.bytes(blocks));
    let reads = |blocks| percent(found.lru.read_hit_ratio(blocks));
    let requests = |blocks| percent(found.lru.request_hit_ratio(blocks));
    let mut gain = format!(
        "With {}, {} of the blocks read come from the cache and {} of the requests hit",
        size(knee),
        reads(knee),
        requests(knee)
    );
    if knee < useful {
        gain += &format!("; with {}, {} and {}", size(useful), reads(useful), requests(useful));
    }
    if let Some(share) = found.lru.backing_write_ratio(knee) {
        gain += &format!(
            ". Before the trace ends, write-back sends the backing {} of the blocks written",
            percent(Some(share))
        );
    }
    gain + "."
}

/// What the policy costs that writes least among those that serve nearly as much as the best, and the best one.
fn cost_of_reads(found: &Found, blocks: u64) -> String {
    let mut lines: Vec<Line> = found.telling().into_iter().chain(found.estimates.iter().cloned()).collect();
    let served = |line: &Line| line.read_hit_ratio(blocks).unwrap_or_default();
    let best = lines.iter().map(served).fold(0.0, f64::max);
    lines.retain(|line| served(line) > 0.0 && served(line) >= best * NEARLY);
    // What looks the same to a reader is the same.
    let written = |line: &Line| written_in(found, line.ssd_writes(blocks).unwrap_or_default());
    let mut choices = merged(&lines, |line| (written(line), percent(line.read_hit_ratio(blocks))));
    choices.sort_by(|(_, a), (_, b)| {
        served(b).total_cmp(&served(a)).then(a.ssd_writes(blocks).cmp(&b.ssd_writes(blocks)))
    });
    let told = |(names, line): &(String, &Line)| {
        format!("{} under {names}, serving {}", written(line), percent(line.read_hit_ratio(blocks)))
    };
    let size = HumanSize(found.bytes(blocks));
    let Some((most, others)) = choices.split_first() else {
        return format!("At {size}, none of the policies that were asked for serves a read.");
    };
    // The cheapest beside the one that serves most; where that is the cheapest, the dearest beside it.
    let of_line = |choice: &&(String, &Line)| choice.1.ssd_writes(blocks);
    let other = |least: bool| {
        if least { others.iter().min_by_key(of_line) } else { others.iter().max_by_key(of_line) }
    };
    let cheaper = other(true).filter(|least| least.1.ssd_writes(blocks) < most.1.ssd_writes(blocks));
    let pair = cheaper.map(|least| (least, most)).or_else(|| other(false).map(|dearest| (most, dearest)));
    match pair.filter(|(first, second)| written(first.1) != written(second.1)) {
        None => format!("At {size} the SSD would be written {} of the blocks read.", told(most)),
        Some((first, second)) => {
            format!(
                "At {size} the SSD would be written {} of the blocks read; {}.",
                told(first),
                told(second)
            )
        }
    }
}

/// Of a workload whose blocks come again, but are never read again.
fn re_written(found: &Found, knee: u64) -> (String, String, String) {
    let size = |blocks| HumanSize(found.bytes(blocks));
    let all = found.reach.blocks();
    let mut how_much =
        "The workload can use no cache for reading: no block seen before is read (URD).".to_owned();
    let again = percent(Some(found.classes.write_ratio()));
    how_much += &format!(" Blocks are written again within {} (TRD), {again} of its accesses", size(all));
    if knee < all {
        how_much += &format!("; nine tenths of these writes within {}", size(knee));
    }
    let share = percent(found.lru.backing_write_ratio(knee));
    let gain = format!(
        "Only write-back brings something: with {}, the backing gets {share} of the blocks written before the trace ends.",
        size(knee)
    );
    let written = found.lru.ssd_writes(knee).unwrap_or_default();
    let cost = format!("At {} the SSD would be written {} under wb.", size(knee), written_in(found, written));
    (how_much + ".", gain, cost)
}

/// Of a workload that uses no block twice.
fn used_once(found: &Found) -> (String, String, String) {
    let which = if found.is_exact() { "no block" } else { "no block of the sample" };
    let until = if found.summary.discards > 0 { " before it is discarded" } else { "" };
    let cost = match found.lru.ssd_writes(1).unwrap_or_default() {
        0 => "It would cost the SSD no writes.".to_owned(),
        written => {
            format!("It would only wear the SSD: {} under wb, whatever its size.", written_in(found, written))
        }
    };
    (
        format!("The workload can use no cache: {which} is accessed again{until}."),
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
