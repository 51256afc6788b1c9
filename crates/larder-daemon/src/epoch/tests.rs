//! The loop of an epoch on requests made up.

use super::*;
use larder_alloc::WritePolicy;

const BLOCK: u64 = 4096;

fn config(cache_blocks: u32) -> LoopConfig {
    LoopConfig {
        block_bytes: BLOCK as u32,
        cache_blocks,
        min_blocks: 2,
        write_threshold: 0.5,
        write_back: false,
        budget: None,
        epoch: Duration::from_secs(100),
        seed: 1,
    }
}

fn tenant(name: &str, quota_blocks: Option<u32>) -> LoopTenant {
    LoopTenant {
        name: name.into(),
        quota_blocks,
        write_policy: ConfiguredPolicy::Auto,
        caching: None,
        batched: None,
        goals: Goals::default(),
    }
}

fn eci(cache_blocks: u32, quotas: &[Option<u32>]) -> EpochLoop {
    let allocator = larder_alloc::by_name("eci").expect("known");
    let tenants = (0..).zip(quotas).map(|(at, quota): (u8, _)| tenant(&format!("t{at}"), *quota)).collect();
    EpochLoop::new(config(cache_blocks), allocator, tenants).expect("fits")
}

fn access(tenant: usize, op: Op, block: u64) -> Access {
    let asked = Kind::of(op == Op::Write, 1, false, 0, false);
    Access { tenant, volume: 0, op, offset: block * BLOCK, len: BLOCK, asked, seconds: 0.0 }
}

/// The epoch ends.
fn end(epochs: &mut EpochLoop) -> Result<&[Standing], AllocError> {
    let now = epochs.due_seconds();
    epochs.decide(now, 0.0, &[])
}

fn quotas(epochs: &EpochLoop) -> Vec<u32> {
    epochs.standings().iter().map(|standing| standing.decision.quota_blocks).collect()
}

#[test]
fn the_start_is_as_configured_and_the_rest_is_shared() {
    assert_eq!(quotas(&eci(100, &[Some(40), None, None])), [40, 30, 30]);
    let allocator = larder_alloc::by_name("static").expect("known");
    let error = EpochLoop::new(config(100), allocator, vec![tenant("t", Some(101))]).err();
    assert!(matches!(error, Some(AllocError::QuotasExceedCache { .. })));
}

#[test]
fn tenants_are_told_how_far_they_may_go_and_why_they_were_held_back() {
    let mut epochs = eci(100, &[None, None]);
    assert_eq!((epochs.grant(0.0, &SsdSpending::default(), true), epochs.budget(0.0)), (None, None));
    let budget = WriteBudget { bytes: (1000 * BLOCK) as f64, period_seconds: 1000.0 };
    epochs.set_budget(Some(budget), 0.0);
    let spent = |blocks: u64, refused_blocks, diverted_blocks| {
        Some(Spent { bytes: blocks * BLOCK, refused_blocks, diverted_blocks, turned_away_blocks: 0 })
    };
    let spending = |b, record_bytes| SsdSpending { tenants: vec![None, b], bytes: 0, record_bytes };
    // Without doors each has a limit, whatever could be held.
    let limits = epochs.grant(0.0, &spending(spent(7, 0, 0), 5), true);
    // All that may be written at once, for the only one that is known; what was before does not count.
    let limit = Limit { admit_bytes: 7 * BLOCK + 75 * BLOCK / 2, bytes: 57 * BLOCK };
    assert_eq!(limits, Some(Granted::Each(vec![(1, limit)])));
    epochs.grant(50.0, &spending(spent(27, 3, 2), 5 + BLOCK), true);
    assert_eq!(epochs.budget(50.0).expect("there is one").written_bytes, (21 * BLOCK) as f64);
    end(&mut epochs).expect("decides");
    let reason = |epochs: &EpochLoop, at: usize| epochs.standings()[at].decision.reason.clone();
    let said = "since the last decision the budget of SSD writes kept 3 blocks out, and 2 writes to cached blocks went to the backing alone";
    assert!(reason(&epochs, 1).ends_with(said), "{}", reason(&epochs, 1));
    assert!(!reason(&epochs, 0).contains("budget"), "{}", reason(&epochs, 0));
    end(&mut epochs).expect("decides");
    assert!(!reason(&epochs, 1).contains("budget"), "{}", reason(&epochs, 1));
}

#[test]
fn a_warm_start_keeps_what_is_held_unless_quotas_are_fixed() {
    let mut epochs = eci(100, &[None, None]);
    epochs.start_warm(&[70, 0]);
    assert_eq!(quotas(&epochs), [70, 30]);
    assert!(epochs.standings()[0].decision.reason.starts_with("70 blocks: it held 70"));
    let allocator = larder_alloc::by_name("static").expect("known");
    let tenants = vec![tenant("a", None), tenant("b", None)];
    let mut fixed = EpochLoop::new(config(100), allocator, tenants).expect("fits");
    fixed.start_warm(&[70, 0]);
    assert_eq!(quotas(&fixed), [50, 50]);
}

#[test]
fn who_stays_keeps_what_was_learned_of_it() {
    let named = |names: &[&str]| names.iter().map(|name| tenant(name, None)).collect::<Vec<_>>();
    let allocator = larder_alloc::by_name("eci").expect("known");
    let mut epochs = EpochLoop::new(config(100), allocator, named(&["a", "b"])).expect("fits");
    for _ in 0..2 {
        (0..60).for_each(|block| epochs.observe(&access(1, Op::Read, block)));
    }
    // The first leaves, and another comes before the other: what this one has read goes with it.
    epochs.set_tenants(named(&["c", "b"]), 10.0).expect("fits");
    assert_eq!(quotas(&epochs).iter().sum::<u32>(), 100);
    assert!(epochs.standings()[0].decision.reason.starts_with("50 blocks until the first epoch is over"));
    let urds: Vec<_> = end(&mut epochs).expect("decided").iter().map(|s| s.urd_blocks).collect();
    assert_eq!(urds, [0, 60]);
    assert_eq!(quotas(&epochs), [2, 60]);
    // A newcomer takes from the rest first; quotas that are fixed are what they are.
    epochs.set_tenants(named(&["c", "b", "d"]), 110.0).expect("fits");
    let seen = quotas(&epochs);
    assert!(seen[1] == 60 && seen[2] > 2 && seen.iter().sum::<u32>() <= 100, "{seen:?}");
    let allocator = larder_alloc::by_name("static").expect("known");
    let mut fixed = EpochLoop::new(config(90), allocator, named(&["a", "b"])).expect("fits");
    fixed.set_tenants(named(&["a", "b", "c"]), 10.0).expect("fits");
    assert_eq!(quotas(&fixed), [30, 30, 30]);
    assert_eq!(fixed.standings()[0].decision.reason, "30 blocks: tenants have come or gone");
}

#[test]
fn sizes_follow_what_is_read_again() {
    let mut epochs = eci(100, &[None, None]);
    for _ in 0..2 {
        (0..10).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
        (0..50).for_each(|block| epochs.observe(&access(1, Op::Read, block)));
    }
    let standings = end(&mut epochs).expect("decided");
    let seen: Vec<_> = standings.iter().map(|s| (s.epoch, s.urd_blocks, s.decision.quota_blocks)).collect();
    assert_eq!(seen, [(1, 10, 10), (1, 50, 50)]);
    // Nothing happens in the second epoch: both fall back to the minimum.
    assert_eq!(end(&mut epochs).map(|s| s[0].epoch), Ok(2));
    assert_eq!(quotas(&epochs), [2, 2]);
}

/// One block less, and an LRU cache serves nothing of it.
#[test]
fn a_loop_gets_its_last_block_too() {
    let mut epochs = eci(10_000, &[None]);
    for _ in 0..3 {
        (0..3000).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
    }
    assert_eq!(end(&mut epochs).map(|s| (s[0].urd_blocks, s[0].decision.quota_blocks)), Ok((3000, 3000)));
}

#[test]
fn writers_become_read_only_and_come_back() {
    let mut epochs = eci(100, &[None]);
    for op in [Op::Write, Op::Read] {
        for _ in 0..9 {
            (0..4).for_each(|block| epochs.observe(&access(0, op, block)));
        }
        end(&mut epochs).expect("decided");
        let policy = epochs.standings()[0].decision.mode.write;
        let expected = if op == Op::Write { WritePolicy::ReadOnly } else { WritePolicy::WriteThrough };
        assert_eq!(policy, expected);
    }
}

#[test]
fn volumes_of_a_tenant_are_told_apart() {
    let mut epochs = eci(100, &[None]);
    epochs.observe(&access(0, Op::Read, 7));
    epochs.observe(&Access { volume: 1, ..access(0, Op::Read, 7) });
    epochs.observe(&access(0, Op::Read, 7));
    assert_eq!(end(&mut epochs).map(|standings| standings[0].urd_blocks), Ok(2));
}

#[test]
fn figure_5_of_eci_cache() {
    let mut epochs = eci(100, &[None]);
    for (kind, block) in [('W', 1), ('W', 2), ('R', 1), ('W', 3), ('W', 4), ('W', 5), ('W', 2)] {
        let op = if kind == 'W' { Op::Write } else { Op::Read };
        epochs.observe(&access(0, op, block));
    }
    let standing = end(&mut epochs).expect("decided")[0].clone();
    assert_eq!((standing.trd_blocks, standing.urd_blocks), (5, 2));
}

#[test]
fn a_small_cache_learns_what_a_far_larger_one_would_bring() {
    let mut epochs = eci(100, &[None]);
    for _ in 0..2 {
        (0..100_000).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
    }
    let urd_blocks = end(&mut epochs).expect("decided")[0].urd_blocks;
    // From a sample of a third of the blocks.
    assert!((98_000..102_000).contains(&urd_blocks), "{urd_blocks}");
}

#[test]
fn memory_stays_bounded_however_much_a_tenant_touches() {
    let mut epochs = eci(100, &[None]);
    (0..400_000).for_each(|block| epochs.observe(&access(0, Op::Write, block)));
    assert!(epochs.memory_bytes() < 4 << 20, "{} bytes", epochs.memory_bytes());
}

#[test]
fn a_request_far_out_takes_no_longer_than_others() {
    let mut epochs = eci(100, &[None]);
    let far = access(0, Op::Read, (1 << 49) - 1);
    epochs.observe(&Access { volume: 1, len: 2 * BLOCK, ..far });
    assert_eq!(end(&mut epochs).map(|standings| standings[0].urd_blocks), Ok(0));
}

#[test]
fn an_unknown_tenant_is_ignored() {
    let mut epochs = eci(100, &[None]);
    epochs.observe(&access(9, Op::Read, 0));
    assert!(end(&mut epochs).is_ok());
}

#[test]
fn every_allocator_decides_and_follows_another() {
    let mut epochs = eci(1000, &[None, None]);
    let mut now = 0.0;
    for name in ["larder", "centaur", "unified", "scave", "combined", "wss", "static", "eci"] {
        let allocator = larder_alloc::by_name(name).expect("known");
        let before = quotas(&epochs);
        epochs.switch(allocator, Duration::from_secs(100), now, &[]).expect("fits");
        assert!(
            ["static", "combined", "wss"].contains(&name) || quotas(&epochs) == before,
            "{name}: nothing changes before a decision"
        );
        for block in (0..300).chain(0..300) {
            epochs.observe(&access(0, Op::Read, block));
            epochs.observe(&access(1, Op::Write, block));
        }
        now = epochs.due_seconds();
        while epochs.movers_come(now) && !epochs.must_decide(now) {
            now = epochs.due_seconds();
        }
        assert!(epochs.must_decide(now) || name == "larder", "{name}");
        epochs.decide(now, 7.0, &[]).expect("decides");
        let last = epochs.decisions().of("t0").next_back().expect("kept").clone();
        assert_eq!((last.allocator.as_str(), last.unix_seconds), (name, 7.0));
        assert_eq!(last.decision.quota_blocks, quotas(&epochs)[0]);
    }
}

#[test]
fn tenants_that_share_are_told_so_and_keep_what_they_held_when_they_no_longer_do() {
    let allocator = |name| larder_alloc::by_name(name).expect("known");
    let hour = Duration::from_secs(3600);
    let held = |blocks| {
        let usage = CacheUse { resident_blocks: blocks, effective: None, missed_blocks: 0 };
        Some(Report { measured: Measured::default(), usage })
    };
    let lru = CachingSpec::default();
    let mut epochs = eci(1000, &[Some(600), None]);
    assert_eq!(epochs.arrangement().sharing, Sharing::Off);
    epochs.switch(allocator("unified"), hour, 1.0, &[]).expect("fits");
    assert_eq!(epochs.arrangement().sharing, Sharing::All { blocks: 1000, caching: lru });
    assert_eq!(epochs.standings()[0].decision.reason, "one cache of 1000 blocks serves all tenants");
    epochs.decide(3601.0, 1.0, &[]).expect("decides");
    assert_eq!(quotas(&epochs), [500, 500], "in name");
    epochs.switch(allocator("combined"), hour, 3602.0, &[held(100), held(900)]).expect("fits");
    assert_eq!(epochs.arrangement().sharing, Sharing::Spill { blocks: 500, caching: lru });
    assert_eq!(quotas(&epochs), [50, 450], "half of what they hold, in the half that is divided");
    epochs.switch(allocator("larder"), hour, 3603.0, &[held(150), held(700)]).expect("fits");
    assert_eq!((epochs.arrangement().sharing, epochs.arrangement().lending), (Sharing::Off, true));
    let seen = quotas(&epochs);
    assert!(seen[0] >= 150 && seen[1] >= 700 && seen.iter().sum::<u32>() <= 1000, "{seen:?}");
    assert!(epochs.standings()[1].decision.reason.ends_with("decision of larder: it held 700"));
    epochs.switch(allocator("scave"), hour, 3603.5, &[held(150), held(700)]).expect("fits");
    let pooled = Some(Watermarks { low: 10, high: 50 });
    assert_eq!((epochs.arrangement().watermarks, epochs.arrangement().lending), (pooled, false));
    epochs.decide(3604.5, 1.0, &[held(150), held(700)]).expect("decides");
    assert_eq!(quotas(&epochs), [1000, 1000], "as long as 5 % are free, nobody is limited");
    // A newcomer's part is of what is divided.
    epochs.switch(allocator("combined"), hour, 3605.0, &[]).expect("fits");
    epochs.set_tenants(["t0", "t1", "t2"].map(|name| tenant(name, None)).to_vec(), 3606.0).expect("fits");
    let seen = quotas(&epochs);
    assert!(seen[2] > 0 && seen.iter().sum::<u32>() <= 500, "{seen:?}");
}

#[test]
fn one_cache_for_all_replaces_as_all_want_it() {
    let caching: CachingSpec = "arc".parse().expect("known");
    let arc = Some(caching);
    let tenants = |second| {
        vec![
            LoopTenant { caching: arc, ..tenant("a", None) },
            LoopTenant { caching: second, ..tenant("b", None) },
        ]
    };
    let loop_of = |second| {
        let unified = larder_alloc::by_name("unified").expect("known");
        EpochLoop::new(config(100), unified, tenants(second)).expect("fits")
    };
    let same = loop_of(arc);
    assert_eq!(same.arrangement().sharing, Sharing::All { blocks: 100, caching });
    assert!(!same.standings()[0].decision.reason.contains("its own replacement"));
    let other = loop_of(None);
    let lru = CachingSpec::default();
    assert_eq!(other.arrangement().sharing, Sharing::All { blocks: 100, caching: lru });
    assert_eq!(other.standings()[0].decision.mode.caching, lru);
    let reasons = [0, 1].map(|at| other.standings()[at].decision.reason.contains("its own replacement"));
    assert_eq!(reasons, [true, false]);
}

#[test]
fn what_reactors_report_is_held_against_what_was_decided() {
    let mut epochs = eci(1000, &[None]);
    let timed = |count| Timed { count, seconds: count as f64 * 1e-3 };
    let report = |hits, misses| {
        let measured = Measured { read_hits: timed(hits), read_misses: timed(misses), ..Measured::default() };
        let usage = CacheUse { resident_blocks: 7, effective: None, missed_blocks: misses };
        Some(Report { measured, usage })
    };
    // What came before the first decision belongs to none.
    epochs.decide(100.0, 1.0, &[report(10, 10)]).expect("decides");
    epochs.decide(200.0, 2.0, &[report(40, 20)]).expect("decides");
    let first = epochs.decisions().of("t0").next().expect("kept");
    let came = first.achieved.expect("it is over");
    assert_eq!((came.requests, came.request_hit_ratio, came.occupied_blocks), (40, Some(0.75), 7));
    assert_eq!(came.until_unix_seconds, 2.0);
    // But it was measured: ten reads of a millisecond count half beside the five that are taken for granted.
    let found = first.found.expect("found");
    assert!((found.read_miss_seconds - 3e-3).abs() < 1e-9, "{found:?}");
}

#[test]
fn nothing_is_held_against_a_prediction_once_others_have_come() {
    let allocator = larder_alloc::by_name("larder").expect("known");
    let tenants = |names: &[&str]| names.iter().map(|name| tenant(name, None)).collect::<Vec<_>>();
    let mut epochs = EpochLoop::new(config(1000), allocator, tenants(&["t0"])).expect("fits");
    let report = |count| {
        let read_hits = Timed { count, seconds: count as f64 * 1e-3 };
        Some(Report { measured: Measured { read_hits, ..Measured::default() }, ..Report::default() })
    };
    let decided = |epochs: &mut EpochLoop, count| {
        for block in (0..900).chain(0..900) {
            epochs.observe(&access(0, Op::Read, block));
        }
        let now = epochs.due_seconds();
        let reports = vec![report(count); epochs.tenants().len()];
        epochs.decide(now, 0.0, &reports).expect("decides");
    };
    (1..=3).for_each(|epoch| decided(&mut epochs, 100 * epoch));
    let (now, before) = (epochs.due_seconds(), quotas(&epochs)[0]);
    epochs.set_tenants(tenants(&["t0", "t1"]), now).expect("fits");
    assert!(quotas(&epochs)[0] < before, "the newcomer has a part: {:?}", quotas(&epochs));
    decided(&mut epochs, 400);
    let told: Vec<_> = epochs.decisions().of("t0").map(|it| (it.achieved.is_some(), it.agrees())).collect();
    assert_eq!(told.len(), 4);
    assert!(told[1].0 && told[1].1.is_some(), "{told:?}");
    assert_eq!(told[2], (true, None), "what came is told all the same");
    // Nor once another write policy or replacement is configured, or another allocator decides.
    let last = |epochs: &EpochLoop| epochs.decisions().of("t0").next_back().expect("kept").overtaken;
    let fixed = ConfiguredPolicy::Fixed(WritePolicy::ReadOnly);
    let others = [
        LoopTenant { write_policy: fixed, ..tenant("t0", None) },
        LoopTenant { write_policy: fixed, caching: "arc".parse().ok(), ..tenant("t0", None) },
    ];
    for other in others {
        assert!(!last(&epochs));
        epochs.set_tenants(vec![other, tenant("t1", None)], epochs.due_seconds()).expect("fits");
        assert!(last(&epochs));
        decided(&mut epochs, 500);
    }
    assert!(!last(&epochs));
    let eci = larder_alloc::by_name("eci").expect("known");
    epochs.switch(eci, Duration::from_secs(100), epochs.due_seconds(), &[]).expect("fits");
    assert!(last(&epochs));
}

#[test]
fn who_is_not_reported_of_holds_what_it_did() {
    let mut epochs = eci(1000, &[None, None]);
    let report = |resident_blocks, missed_blocks| {
        let usage = CacheUse { resident_blocks, effective: Some(0.5), missed_blocks };
        Some(Report { usage, ..Report::default() })
    };
    let found = |epochs: &EpochLoop, at: usize| {
        let found = epochs.control.positions()[at].findings.as_ref();
        found.map(|found| (found.usage.resident_blocks, found.usage.missed_blocks)).expect("it is there")
    };
    // A new tenant holds nothing.
    epochs.decide(100.0, 0.0, &[report(300, 50), None]).expect("decides");
    assert_eq!([0, 1].map(|at| found(&epochs, at)), [(300, 50), (0, 0)]);
    epochs.decide(200.0, 0.0, &[None, report(70, 5)]).expect("decides");
    assert_eq!([0, 1].map(|at| found(&epochs, at)), [(300, 0), (70, 5)]);
    // Looks know it as well.
    assert_eq!(epochs.held_blocks(&[report(310, 80), None]), 380);
    assert_eq!(epochs.held_blocks(&[None, report(60, 5)]), 370);
    epochs.decide(300.0, 0.0, &[None, None]).expect("decides");
    assert_eq!([0, 1].map(|at| found(&epochs, at)), [(310, 0), (60, 0)]);
    // What was missed meanwhile is told then.
    epochs.decide(400.0, 0.0, &[report(320, 90), report(60, 9)]).expect("decides");
    assert_eq!([0, 1].map(|at| found(&epochs, at)), [(320, 40), (60, 4)]);
}

#[test]
fn what_was_decided_stands_of_who_keeps_its_size_when_others_come() {
    let named = |names: &[&str]| names.iter().map(|name| tenant(name, None)).collect::<Vec<_>>();
    let allocator = larder_alloc::by_name("eci").expect("known");
    let mut epochs = EpochLoop::new(config(100), allocator, named(&["a", "b"])).expect("fits");
    for _ in 0..2 {
        (0..80).for_each(|block| epochs.observe(&access(1, Op::Read, block)));
    }
    end(&mut epochs).expect("decided");
    let decided = epochs.standings()[1].decision.clone();
    assert!(decided.quota_blocks == 80 && decided.predicted.is_some(), "{decided:?}");
    epochs.set_tenants(named(&["a", "b", "c"]), 110.0).expect("fits");
    assert_eq!(epochs.standings()[1].decision, decided);
    // What has another size has nothing predicted of it.
    epochs.set_tenants(named(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]), 111.0).expect("fits");
    let now = &epochs.standings()[1].decision;
    assert!(now.quota_blocks < 80 && now.predicted.is_none(), "{now:?}");
}

#[test]
fn what_else_is_wanted_of_a_tenant_is_heeded_soon() {
    let allocator = larder_alloc::by_name("larder").expect("known");
    let mut epochs = EpochLoop::new(config(100), allocator, vec![tenant("t0", None)]).expect("fits");
    epochs.decide(100.0, 0.0, &[None]).expect("decides");
    let heavy =
        |name: &str| LoopTenant { goals: Goals { weight: 3.0, ..Goals::default() }, ..tenant(name, None) };
    epochs.set_tenants(vec![heavy("t0")], 120.0).expect("fits");
    assert_eq!(epochs.control.tenants()[0].goals.weight, 3.0);
    assert!(!epochs.must_decide(126.0) && epochs.must_decide(126.25), "a sixteenth of an epoch");
    for now in [130.0, 140.0, 170.0] {
        epochs.decide(now, 0.0, &[None]).expect("decides");
    }
    epochs.set_tenants(vec![heavy("t0")], 172.0).expect("fits");
    assert!(!epochs.must_decide(199.0) && epochs.must_decide(200.0), "nothing else");
    epochs.decide(200.0, 0.0, &[None]).expect("decides");
    epochs.set_tenants(vec![heavy("t0"), heavy("t1")], 220.0).expect("fits");
    assert!(!epochs.must_decide(226.0) && epochs.must_decide(226.25), "a newcomer");
}

#[test]
fn a_tenant_whose_rate_changes_is_measured_anew_from_then_on() {
    let allocator = larder_alloc::by_name("larder").expect("known");
    let mut epochs = EpochLoop::new(config(1000), allocator, vec![tenant("a", None)]).expect("fits");
    let report = |count, milliseconds: f64| {
        let read_misses = Timed { count, seconds: count as f64 * milliseconds / 1e3 };
        Some(Report { measured: Measured { read_misses, ..Measured::default() }, ..Report::default() })
    };
    let ask = |epochs: &mut EpochLoop, count: u64| {
        (0..count).for_each(|block| epochs.observe(&access(0, Op::Read, block)));
    };
    ask(&mut epochs, 100);
    epochs.decide(100.0, 1.0, &[report(100, 1.0)]).expect("decides");
    assert!(epochs.changed(106.0).is_empty());
    // A hundred times as many as before, and they take longer.
    ask(&mut epochs, 10_000);
    assert_eq!(epochs.changed(107.0), [0]);
    epochs.look(107.0, &[0], &[report(10_100, 5.0)]);
    ask(&mut epochs, 300);
    epochs.decide(113.25, 2.0, &[report(10_400, 5.0)]).expect("decides");
    // What is decided goes by those that came after it; what came of the decision before, by all.
    let records: Vec<&Record> = epochs.decisions().of("a").collect();
    let found = records[1].found.as_ref().expect("found");
    assert_eq!((found.requests_per_second, found.seconds), (48.0, 6.25));
    let came = records[0].achieved.expect("it is over");
    assert_eq!(came.requests, 10_300);
    let told: Vec<(f64, bool, u64)> = epochs
        .log()
        .since(0)
        .map(|it| (it.seconds, it.is_renewal(), it.tenants[0].measured.read_misses.requests))
        .collect();
    assert_eq!(told, [(100.0, false, 100), (107.0, true, 10_000), (113.25, false, 300)]);
}

#[test]
fn what_is_wanted_of_a_tenant_moves_no_quota_but_a_fixed_one() {
    let mut epochs = eci(100, &[None, None]);
    (0..2).for_each(|_| (0..10).for_each(|block| epochs.observe(&access(0, Op::Read, block))));
    end(&mut epochs).expect("decided");
    let before = epochs.standings().to_vec();
    let wanted = |quota| {
        let goals = Goals { weight: 3.0, ..Goals::default() };
        let write_policy = ConfiguredPolicy::Fixed(WritePolicy::ReadOnly);
        vec![LoopTenant { goals, write_policy, ..tenant("t0", quota) }, tenant("t1", None)]
    };
    epochs.set_tenants(wanted(Some(80)), 110.0).expect("fits");
    assert_eq!(quotas(&epochs), [10, 2]);
    let after = epochs.standings();
    assert_eq!(after[0].decision.mode.write, WritePolicy::ReadOnly);
    assert_eq!(after[1], before[1]);
    let allocator = larder_alloc::by_name("static").expect("known");
    let tenants = vec![tenant("t0", None), tenant("t1", None)];
    let mut fixed = EpochLoop::new(config(100), allocator, tenants).expect("fits");
    fixed.set_tenants(wanted(Some(80)), 10.0).expect("fits");
    assert_eq!(quotas(&fixed), [80, 20]);
    assert_eq!(fixed.standings()[1].decision.reason, "20 blocks as configured now");
}

#[test]
fn a_maximum_holds_at_once() {
    let mut epochs = eci(100, &[None, None]);
    let at_most = |max_blocks| {
        let goals = Goals { max_blocks, ..Goals::default() };
        vec![LoopTenant { goals, ..tenant("t0", None) }, tenant("t1", None)]
    };
    epochs.set_tenants(at_most(Some(60)), 10.0).expect("fits");
    assert_eq!(quotas(&epochs), [50, 50]);
    epochs.set_tenants(at_most(Some(30)), 20.0).expect("fits");
    assert_eq!(quotas(&epochs), [30, 50]);
    assert_eq!(epochs.standings()[0].decision.reason, "30 blocks: its maximum, until the next decision");
    // So it is after a warm start, and where tenants come.
    let warm = |max_blocks| {
        let allocator = larder_alloc::by_name("eci").expect("known");
        let mut epochs = EpochLoop::new(config(100), allocator, at_most(max_blocks)).expect("fits");
        epochs.start_warm(&[80, 20]);
        epochs
    };
    let mut epochs = warm(Some(30));
    // What one may not keep is for the others.
    assert_eq!((quotas(&warm(None)), quotas(&epochs)), (vec![80, 20], vec![30, 50]));
    let three = [at_most(Some(10)), vec![tenant("t2", None)]].concat();
    epochs.set_tenants(three, 30.0).expect("fits");
    assert_eq!(quotas(&epochs)[0], 10);
    // A quota that is configured does not go before it, but where quotas are fixed.
    for (name, expected) in [("eci", [30, 40]), ("static", [60, 40])] {
        let allocator = larder_alloc::by_name(name).expect("known");
        let mut tenants = at_most(Some(30));
        tenants[0].quota_blocks = Some(60);
        let epochs = EpochLoop::new(config(100), allocator, tenants).expect("fits");
        assert_eq!(quotas(&epochs), expected, "{name}");
    }
}

#[test]
fn a_configured_replacement_stands() {
    let caching = "arc".parse().expect("known");
    let mine = LoopTenant { caching: Some(caching), ..tenant("mine", None) };
    let allocator = larder_alloc::by_name("larder").expect("known");
    let epochs = EpochLoop::new(config(100), allocator, vec![mine, tenant("free", None)]).expect("fits");
    let seen: Vec<_> = epochs.standings().iter().map(|it| it.decision.mode.caching.to_string()).collect();
    assert_eq!(seen, ["arc", "lirs"]);
}

#[test]
fn movers_come_five_times_in_an_epoch_where_a_partition_is_filled_by_one() {
    let allocator = larder_alloc::by_name("eci").expect("known");
    let by_mover = LoopTenant { batched: Some(true), ..tenant("a", None) };
    let mut epochs = EpochLoop::new(config(100), allocator, vec![by_mover, tenant("b", None)]).expect("fits");
    let batched: Vec<_> = epochs.standings().iter().map(|standing| standing.batched).collect();
    assert_eq!((batched, epochs.due_seconds()), (vec![true, false], 20.0));
    assert!(!epochs.movers_come(19.0));
    assert!(epochs.movers_come(20.0));
    assert_eq!(epochs.due_seconds(), 40.0);
    // Centaur's are for all tenants but those that say otherwise.
    let centaur = larder_alloc::by_name("centaur").expect("known");
    epochs.switch(centaur, Duration::from_secs(50), 20.0, &[]).expect("fits");
    assert!(epochs.standings().iter().all(|standing| standing.batched));
    assert_eq!(epochs.due_seconds(), 30.0);
    let by_misses = LoopTenant { batched: Some(false), ..tenant("b", None) };
    epochs.set_tenants(vec![by_misses], 20.0).expect("fits");
    assert!(!epochs.standings()[0].batched);
}
