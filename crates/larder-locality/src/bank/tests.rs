use larder_policy::trial::Counters;
use proptest::prelude::*;

use super::estimate::Tally;
use super::*;
use crate::lane::naive::{Request, requests, simulate};
use crate::{AtSize, CurvePolicy};

fn kind(policy: &str, write: WritePolicy) -> (CachingSpec, WritePolicy) {
    (policy.parse().expect("a policy"), write)
}

fn bank(kinds: &[(CachingSpec, WritePolicy)], reach: Reach, sample: u32) -> Bank {
    Bank::new(kinds, reach, sample, 7).expect("kinds that can be")
}

fn feed(bank: &mut Bank, requests: &[Request]) {
    for (at, (op, blocks)) in requests.iter().enumerate() {
        let keys: Vec<u64> = blocks.iter().map(|&block| block.into()).collect();
        // Some requests come in two parts.
        let (first, second) = keys.split_at(if at % 3 == 0 { keys.len() / 2 } else { 0 });
        if !first.is_empty() {
            bank.observe(*op, first.iter().copied(), false);
        }
        bank.observe(*op, second.iter().copied(), true);
    }
}

/// Reads and writes of one block each that come back, half of them to a tenth of the blocks.
fn skewed(count: u64, blocks: u64) -> impl Iterator<Item = (Op, u64)> {
    let mut rng = larder_policy::Rng::new(3);
    (0..count).map(move |_| {
        let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
        let among = if rng.below(2) == 0 { blocks / 10 } else { blocks };
        (op, rng.below(among))
    })
}

proptest! {
    /// Where all blocks are sampled, a bank is a simulation.
    #[test]
    fn nothing_is_estimated_where_all_is_sampled(
        requests in requests(&[Op::Read, Op::Write, Op::Discard], 16, 150), most in 1u64..14,
    ) {
        for policy in CurvePolicy::ALL {
            let Some(write) = policy.write_policy() else { continue };
            let mut bank = bank(&[kind("lru", write)], Reach::Blocks(most), 1000);
            feed(&mut bank, &requests);
            let curve = bank.curves().swap_remove(0);
            prop_assert_eq!(curve.points.len(), 1);
            let (blocks, counters) = &curve.points[0];
            prop_assert_eq!(*blocks, most);
            prop_assert_eq!(AtSize::from(counters), simulate(policy, most as usize, &requests));
        }
    }

    /// What is known exactly is told exactly, whatever is sampled, and parts add up.
    #[test]
    fn totals_are_exact(
        requests in requests(&[Op::Read, Op::Write, Op::Discard], 2000, 600), size in 256u64..100_000, footprint in any::<bool>(),
    ) {
        let kinds = WritePolicy::ALL.map(|write| kind("larc", write));
        let reach = if footprint { Reach::Footprint } else { Reach::Blocks(size) };
        let mut bank = bank(&kinds, reach, 256);
        feed(&mut bank, &requests);
        let count = |op| requests.iter().filter(|request| request.0 == op).count() as u64;
        let blocks = |op| requests.iter().filter(|request| request.0 == op).map(|request| request.1.len() as u64).sum::<u64>();
        for (curve, write) in bank.curves().iter().zip(WritePolicy::ALL) {
            for (_, c) in &curve.points {
                prop_assert_eq!((c.block_reads, c.block_writes), (blocks(Op::Read), blocks(Op::Write)));
                prop_assert_eq!((c.read_requests, c.requests), (count(Op::Read), count(Op::Read) + count(Op::Write)));
                prop_assert_eq!(c.discards, count(Op::Discard));
                prop_assert_eq!(c.read_hits + c.backing_reads, c.block_reads);
                prop_assert!(c.fills <= c.backing_reads && c.write_hits <= c.guest_writes && c.guest_writes <= c.block_writes);
                prop_assert!(c.request_hits <= c.requests && c.read_request_hits <= c.read_requests);
                prop_assert!(write != WritePolicy::ReadOnly || (c.write_hits, c.guest_writes, c.backing_writes) == (0, 0, c.block_writes));
            }
            prop_assert!(curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}

/// The rate falls as the footprint grows; the sizes follow, and memory does not.
#[test]
fn the_sample_stays_small() {
    let mut bank = bank(&[kind("arc", WritePolicy::WriteBack)], Reach::Footprint, 1024);
    (0..4000).for_each(|key| bank.observe(Op::Read, [key], true));
    let memory = bank.memory_bytes();
    (4000..400_000).for_each(|key| bank.observe(Op::Read, [key], true));
    assert!(bank.memory_bytes() < memory * 3 / 2, "{} after {memory}", bank.memory_bytes());
    // From 1,024 of 400,000 down to a step less, and some chance.
    assert!((0.0015..0.0029).contains(&bank.rate()), "{}", bank.rate());
    let points = bank.curves().swap_remove(0).points;
    let (largest, counters) = points.last().expect("there are sizes");
    assert!((350_000..700_000).contains(largest), "{largest}");
    assert_eq!((counters.read_hits, counters.fills), (0, 400_000));
    assert_eq!(points.len(), 5);
}

/// A rate that was lowered step by step comes to the same as one that was so from the start.
#[test]
fn sizes_keep_their_meaning_while_the_rate_falls() {
    for policy in ["lru", "arc", "larc", "s3-fifo", "2q", "lirs"] {
        let kinds = [kind(policy, WritePolicy::WriteBack)];
        let mut growing = bank(&kinds, Reach::Footprint, 4096);
        skewed(300_000, 50_000).for_each(|(op, key)| growing.observe(op, [key], true));
        let points = growing.curves().swap_remove(0).points;
        let (largest, _) = *points.last().expect("there are sizes");
        let mut fixed = bank(&kinds, Reach::Blocks(largest), 4096);
        skewed(300_000, 50_000).for_each(|(op, key)| fixed.observe(op, [key], true));
        assert!((growing.rate() / fixed.rate() - 1.0).abs() < 0.001);
        for ((blocks, grown), (same, direct)) in points.iter().zip(&fixed.curves()[0].points) {
            assert!(blocks.abs_diff(*same) <= 1, "{blocks} and {same}");
            let share = |counters: &Counters| (counters.read_hits + counters.write_hits) as f64 / 300_000.0;
            let (grown, direct) = (share(grown), share(direct));
            assert!((grown - direct).abs() < 0.01, "{policy}, {blocks} blocks: {grown} and {direct}");
        }
    }
}

/// One block has half of the reads. In the sample it would count for many, outside for none; either way half of the reads hit.
#[test]
fn a_hot_block_counts_for_itself() {
    for seed in 0..6 {
        let kinds = [kind("lru", WritePolicy::WriteThrough)];
        let mut bank = Bank::new(&kinds, Reach::Blocks(20_000), 1024, seed).expect("kinds that can be");
        for (at, (_, key)) in skewed(200_000, 100_000).enumerate() {
            bank.observe(Op::Read, [if at % 2 == 0 { u64::MAX / 3 } else { key }], true);
        }
        let curve = bank.curves().swap_remove(0);
        // 5,000 blocks, of 100,000 to which half of the other accesses go, and a tenth of which the others have too.
        let (blocks, counters) = curve.points[curve.points.len() - 5];
        assert_eq!(blocks, 5000);
        let ratio = counters.read_hits as f64 / 200_000.0;
        assert!((0.53..0.60).contains(&ratio), "seed {seed}: {ratio}");
    }
}

#[test]
fn a_request_hits_if_its_sampled_blocks_do() {
    let mut bank = bank(&[kind("lru", WritePolicy::WriteThrough)], Reach::Blocks(100_000), 4096);
    for _ in 0..3 {
        (0..2000u64).for_each(|at| bank.observe(Op::Read, at * 8..at * 8 + 8, true));
    }
    let counters = bank.curves()[0].points.last().expect("there are sizes").1;
    assert_eq!((counters.requests, counters.block_reads), (6000, 48_000));
    // Two of three passes hit.
    assert!(counters.read_hits.abs_diff(32_000) < 480, "{counters:?}");
    assert!(counters.request_hits.abs_diff(4000) < 60, "{counters:?}");
}

#[test]
fn what_was_counted_fades() {
    let kinds = [kind("lru", WritePolicy::WriteBack)];
    let mut bank = bank(&kinds, Reach::Blocks(300), 1000);
    (0..200).chain(0..200).for_each(|key| bank.observe(Op::Write, [key], true));
    bank.fade(0.5);
    let half = bank.curves()[0].points[0].1;
    assert_eq!((half.requests, half.block_writes, half.write_hits, half.guest_writes), (200, 200, 100, 200));
    bank.fade(0.0);
    assert_eq!(bank.curves()[0].points[0].1, Counters::default());
    // The cache is as it was.
    bank.observe(Op::Write, [0], true);
    assert_eq!(bank.curves()[0].points[0].1.write_hits, 1);
}

#[test]
fn an_empty_bank_has_flat_curves() {
    let kinds = [kind("larc", WritePolicy::ReadOnly)];
    for reach in [Reach::Footprint, Reach::Blocks(1 << 40)] {
        let curve = bank(&kinds, reach, 1024).curves().swap_remove(0);
        assert_eq!(curve.points.len(), 5);
        assert!(curve.points.iter().all(|&(_, counters)| counters == Counters::default()));
    }
    assert!(bank(&kinds, Reach::Blocks(0), 1024).curves()[0].points.is_empty());
    assert!(bank(&[], Reach::Footprint, 1024).curves().is_empty());
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |policy, sample| {
        Bank::new(&[kind(policy, WritePolicy::WriteBack)], Reach::Footprint, sample, 1).err()
    };
    assert_eq!(error("lru", MINI_BLOCKS_MIN), None);
    assert_eq!(error("lru", MINI_BLOCKS_MIN - 1), Some(BankError::Sample(255)));
    assert_eq!(error("lru", SAMPLE_BLOCKS_MAX + 1), Some(BankError::Sample(SAMPLE_BLOCKS_MAX + 1)));
    assert_eq!(error("belady", 1024), Some(BankError::Future(PolicySpec::Belady)));
}

/// Accesses none of which is sampled are to few blocks.
#[test]
fn what_is_not_sampled_is_hot() {
    let mut totals = Totals::default();
    (0..3).for_each(|_| totals.accesses(Action::Read, 10));
    totals.accesses(Action::Write, 10);
    let of = |write| Tally::default().estimate(&totals, write);
    let kept = of(WritePolicy::WriteThrough);
    assert_eq!((kept.read_hits, kept.write_hits, kept.fills, kept.backing_reads), (30, 10, 0, 0));
    let invalidated = of(WritePolicy::ReadOnly);
    assert_eq!((invalidated.read_hits, invalidated.write_hits), (23, 0));
    assert_eq!((invalidated.fills, invalidated.backing_reads, invalidated.guest_writes), (7, 7, 0));
}
