//! Menus held against requests counted by hand, and against caches that are simulated block by block.

use super::*;
use larder_locality::{
    Analyzer, AnalyzerConfig, Counted, CurvePolicy, EpochFindings, Op, Sampling, SizeCurve,
};
use larder_policy::spec::{AdmissionSpec, PolicySpec};
use proptest::prelude::*;

/// Powers, so that no sum can be mistaken for another.
const LATENCIES: Latencies =
    Latencies { read_hit: 1.0, read_miss: 10.0, cached_write: 100.0, backing_write: 1000.0, write_back: 0.0 };

/// A request: what it does, its first block and its blocks.
type Request = (Op, u64, u64);

/// What the analyzer finds in two seconds of requests, for every kind of curve.
fn findings(requests: &[Request]) -> Findings {
    let config = AnalyzerConfig {
        policies: CurvePolicy::ALL.to_vec(),
        sampling: Sampling::Exact,
        history_blocks: u64::MAX,
        seed: 7,
    };
    let mut analyzer = Analyzer::new(&config);
    for &(op, first, blocks) in requests {
        analyzer.observe(op, first..first + blocks);
    }
    let curves = analyzer.curves();
    Findings { seconds: 2.0, curves, latencies: LATENCIES, ..analyzer.finish_epoch().into() }
}

fn way(menu: &Menu, write: WritePolicy) -> &Way {
    menu.ways.iter().find(|way| way.mode.write == write).expect("it is on the menu")
}

/// Sum of latencies, SSD writes and requests that the SSD serves alone, of six requests in two seconds, by size from 0 on.
fn of_six(way: &Way, sizes: u64) -> Vec<(f64, f64, f64)> {
    let whole = |point: Point| {
        ((point.latency * 6.0).round(), point.ssd_writes * 2.0, (point.request_hit_ratio * 6.0).round())
    };
    (0..sizes).map(|blocks| whole(way.at(blocks))).collect()
}

/// Reads of blocks 1 and 2; of both in one request; a write of 2; reads of 2, then of 2 and 3 in one request.
#[test]
fn requests_are_counted_as_by_hand() {
    use Op::{Read, Write};
    let requests = [(Read, 1, 1), (Read, 2, 1), (Read, 1, 2), (Write, 2, 1), (Read, 2, 1), (Read, 2, 2)];
    let menu = Menu::of(&findings(&requests), true);
    assert_eq!(menu.requests_per_second, 3.0);
    assert_eq!(menu.ways.len(), 4);
    // Without a cache five reads miss and the write goes to the disk. One block has a hit in the read of 2 alone, and in
    // the first half of the last request, which misses all the same. Two blocks have hits in the reads of 1 and 2 too.
    // Written to the SSD: 7 blocks are read of which 0, 2, 4 are hits, and one is written.
    let none = (1050.0, 0.0, 0.0);
    let write_back = of_six(way(&menu, WritePolicy::WriteBack), 4);
    assert_eq!(write_back, [none, (141.0, 6.0, 2.0), (132.0, 4.0, 3.0), (132.0, 4.0, 3.0)]);
    let write_through = of_six(way(&menu, WritePolicy::WriteThrough), 4);
    assert_eq!(write_through, [none, (1041.0, 6.0, 1.0), (1032.0, 4.0, 2.0), (1032.0, 4.0, 2.0)]);
    // The write takes block 2 out: its next read misses and fills the cache again, the one after that hits in its
    // first half.
    let read_only = of_six(way(&menu, WritePolicy::ReadOnly), 4);
    assert_eq!(read_only, [none, (1050.0, 6.0, 0.0), (1041.0, 4.0, 1.0), (1041.0, 4.0, 1.0)]);
}

/// Where a cache of LRU begins to serve a loop of 30,000 blocks, by a sample, and the rate of that; `beside` each of its blocks one is read that never comes again.
fn begin_of_loop(seed: u64, beside: bool, margin: bool) -> (u64, f64) {
    let config = AnalyzerConfig {
        policies: vec![CurvePolicy::WriteBack],
        sampling: Sampling::Blocks(1024),
        history_blocks: u64::MAX,
        seed,
    };
    let mut analyzer = Analyzer::new(&config);
    for at in 0..90_000 {
        analyzer.observe(Op::Read, at % 30_000..at % 30_000 + 1);
        if beside {
            analyzer.observe(Op::Read, (1 << 20) + at..(1 << 20) + at + 1);
        }
    }
    let (curves, rate) = (analyzer.curves(), analyzer.rate());
    let sampled = if margin { rate } else { 0.0 };
    let found = Findings { curves, sampled, latencies: LATENCIES, ..Findings::from(analyzer.finish_epoch()) };
    let menu = Menu::of(&found, true);
    let points = &way(&menu, WritePolicy::WriteBack).points;
    assert!(points.is_sorted_by(|a, b| a.blocks < b.blocks && a.latency >= b.latency), "{points:?}");
    let most = points.last().expect("there is one").request_hit_ratio;
    let begin = points.iter().find(|point| point.request_hit_ratio > most / 2.0).expect("it is served");
    (begin.blocks, rate)
}

#[test]
fn a_loop_has_room_for_what_a_sample_does_not_tell() {
    for (beside, blocks_needed) in [(false, 30_000), (true, 60_000)] {
        let fits =
            |margin| (0..40).filter(|&seed| begin_of_loop(seed, beside, margin).0 >= blocks_needed).count();
        // Without a margin it is a matter of chance, at best.
        assert!(fits(false) < 30, "{beside}: {}", fits(false));
        assert!(fits(true) > 36, "{beside}: {}", fits(true));
        let (blocks, rate) = begin_of_loop(0, beside, true);
        let deviation = (blocks_needed as f64 / rate).sqrt();
        assert!((blocks as f64) < blocks_needed as f64 + 5.0 * deviation, "{blocks}: no more than it takes");
    }
}

#[test]
fn the_smallest_partition_is_on_the_menu_whatever_a_sample_says() {
    let config = AnalyzerConfig {
        policies: vec![CurvePolicy::WriteBack],
        sampling: Sampling::Blocks(64),
        history_blocks: u64::MAX,
        seed: 1,
    };
    let mut analyzer = Analyzer::new(&config);
    // Each block in four requests, so that most of them hit with one block.
    (0..400_000).for_each(|at| analyzer.observe(Op::Read, at / 4..at / 4 + 1));
    let (curves, sampled) = (analyzer.curves(), analyzer.rate());
    let found = Findings { curves, sampled, latencies: LATENCIES, ..Findings::from(analyzer.finish_epoch()) };
    let menu = Menu::of(&found, true);
    let one = way(&menu, WritePolicy::WriteBack).at(1);
    assert!(one.blocks == 1 && one.request_hit_ratio > 0.5, "{one:?}");
}

#[test]
fn what_rises_by_and_by_is_taken_as_a_sample_tells_it() {
    let hits: Vec<(u64, u64)> = (1..=100).map(|at| (at * 100, 9)).collect();
    let counted = Counted {
        reads: 1000,
        requests: 1000,
        read_requests: 1000,
        read_hits: SizeCurve::rising(hits.clone()),
        request_hits: SizeCurve::rising(hits.clone()),
        read_request_hits: SizeCurve::rising(hits.clone()),
        ..Counted::default()
    };
    let curves = PolicyCurves::new(CurvePolicy::WriteBack, counted);
    let sizes = hits.iter().map(|&(blocks, _)| blocks);
    assert!(sizes.clone().all(|blocks| beyond_cliff(&curves, 0.5, blocks) == blocks));
    assert_eq!(beyond_cliff(&curves, 0.0, 0), 0);
}

#[test]
fn without_write_back_nothing_is_held_dirty() {
    let mut found = findings(&[(Op::Write, 1, 1)]);
    let caching = CachingSpec::default();
    let bank =
        WritePolicy::ALL.map(|write| BankCurve { caching, write, points: vec![(1, Counters::default())] });
    found.bank = bank.to_vec();
    let writes = |write_back| -> Vec<_> {
        Menu::of(&found, write_back).ways.iter().map(|way| way.mode.write).collect()
    };
    use WritePolicy::{ReadOnly, WriteBack, WriteOnly, WriteThrough, WriteThroughNoAllocate};
    let safe = [WriteThrough, WriteThroughNoAllocate, ReadOnly];
    assert_eq!(writes(false), [safe, safe].concat());
    let all = [WriteBack, WriteThrough, WriteThroughNoAllocate, ReadOnly];
    assert_eq!(writes(true), [&all[..], &all, &[WriteOnly]].concat());
}

/// Half the writes were admitted; of those a quarter were written back on eviction, which nobody waits for.
#[test]
fn a_bank_is_told_by_its_points_and_lines_between_them() {
    let caching = CachingSpec::new(PolicySpec::Lru, AdmissionSpec::Larc).expect("LRU stands behind anything");
    let counters = |read_request_hits, fills, guest_writes, dirty_evictions| Counters {
        requests: 100,
        request_hits: read_request_hits,
        read_requests: 60,
        read_request_hits,
        block_reads: 120,
        block_writes: 80,
        read_hits: read_request_hits * 2,
        fills,
        guest_writes,
        dirty_evictions,
        backing_writes: 80 - guest_writes + dirty_evictions,
        ..Counters::default()
    };
    let points = vec![(16, counters(20, 30, 40, 10)), (20, counters(40, 10, 80, 0))];
    let bank = vec![BankCurve { caching, write: WritePolicy::WriteBack, points }];
    let found = Findings { seconds: 10.0, bank, latencies: LATENCIES, ..EpochFindings::default().into() };
    let menu = Menu::of(&found, true);
    let [way] = &menu.ways[..] else { panic!("one way of the bank") };
    assert_eq!(way.mode, Mode { caching, write: WritePolicy::WriteBack });

    let blocks: Vec<_> = way.points.iter().map(|point| point.blocks).collect();
    assert_eq!(blocks, [0, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18, 19, 20]);
    // No cache: 60 reads and 40 writes wait for the disk. 16 blocks: 20 + 40 reads, 20 + 20 writes. 20 blocks: all writes
    // are cached.
    let totals = |blocks| {
        let point = way.at(blocks);
        ((point.latency * 100.0).round(), point.ssd_writes * 10.0, (point.request_hit_ratio * 100.0).round())
    };
    assert_eq!(totals(0), (40_600.0, 0.0, 0.0));
    assert_eq!(totals(16), (22_420.0, 70.0, 40.0));
    assert_eq!(totals(20), (4240.0, 90.0, 80.0));
    assert_eq!(totals(8), ((40_600.0 + 22_420.0) / 2.0, 35.0, 20.0));
    assert_eq!(totals(18), ((22_420.0 + 4240.0) / 2.0, 80.0, 60.0));
    assert_eq!((totals(9), totals(1000)), (totals(8), totals(20)));
}

/// 16 blocks hit 20 of 100 reads and fill 80; 8 hit 10 in their place, and 1 hits nothing: all else is filled.
#[test]
fn a_small_cache_is_written_whatever_misses() {
    let counters = Counters {
        requests: 100,
        read_requests: 100,
        read_request_hits: 20,
        block_reads: 100,
        read_hits: 20,
        fills: 80,
        backing_reads: 80,
        ..Counters::default()
    };
    let (caching, write) = (CachingSpec::default(), WritePolicy::WriteBack);
    let writes = |counters| {
        let bank = vec![BankCurve { caching, write, points: vec![(16, counters)] }];
        let found = Findings { seconds: 10.0, bank, ..EpochFindings::default().into() };
        let menu = Menu::of(&found, true);
        [0, 1, 8, 16].map(|blocks| menu.ways[0].at(blocks).ssd_writes)
    };
    assert_eq!(writes(counters), [0.0, 10.0, 9.0, 8.0]);
    // Of one that lets in a half, nothing is known but that no cache is written nothing.
    assert_eq!(writes(Counters { fills: 40, ..counters }), [0.0, 0.0, 2.0, 4.0]);
}

#[test]
fn a_bank_without_points_is_no_way() {
    let bank =
        vec![BankCurve { caching: CachingSpec::default(), write: WritePolicy::WriteBack, points: vec![] }];
    let found = Findings { bank, ..EpochFindings::default().into() };
    assert_eq!(Menu::of(&found, true), Menu::default());
}

/// 5,000 steps of one hit each.
#[test]
fn a_long_curve_is_thinned_and_keeps_its_ends() {
    let hits = SizeCurve::rising((1..=5000).map(|step| (step * 3, 1)));
    let counted = Counted {
        reads: 5000,
        requests: 5000,
        read_requests: 5000,
        read_hits: hits.clone(),
        request_hits: hits.clone(),
        read_request_hits: hits,
        ..Counted::default()
    };
    let curves = vec![PolicyCurves::new(CurvePolicy::ReadOnly, counted)];
    let found = Findings { seconds: 1.0, curves, latencies: LATENCIES, ..EpochFindings::default().into() };
    let points = &Menu::of(&found, true).ways[0].points;
    assert!((POINTS_MAX / 2..=POINTS_MAX).contains(&points.len()), "{} points", points.len());
    assert_eq!((points[0].blocks, points[0].latency), (0, 10.0));
    assert_eq!(
        points.last().map(|point| (point.blocks, point.latency, point.ssd_writes)),
        Some((15_000, 1.0, 0.0))
    );
    assert!(points[1..].iter().all(|point| point.ssd_writes == 5000.0 - (point.blocks / 3) as f64));
    assert!(points.windows(2).all(|pair| pair[0].blocks < pair[1].blocks));
}

/// An LRU cache as a list, the most recent block first.
struct List {
    write: WritePolicy,
    capacity: usize,
    blocks: Vec<u64>,
    ssd_writes: u64,
}

impl List {
    /// True where the block was a hit.
    fn access(&mut self, op: Op, block: u64) -> bool {
        let resident = self.blocks.contains(&block);
        self.blocks.retain(|&other| other != block);
        let write = op == Op::Write;
        let stays = match self.write {
            WritePolicy::ReadOnly => !write,
            WritePolicy::WriteThroughNoAllocate => !write || resident,
            _ => true,
        };
        if stays && self.capacity > 0 {
            self.blocks.insert(0, block);
            self.blocks.truncate(self.capacity);
            self.ssd_writes += u64::from(write || !resident);
        }
        resident && !(write && self.write == WritePolicy::ReadOnly)
    }

    /// What the requests would take, and how many the SSD would serve alone.
    fn run(&mut self, requests: &[Request]) -> (f64, u64) {
        let (mut seconds, mut hits) = (0.0, 0);
        for &(op, first, blocks) in requests {
            let misses = (first..first + blocks).filter(|&block| !self.access(op, block)).count();
            let hit = misses == 0;
            let cached = self.write == WritePolicy::WriteBack && self.capacity > 0;
            hits += u64::from(if op == Op::Read { hit } else { cached });
            seconds += match op {
                Op::Read if hit => LATENCIES.read_hit,
                Op::Read => LATENCIES.read_miss,
                _ if cached => LATENCIES.cached_write,
                _ => LATENCIES.backing_write,
            };
        }
        (seconds, hits)
    }
}

fn request() -> impl Strategy<Value = Request> {
    (prop_oneof![Just(Op::Read), Just(Op::Write)], 0u64..12, 1u64..4)
}

proptest! {
    #[test]
    fn every_size_does_what_a_cache_of_that_size_does(requests in proptest::collection::vec(request(), 1..80)) {
        let menu = Menu::of(&findings(&requests), true);
        let count = requests.len() as f64;
        for way in &menu.ways {
            for capacity in 0..18 {
                let mut list = List { write: way.mode.write, capacity, blocks: vec![], ssd_writes: 0 };
                let (seconds, hits) = list.run(&requests);
                let point = way.at(capacity as u64);
                prop_assert!((point.latency - seconds / count).abs() < 1e-9, "{way:?} of {capacity}: {seconds}");
                prop_assert_eq!(point.request_hit_ratio, hits as f64 / count);
                prop_assert_eq!(point.ssd_writes, list.ssd_writes as f64 / 2.0, "{:?} of {}", way.mode, capacity);
            }
        }
    }
}
