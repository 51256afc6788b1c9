//! Tenants that do this and that, and what the analyzer finds about them.

use larder_locality::{Analyzer, AnalyzerConfig, Bank, Op, Reach, Sampling};
use larder_policy::Rng;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{
    CacheUse, ConfiguredPolicy, Constraints, Findings, Goals, Latencies, Measured, Needs, Objective,
    Reservation, Timed, WritePolicy,
};

/// Caches have so many blocks at most.
const CACHE_MAX: u32 = 700;

/// What the bank's caches have at most, and so their sample.
const BANK_BLOCKS: u32 = 1024;

/// What is configured, and what everybody does in each epoch.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub constraints: Constraints,
    pub members: Vec<Member>,
    /// One list for each epoch, in the order of the members.
    pub epochs: Vec<Vec<Doing>>,
}

/// A tenant as configured.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub name: &'static str,
    pub seed: u64,
    pub policy: ConfiguredPolicy,
    pub quota_blocks: Option<u32>,
    pub min_blocks: u32,
    pub goals: Goals,
}

/// What a tenant does in an epoch. One in `writes` requests is a write; none if 0.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    /// It is not there.
    Gone,
    /// Nothing, and nothing is told about it.
    Idle,
    /// Nothing.
    Nothing,
    /// So many requests for blocks that it never accessed before.
    Scan { requests: u64, writes: u64 },
    /// So many requests, over and over the same blocks.
    Loop { requests: u64, writes: u64, blocks: u64 },
    /// So many requests anywhere in these blocks, half of them in their first tenth.
    Random { requests: u64, writes: u64, blocks: u64 },
}

/// Everything that is watched about a tenant.
pub(super) struct Host {
    analyzer: Analyzer,
    bank: Option<Bank>,
    rng: Rng,
    /// The first block that no scan has read.
    unread: u64,
}

impl Host {
    /// What is watched is what is needed.
    pub fn new(needs: &Needs, seed: u64) -> Self {
        let analysis = AnalyzerConfig {
            policies: needs.curves.clone(),
            sampling: Sampling::Exact,
            history_blocks: u64::MAX,
            seed,
        };
        let modes: Vec<_> = needs.bank.iter().map(|mode| (mode.caching, mode.write)).collect();
        let bank = Bank::new(&modes, Reach::Blocks(BANK_BLOCKS.into()), BANK_BLOCKS, seed);
        Self {
            analyzer: Analyzer::new(&analysis),
            bank: bank.ok().filter(|_| !modes.is_empty()),
            rng: Rng::new(seed),
            unread: 1 << 32,
        }
    }

    /// Let an epoch go by for a tenant that has that quota.
    pub fn epoch(&mut self, doing: &Doing, quota: u32) -> Option<Findings> {
        let (requests, writes) = match *doing {
            Doing::Gone | Doing::Idle => return None,
            Doing::Nothing => (0, 0),
            Doing::Scan { requests, writes }
            | Doing::Loop { requests, writes, .. }
            | Doing::Random { requests, writes, .. } => (requests, writes),
        };
        let mut at = 0;
        for request in 0..requests {
            let len = 1 + self.rng.below(8);
            let first = self.place(doing, &mut at, len);
            let op = if self.rng.below(writes) == 0 && writes > 0 { Op::Write } else { Op::Read };
            self.observe(op, first..first + len);
            if request % 64 == 63 {
                self.analyzer.observe(Op::Populate, 0..0);
            }
        }
        Some(self.findings(quota))
    }

    /// Where the next request begins.
    fn place(&mut self, doing: &Doing, at: &mut u64, len: u64) -> u64 {
        match *doing {
            Doing::Loop { blocks, .. } => {
                *at = (*at + len) % blocks.max(1);
                *at
            }
            Doing::Random { blocks, .. } => match self.rng.below(2) {
                0 => self.rng.below(blocks / 10),
                _ => self.rng.below(blocks),
            },
            _ => {
                self.unread += len;
                self.unread - len
            }
        }
    }

    fn observe(&mut self, op: Op, keys: std::ops::Range<u64>) {
        self.analyzer.observe(op, keys.clone());
        if let Some(bank) = &mut self.bank {
            bank.observe(op, keys, true);
        }
    }

    fn findings(&mut self, quota: u32) -> Findings {
        let curves = self.analyzer.curves();
        let bank = self.bank.as_mut().map(|bank| {
            let curves = bank.curves();
            bank.fade(0.0);
            curves
        });
        let epoch = self.analyzer.finish_epoch();
        let latencies = self.latencies();
        let resident = epoch.footprint_blocks.min(quota.into());
        let usage = CacheUse {
            resident_blocks: resident as u32,
            effective: (resident > 0).then(|| self.rng.unit()),
            missed_blocks: self.rng.below(epoch.accesses + 1),
        };
        Findings {
            measured: self.measured(epoch.requests, &latencies),
            measured_seconds: 0.0,
            since_decision: None,
            epoch,
            seconds: 1.0 + self.rng.unit() * 600.0,
            curves,
            bank: bank.unwrap_or_default(),
            latencies,
            usage,
            held_at_price: (self.rng.below(2) == 0).then(|| self.rng.below(CACHE_MAX.into()) as u32),
            sampled: if self.rng.below(2) == 0 { 0.0 } else { self.rng.unit() },
        }
    }

    /// Each from 10 µs to 10 ms, in no order.
    fn latencies(&mut self) -> Latencies {
        let mut latency = || 1e-5 * 1000f64.powf(self.rng.unit());
        Latencies {
            read_hit: latency(),
            read_miss: latency(),
            cached_write: latency(),
            backing_write: latency(),
            write_back: latency() / 10.0,
        }
    }

    /// So many requests, cut anyhow into the four kinds.
    fn measured(&mut self, requests: u64, latencies: &Latencies) -> Measured {
        let mut left = requests;
        let mut some = |latency: f64, all: bool| {
            let count = if all { left } else { self.rng.below(left + 1) };
            left -= count;
            Timed { count, seconds: count as f64 * latency }
        };
        Measured {
            read_hits: some(latencies.read_hit, false),
            read_misses: some(latencies.read_miss, false),
            cached_writes: some(latencies.cached_write, false),
            backing_writes: some(latencies.backing_write, true),
            write_backs: Timed { count: requests, seconds: requests as f64 * latencies.write_back },
            ssd_blocks_written: requests,
        }
    }
}

/// Up to five tenants, for up to twelve epochs.
pub(super) fn worlds() -> impl Strategy<Value = World> {
    let members = proptest::collection::vec(member(), 1..6).prop_map(|mut members| {
        let names = ["a", "b", "c", "d", "e"];
        members.iter_mut().zip(names).for_each(|(member, name)| member.name = name);
        members
    });
    (constraints(), members).prop_flat_map(|(constraints, members)| {
        let epoch = proptest::collection::vec(doing(), members.len());
        proptest::collection::vec(epoch, 1..13).prop_map(move |epochs| World {
            constraints,
            members: members.clone(),
            epochs,
        })
    })
}

fn constraints() -> impl Strategy<Value = Constraints> {
    let objectives =
        [Objective::TotalMisses, Objective::MeanLatency, Objective::SumOfLatencies, Objective::Iops];
    (
        prop_oneof![1 => Just(0), 1 => 1u32..8, 8 => 8..CACHE_MAX],
        any::<bool>(),
        proptest::option::of(0.0..100.0),
        select(objectives.to_vec()),
        1.0..1000.0,
    )
        .prop_map(|(cache_blocks, write_back, ssd_writes_per_second, objective, epoch_seconds)| {
            Constraints {
                cache_blocks,
                write_back,
                ssd_writes_per_second,
                objective,
                epoch_seconds,
                ..Constraints::default()
            }
        })
}

fn member() -> impl Strategy<Value = Member> {
    let policies = [WritePolicy::WriteThrough, WritePolicy::ReadOnly].map(ConfiguredPolicy::Fixed);
    let policy = prop_oneof![4 => Just(ConfiguredPolicy::Auto), 1 => select(policies.to_vec())];
    let quota = proptest::option::weighted(0.3, 0..CACHE_MAX / 3);
    let min = prop_oneof![3 => 0..CACHE_MAX / 4, 1 => 0..CACHE_MAX * 2];
    (any::<u64>(), policy, quota, min, goals()).prop_map(
        |(seed, policy, quota_blocks, min_blocks, mut goals)| {
            goals.max_blocks = goals.max_blocks.map(|max| max.max(min_blocks));
            Member { name: "", seed, policy, quota_blocks, min_blocks, goals }
        },
    )
}

fn goals() -> impl Strategy<Value = Goals> {
    let reservation =
        prop_oneof![(1e-5..1e-2).prop_map(Reservation::Latency), (1.0..1e4).prop_map(Reservation::Iops)];
    let max_blocks = proptest::option::weighted(0.3, 0..CACHE_MAX);
    (
        0.1..10.0,
        proptest::option::weighted(0.15, 0.1..10.0),
        proptest::option::weighted(0.2, reservation),
        max_blocks,
    )
        .prop_map(|(weight, share, reservation, max_blocks)| Goals {
            weight,
            share,
            reservation,
            max_blocks,
        })
}

fn doing() -> impl Strategy<Value = Doing> {
    let blocks = 1..u64::from(CACHE_MAX) * 2;
    prop_oneof![
        1 => Just(Doing::Gone),
        1 => Just(Doing::Idle),
        1 => Just(Doing::Nothing),
        2 => (1u64..300, 0u64..4).prop_map(|(requests, writes)| Doing::Scan { requests, writes }),
        4 => (1u64..300, 0u64..4, blocks.clone())
            .prop_map(|(requests, writes, blocks)| Doing::Loop { requests, writes, blocks }),
        4 => (1u64..300, 0u64..4, blocks)
            .prop_map(|(requests, writes, blocks)| Doing::Random { requests, writes, blocks }),
    ]
}
