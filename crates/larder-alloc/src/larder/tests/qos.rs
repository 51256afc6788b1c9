//! Reservations and shares.

use super::*;

fn reserved<'a>(name: &'a str, found: &'a Findings, reservation: Reservation) -> Tenant<'a> {
    let goals = Goals { reservation: Some(reservation), ..Goals::default() };
    Tenant { goals, ..tenant(name, Some(found)) }
}

fn with_share<'a>(name: &'a str, found: &'a Findings, share: f64) -> Tenant<'a> {
    Tenant { goals: Goals { share: Some(share), ..Goals::default() }, ..tenant(name, Some(found)) }
}

/// Hits over size like those of a skewed workload: half of them by a fifth of the blocks.
fn smooth(blocks: u64, reads: u64) -> Findings {
    let hits = |at: u64| (reads as f64 * (at as f64 / 200.0).powf(0.43)) as u64;
    let steps: Vec<_> = (1..=200).map(|at| (at * blocks / 200, hits(at) - hits(at - 1))).collect();
    epoch(&steps, reads, 0)
}

#[test]
fn a_latency_that_can_be_had_is_granted() {
    let (busy, quiet) = (epoch(&[(100, 9000)], 10_000, 0), epoch(&[(80, 500)], 1000, 0));
    // Half of the reads as hits take 2.55 ms in the mean.
    let quiet = reserved("quiet", &quiet, Reservation::Latency(2.6e-3));
    let decisions = decide(&[tenant("busy", Some(&busy)), quiet], &cache(100));
    assert!(latency(&decisions[1]) <= 2.6e-3);
    assert!(
        decisions[1].reason.contains("the reserved latency of 2.60 ms granted"),
        "{}",
        decisions[1].reason
    );
}

#[test]
fn one_that_cannot_is_refused_with_the_best_there_is() {
    let (busy, quiet) = (epoch(&[(100, 9000)], 10_000, 0), epoch(&[(80, 500)], 1000, 0));
    let wish = reserved("quiet", &quiet, Reservation::Latency(1e-3));
    let decisions = decide(&[tenant("busy", Some(&busy)), wish], &cache(100));
    assert!(decisions[0].quota_blocks == 100, "the rest goes on without it");
    let words = "the reserved latency of 1.00 ms refused: the best that can be had is 2.55 ms with 80 blocks";
    assert!(decisions[1].reason.contains(words), "{}", decisions[1].reason);
}

/// 120 blocks would do; there are 100, and 85 hold most of it.
#[test]
fn the_best_there_is_fits_the_cache() {
    let found = epoch(&[(85, 400), (120, 600)], 1000, 0);
    let decisions = decide(&[reserved("t", &found, Reservation::Latency(1e-3))], &cache(100));
    assert!(decisions[0].reason.contains("refused: the best that can be had is"), "{}", decisions[0].reason);
    assert!(decisions[0].reason.contains("with 85 blocks"), "{}", decisions[0].reason);
}

#[test]
fn the_first_of_two_that_exclude_each_other_is_granted() {
    let found = epoch(&[(80, 500)], 1000, 0);
    let both = ["a", "b"].map(|name| reserved(name, &found, Reservation::Latency(2.6e-3)));
    let decisions = decide(&both, &cache(100));
    assert!(decisions[0].reason.contains("granted") && decisions[0].quota_blocks >= 80);
    assert!(decisions[1].reason.contains("refused: beside"), "{}", decisions[1].reason);
}

/// 10 reads a second of 5 ms each, measured, are one that is outstanding all the time where 200 a second are.
#[test]
fn requests_per_second_are_promised_by_what_is_outstanding() {
    let mut found = epoch(&[(50, 10_000), (100, 10_000)], 20_000, 0);
    found.measured = Measured { read_misses: Timed { count: 20_000, seconds: 100.0 }, ..Measured::default() };
    // One is outstanding: 300 a second want a latency of 3.3 ms, which 50 blocks bring with 2.55 ms.
    let wish = reserved("t", &found, Reservation::Iops(300.0));
    let other = epoch(&[(50, 20_000)], 100_000, 0);
    let decisions = decide(&[wish, tenant("other", Some(&other))], &cache(100));
    assert_eq!(quotas(&decisions), [50, 50]);
    assert!(decisions[0].reason.contains("the reserved 300 IOPS granted"), "{}", decisions[0].reason);
}

/// 200 a second come by a clock, however fast they are served: 1,000 would want a latency of 1 ms, which they have.
#[test]
fn requests_that_nobody_asks_for_are_not_promised_for_ever() {
    let mut found = epoch(&[(50, 10_000), (100, 10_000)], 20_000, 0);
    found.measured = Measured { read_hits: Timed { count: 20_000, seconds: 2.0 }, ..Measured::default() };
    let (wish, other) =
        (reserved("t", &found, Reservation::Iops(1000.0)), epoch(&[(50, 20_000)], 100_000, 0));
    let tenants = [Tenant { quota_blocks: 100, ..wish }, tenant("other", Some(&other))];
    let constraints = Constraints { epoch_seconds: SECONDS, ..cache(100) };
    let mut larder = Larder::default();
    let mut decide = || larder.allocate(&tenants, &constraints).expect("decides");
    let granted = [decide(), decide()];
    assert!(granted.iter().all(|decisions| decisions[0].reason.contains("the reserved 1000 IOPS granted")));
    let refused = decide();
    for words in
        ["the reserved 1000 IOPS refused: it asks for no more than 200 IOPS", "tried again in 8 epochs"]
    {
        assert!(refused[0].reason.contains(words), "{}", refused[0].reason);
    }
    assert!(refused[1].quota_blocks >= 50, "what it does not need is the other's");
}

/// The partition is never filled, as where a budget of SSD writes lets nothing in: what is expected of it does not come.
#[test]
fn what_does_not_come_is_not_promised_for_ever() {
    let mut found = epoch(&[(50, 20_000)], 20_000, 0);
    found.measured = Measured { read_misses: Timed { count: 20_000, seconds: 100.0 }, ..Measured::default() };
    found.usage.resident_blocks = 1;
    for (reservation, came) in [
        (Reservation::Latency(1e-3), "the best that came was 5.00 ms"),
        (Reservation::Iops(300.0), "the best that came was 200 IOPS"),
    ] {
        let other = epoch(&[(80, 5000)], 100_000, 0);
        let tenants = [
            Tenant { quota_blocks: 50, ..reserved("t", &found, reservation) },
            tenant("other", Some(&other)),
        ];
        let constraints = Constraints { epoch_seconds: SECONDS, ..cache(100) };
        let mut larder = Larder::default();
        let mut decide = || larder.allocate(&tenants, &constraints).expect("decides")[0].reason.clone();
        let granted: Vec<String> = (0..5).map(|_| decide()).collect();
        assert!(granted.iter().all(|reason| reason.contains("granted")), "{granted:?}");
        let refused = decide();
        for words in ["refused: it was granted and did not come", came, "tried again in 8 epochs"] {
            assert!(refused.contains(words), "{refused}");
        }
        assert!(decide().contains("tried again in 7 epochs"));
    }
}

#[test]
fn latencies_keep_the_proportions_of_the_shares() {
    let (a, b, c) = (smooth(20_000, 10_000), smooth(40_000, 30_000), smooth(10_000, 5000));
    for (cache_blocks, shares) in
        [(20_000, [1.0, 2.0, 1.5]), (35_000, [1.0, 1.0, 1.0]), (30_000, [3.0, 1.0, 2.0])]
    {
        let tenants =
            [with_share("a", &a, shares[0]), with_share("b", &b, shares[1]), with_share("c", &c, shares[2])];
        let decisions = decide(&tenants, &cache(cache_blocks));
        assert_eq!(quotas(&decisions).iter().sum::<u32>(), cache_blocks);
        let scaled: Vec<f64> =
            decisions.iter().zip(shares).map(|(decision, share)| latency(decision) * share).collect();
        let (low, high) = (
            scaled.iter().fold(f64::INFINITY, |a, &b| a.min(b)),
            scaled.iter().fold(0.0, |a: f64, &b| a.max(b)),
        );
        assert!(high <= low * 1.05, "{scaled:?} of {cache_blocks}");
        // By the curves themselves, not only by what is predicted.
        for (decision, tenant) in decisions.iter().zip(&tenants) {
            let menu = crate::menu::Menu::of(tenant.findings.expect("all have"), true);
            let real = menu.ways[0].at(decision.quota_blocks.into()).latency;
            assert!((real / latency(decision) - 1.0).abs() < 0.05, "{real} for {}", latency(decision));
        }
    }
}

#[test]
fn what_forbids_a_share_is_told() {
    let (a, b) = (smooth(20_000, 10_000), smooth(20_000, 10_000));
    let [least, most] = [15_000, 1000];
    let goals = Goals { share: Some(3.0), max_blocks: Some(most), ..Goals::default() };
    let tenants = [
        Tenant { min_blocks: least, ..with_share("a", &a, 1.0) },
        with_share("b", &b, 1.0),
        Tenant { goals, ..tenant("c", Some(&b)) },
    ];
    let decisions = decide(&tenants, &cache(20_000));
    assert_eq!((decisions[0].quota_blocks, decisions[2].quota_blocks), (least, most));
    for (decision, words) in decisions.iter().zip([
        Some("a request, but it may get no fewer blocks"),
        None,
        Some("its share of 3 asks for a lower latency than any size that it may have brings"),
    ]) {
        assert_eq!(words.is_some(), decision.reason.contains("its share"), "{}", decision.reason);
        assert!(words.is_none_or(|words| decision.reason.contains(words)), "{}", decision.reason);
    }
}

#[test]
fn a_tenant_without_a_share_keeps_what_it_is_worth() {
    let (a, b, c) = (smooth(20_000, 10_000), smooth(20_000, 10_000), smooth(20_000, 30_000));
    let free = [tenant("a", Some(&a)), tenant("b", Some(&b)), tenant("c", Some(&c))];
    let shared = [with_share("a", &a, 1.0), with_share("b", &b, 1.3), tenant("c", Some(&c))];
    let (free, shared) = (decide(&free, &cache(30_000)), decide(&shared, &cache(30_000)));
    assert_eq!(free[2].quota_blocks, shared[2].quota_blocks);
    assert!((latency(&shared[0]) / latency(&shared[1]) / 1.3 - 1.0).abs() < 0.05);
}
