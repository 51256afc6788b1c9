//! ECI-Cache's algorithms, line by line, on a case worked by hand. Lines are those of Algorithm 1; Algorithm 4 is the same
//! in more words.

use super::*;
use crate::fixtures::{quotas, tenant};
use crate::{Latencies, WritePolicy};
use WritePolicy::{ReadOnly, WriteBack};
use larder_locality::{Analyzer, AnalyzerConfig, ClassCounts, CurvePolicy, Op, Sampling};

/// Twelve accesses, `r` for a read and `w` for a write. Useful are three reads of block 1 with one other block in between, and
/// two (of 3 and of 4) with three in between: the URD is 3. The last write of block 1 has four in between, but is WAR.
const FIRST: &str = "r1 r2 r1 w3 r1 r4 r1 w2 r3 r4 w5 w1";

/// Ten accesses. Useful are the reads of 1 and of 2, each with two other blocks in between: the URD is 2. Three writes are
/// WAW and two are WAR.
const SECOND: &str = "w1 w1 w2 w1 w2 r3 w3 r1 r2 w1";

/// Lines 1 to 4: an interval passes, the trace is extracted, and `calculateURD` finds the distances in it. A read takes
/// 0.1 ms on the SSD and 6 on the disk, a write 3 on the disk.
fn interval(trace: &str) -> Findings {
    let config = AnalyzerConfig {
        policies: vec![CurvePolicy::WriteThrough],
        sampling: Sampling::Exact,
        history_blocks: u64::MAX,
        seed: 0,
    };
    let mut analyzer = Analyzer::new(&config);
    for access in trace.split(' ') {
        let (op, block) = access.split_at(1);
        let block = block.parse().expect("a number follows the letter");
        analyzer.observe(if op == "r" { Op::Read } else { Op::Write }, block..block + 1);
    }
    let latencies = Latencies {
        read_hit: 1e-4,
        read_miss: 6e-3,
        cached_write: 1e-4,
        backing_write: 3e-3,
        write_back: 0.0,
    };
    Findings { latencies, ..analyzer.finish_epoch().into() }
}

/// The decisions for both, with a c_min of one block.
fn decide(findings: &[Findings; 2], cache_blocks: u32) -> Vec<Decision> {
    let tenants = [("first", 0), ("second", 1)]
        .map(|(name, at)| Tenant { min_blocks: 1, ..tenant(name, Some(&findings[at])) });
    Eci.allocate(&tenants, &Constraints { cache_blocks, ..Constraints::default() })
        .expect("eci always decides")
}

#[test]
fn the_traces_are_what_they_are_said_to_be() {
    let [first, second] = [FIRST, SECOND].map(|trace| interval(trace).epoch);
    assert_eq!(first.classes, ClassCounts { cr: 3, cw: 2, rar: 4, raw: 1, war: 2, waw: 0 });
    assert_eq!(second.classes, ClassCounts { cr: 1, cw: 2, rar: 0, raw: 2, war: 2, waw: 3 });
    // Line 4, URD[i] = calculateURD(VM[i]): of RAR and RAW alone; the traditional distance of the first is longer.
    assert_eq!((first.urd_max, first.trd_max, second.urd_max), (Some(3), Some(4), Some(2)));
    // Algorithm 2: 3 of 12 accesses from two blocks on, 5 of 12 from four on.
    let ratios = [0, 1, 2, 3, 4, 9].map(|blocks| first.hit_curve().ratio(blocks));
    assert_eq!(ratios, [0.0, 0.0, 0.25, 0.25, 5.0 / 12.0, 5.0 / 12.0]);
}

#[test]
fn algorithm_1_where_the_sizes_are_feasible() {
    let findings = [interval(FIRST), interval(SECOND)];
    // Line 5, size_urd: distances 3 and 2 are caches of 4 and 3 blocks. Line 6: csum = 4 + 3 = 7.
    // Line 8, 7 <= 7, and line 9: c_eff = size_urd. Line 15: so it is allocated.
    assert_eq!(quotas(&decide(&findings, 7)), [4, 3]);
    // 7 <= 1000 just as well, and the rest stays free.
    assert_eq!(quotas(&decide(&findings, 1000)), [4, 3]);
}

/// Lines 24 to 43: every pair of sizes from `lowerBound` to `upperBound` that fits the cache, and `ObjectiveFunction` of each.
/// In microseconds a block of `diff` weighs less than the smallest difference in latency.
fn by_objective_function(findings: &[Findings; 2], cache: u64) -> Vec<u32> {
    let (t_ssd, t_hdd) = (100.0, 6000.0);
    let objective = |c: [u64; 2]| {
        let h = [0, 1].map(|at| findings[at].epoch.hit_curve().ratio(c[at])); // 36: h[i] = H_i(c[i])
        let hsum = h[0] + h[1]; // 37
        let csum = c[0] + c[1]; // 38
        let diff = (cache - csum) as f64; // 40: diff = C - csum
        diff + hsum * t_ssd + (2.0 - hsum) * t_hdd // 41
    };
    // 27: lowerBound = {c_min, c_min}; 28: upperBound = {size_urd[1], size_urd[2]}
    let pairs = (1..=4).flat_map(|first| (1..=3).map(move |second| [first, second]));
    let fitting = pairs.filter(|c| c[0] + c[1] <= cache);
    let best = fitting.min_by(|a, b| objective(*a).total_cmp(&objective(*b)));
    best.expect("the least sizes fit").map(|blocks| blocks as u32).to_vec()
}

#[test]
fn algorithm_1_where_the_sizes_are_infeasible() {
    let findings = [interval(FIRST), interval(SECOND)];
    // Line 11, csum = 7 > C, lines 12 and 13: calculateEffSize. By hand:
    // C = 6: (4, 2) has hit ratios of 0.42 + 0, (3, 3) and (2, 3) have 0.25 + 0.20; (3, 3) leaves nothing unused.
    assert_eq!(quotas(&decide(&findings, 6)), [3, 3]);
    // C = 5: (4, 1) has 0.42, (2, 3) has 0.45.
    assert_eq!(quotas(&decide(&findings, 5)), [2, 3]);
    // C = 4: (1, 3) has 0.20, (2, 2) and (3, 1) have 0.25: either is the best.
    assert_eq!(quotas(&decide(&findings, 4)), [3, 1]);
    // C = 3 and 2: what is left above c_min.
    assert_eq!(quotas(&decide(&findings, 3)), [2, 1]);
    assert_eq!(quotas(&decide(&findings, 2)), [1, 1]);
    for cache in [6, 5, 3, 2] {
        assert_eq!(
            quotas(&decide(&findings, cache)),
            by_objective_function(&findings, cache.into()),
            "{cache}"
        );
    }
}

#[test]
fn algorithm_3() {
    let policies = |traces: [&str; 2]| {
        let findings = traces.map(interval);
        decide(&findings, 7).iter().map(|decision| decision.mode.write).collect::<Vec<_>>()
    };
    // Line 1: set(P_eff, VM) = WB.
    assert_eq!(Eci.profile().mode.write, WriteBack);
    // Lines 3 and 4, writeRatio = (WAW + WAR) / requests: 2 of 12, and 5 of 10.
    // Lines 5 and 6: 0.17 < 0.50, WB remains; 0.50 >= 0.50, RO is set.
    assert_eq!(policies([FIRST, SECOND]), [WriteBack, ReadOnly]);
    // The next interval (lines 2 to 8 again), the text of section 5.2: it is re-assessed, and so taken back.
    assert_eq!(policies([SECOND, FIRST]), [ReadOnly, WriteBack]);
    assert_eq!(policies(["r1 r1 w2", "w1 w1 w1 r2"]), [WriteBack, ReadOnly]);
}

#[test]
fn what_equations_2_and_3_predict() {
    let findings = [interval(FIRST), interval(SECOND)];
    let rounded = |decision: &Decision| {
        let predicted = decision.predicted.expect("both were active");
        let microseconds = (predicted.latency * 1e6).round();
        (microseconds, (predicted.request_hit_ratio * 100.0).round(), predicted.ssd_writes_per_second)
    };
    // The first reads 8 of 12: T_hdd = (8 * 6 + 4 * 3) / 12 = 5 ms. 5/12 hits: 5/12 * 0.1 + 7/12 * 5 = 2.958 ms. In its one
    // second it writes CR + CW + WAR + WAW = 3 + 2 + 2 + 0.
    // The second reads 3 of 10: T_hdd = 3.9 ms. 2/10 hits: 0.02 + 3.12 = 3.14 ms. Under RO it writes CR = 1.
    let decisions = decide(&findings, 7);
    assert_eq!(rounded(&decisions[0]), (2958.0, 42.0, 7.0));
    assert_eq!(rounded(&decisions[1]), (3140.0, 20.0, 1.0));
    // With three blocks the first has 3/12 hits: 0.025 + 3.75 ms. Two more reads miss, and are written.
    assert_eq!(rounded(&decide(&findings, 6)[0]), (3775.0, 25.0, 9.0));
}
