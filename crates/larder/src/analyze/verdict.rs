//! The three sentences that matter: how much cache a workload can use, what it would bring, what it would cost in SSD writes.

use larder_daemon::units::HumanSize;
use larder_locality::AtSize;

use super::found::Found;
use super::line::{Line, merged};
use crate::number::percent;

/// Shorter traces say nothing about a day.
const PACE_MIN_NS: u64 = 60_000_000_000;

const DAY_NS: f64 = 86_400e9;

/// What reaches this share of the most is nearly as much.
const NEARLY: f64 = 0.9;

/// Where reads are fewer than this share of the accesses, serving them all brings next to nothing.
const FEW_READS: f64 = 0.01;

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
            let size = "None of its blocks is in the sample: give a larger --sample, or leave it out.";
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
    let share = hitting(found, useful, |at| at.read_hits);
    let held = if found.summary.discards > 0 { " and not discarded since" } else { "" };
    let mut how_much = format!(
        "The workload can use up to {} of cache: that serves all reads of blocks seen before{held} (URD), {share} of its block accesses",
        size(useful)
    );
    if knee < useful {
        how_much += &format!("; nine tenths of them need {}", size(knee));
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
    let line = &found.lru;
    let shares = |blocks| {
        let shares = [line.read_hit_ratio(blocks), line.request_hit_ratio(blocks)];
        (shares.map(percent), line.backing_write_ratio(blocks))
    };
    let ([reads, requests], passed_on) = shares(knee);
    let mut gain = format!("With {}, a write-back cache serves {reads} of the blocks read", size(knee));
    gain += &match passed_on {
        Some(share) => format!(
            ", {requests} of the requests find all their blocks in it, and {} of the blocks written go on to the backing before the trace ends.",
            percent(Some(share))
        ),
        None => format!(", and {requests} of the requests find all their blocks in it."),
    };
    if knee < useful {
        let ([reads, requests], passed_on) = shares(useful);
        gain += &match passed_on {
            Some(share) => {
                format!(" With {} these are {reads}, {requests} and {}.", size(useful), percent(Some(share)))
            }
            None => format!(" With {} these are {reads} and {requests}.", size(useful)),
        };
    }
    if (line.reads as f64) < FEW_READS * (line.reads + line.writes) as f64 {
        gain +=
            " There are few reads to serve: what it gains is above all writes that the backing is spared.";
    }
    gain
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
        let names = names.replace(", ", " or ");
        format!("{} of writes under {names}, serving {}", written(line), percent(line.read_hit_ratio(blocks)))
    };
    let size = HumanSize(found.bytes(blocks));
    let Some((most, others)) = choices.split_first() else {
        return format!("At {size}, none of the policies that were asked for serves a read.");
    };
    // The cheapest beside the one that serves most, or where that is as cheap, the dearest beside it.
    let writes = |choice: &(String, &Line)| choice.1.ssd_writes(blocks).unwrap_or_default();
    let is_cheaper = |one, other| (writes(one) as f64) < NEARLY * writes(other) as f64;
    let least = others.iter().min_by_key(|choice| writes(choice)).filter(|least| is_cheaper(least, most));
    let dearest =
        others.iter().max_by_key(|choice| writes(choice)).filter(|dearest| is_cheaper(most, dearest));
    let (first, second) = least.map_or((most, dearest), |least| (least, Some(most)));
    let second = second.map(|choice| format!("; {}", told(choice))).unwrap_or_default();
    format!("At {size} the SSD would take {} of the blocks read{second}.", told(first))
}

/// Of a workload whose blocks come again, but are never read again.
fn re_written(found: &Found, knee: u64) -> (String, String, String) {
    let size = |blocks| HumanSize(found.bytes(blocks));
    let all = found.reach.blocks();
    let mut how_much = format!(
        "The workload can use no cache for reading: {} is read a second time or after a write{} (URD).",
        no_block(found),
        before_discards(found)
    );
    let again = hitting(found, all, |at| at.write_hits);
    how_much += &format!(" Its writes hit: at most {again} of its block accesses do, in {} (TRD)", size(all));
    if knee < all {
        how_much += &format!("; nine tenths of these in {}", size(knee));
    }
    let share = percent(found.lru.backing_write_ratio(knee));
    let gain = format!(
        "Only write-back brings something: with {}, {share} of the blocks written go on to the backing before the trace ends.",
        size(knee)
    );
    let written = found.lru.ssd_writes(knee).unwrap_or_default();
    let cost =
        format!("At {} the SSD would take {} of writes under wb.", size(knee), written_in(found, written));
    (how_much + ".", gain, cost)
}

/// Of a workload that uses no block twice.
fn used_once(found: &Found) -> (String, String, String) {
    let cost = match found.lru.ssd_writes(1).unwrap_or_default() {
        0 => "It would cost the SSD no writes.".to_owned(),
        written => {
            format!("It would only wear the SSD: {} under wb, whatever its size.", written_in(found, written))
        }
    };
    (
        format!(
            "The workload can use no cache: {} is accessed again{}.",
            no_block(found),
            before_discards(found)
        ),
        "In a cache of any size, no access would hit.".into(),
        cost,
    )
}

/// Share of the block accesses that hit in a cache of this size.
fn hitting(found: &Found, blocks: u64, hits: impl Fn(&AtSize) -> u64) -> String {
    let accesses = (found.lru.reads + found.lru.writes) as f64;
    percent(found.lru.value(blocks, hits).map(|hits| hits / accesses))
}

/// What is said of no block may be said of the sample only.
fn no_block(found: &Found) -> &'static str {
    if found.is_exact() { "no block" } else { "no block of the sample" }
}

/// A block comes again, but not from a cache, where it was discarded in between.
fn before_discards(found: &Found) -> &'static str {
    if found.summary.discards > 0 { " before it is discarded" } else { "" }
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
