//! Runs over small traces: what follows by hand, and what must hold for all allocators.

use std::convert::Infallible;

use larder_alloc::control::WriteBudget;
use larder_alloc::{ConfiguredPolicy, NAMES, WritePolicy};
use larder_trace::{GeneratorSpec, Request, RequestKind};
use proptest::prelude::*;

use super::*;
use crate::{BlockSize, Plan, Requests, RunSpec, simulate};

const BLOCK: u64 = 4096;

/// One operation takes so many seconds, whatever it is; 64 are served at once.
fn slow(seconds: u32) -> DeviceSpec {
    slow_at_once(seconds, 64)
}

fn slow_at_once(seconds: u32, parallel: u32) -> DeviceSpec {
    let text = format!(
        "san:parallel={parallel},random-read={seconds}s,random-write={seconds}s,sequential-read={seconds}s,sequential-write={seconds}s,\
         read-bandwidth=1e30,write-bandwidth=1e30"
    );
    text.parse().expect("a device")
}

fn plan(names: &[&str], allocator: &str, blocks: u64) -> TenantsPlan {
    let tenants = names.iter().map(|name| TenantPlan::new(*name)).collect();
    let mut plan = TenantsPlan::new(tenants, allocator, blocks * BLOCK);
    plan.min_bytes = BLOCK;
    plan.caching.block = Some(BlockSize::DEFAULT);
    plan.caching.epoch_seconds = Some(100.0);
    plan
}

/// `R1 W2` at 0 s, 20 s, …: reads and writes of one block each.
fn trace(text: &str) -> Vec<Request> {
    let request = |(at, word): (u64, &str)| {
        let kind = match &word[..1] {
            "R" => RequestKind::Read,
            "W" => RequestKind::Write,
            _ => RequestKind::Discard,
        };
        let block: u64 = word[1..].parse().expect("a number");
        Request { time_ns: at * 20_000_000_000, volume: 0, kind, offset: block * BLOCK, len: BLOCK as u32 }
    };
    (0..).zip(text.split_whitespace()).map(request).collect()
}

fn run(plan: &TenantsPlan, traces: &[Vec<Request>]) -> TenantsResult {
    let sources: Vec<_> =
        traces.iter().map(|trace| move || Ok::<_, Infallible>(Requests(trace.clone().into_iter()))).collect();
    let result = simulate_tenants(plan, &sources, |_| {}).expect("it can be run");
    TenantsResult { cpu_seconds: 0.0, control_cpu_seconds: 0.0, ..result }
}

fn in_hindsight(plan: &TenantsPlan, traces: &[Vec<Request>]) -> Hindsight {
    let sources: Vec<_> =
        traces.iter().map(|trace| move || Ok::<_, Infallible>(Requests(trace.clone().into_iter()))).collect();
    hindsight(plan, &sources).expect("it can be read")
}

#[test]
fn what_is_cached_between_missing_blocks_is_read_with_them_unless_it_is_much() {
    let mut plan = plan(&["a"], "static", 32);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    let read = |at: u64, block: u64, blocks: u64| Request {
        time_ns: at * 20_000_000_000,
        volume: 0,
        kind: RequestKind::Read,
        offset: block * BLOCK,
        len: (blocks * BLOCK) as u32,
    };
    // Blocks 1 to 4 are cached, then 11 to 15: one block more than is read with others.
    let warm = [read(0, 1, 4), read(1, 11, 5)];
    let of = |last: Request| {
        let result = run(&plan, &[warm.into_iter().chain([last]).collect()]);
        (result.devices[1].operations - 2, result.tenants[0].backing_reads - 9, result.tenants[0].read_hits)
    };
    assert_eq!(of(read(2, 0, 6)), (1, 6, 4), "blocks 0 to 5");
    assert_eq!(of(read(2, 10, 7)), (2, 2, 5), "blocks 10 and 16");
    assert_eq!(of(read(2, 3, 4)), (1, 2, 2), "blocks 5 and 6: nothing is missing before them");
    assert_eq!(of(read(2, 0, 4)), (1, 1, 3), "block 0: nothing is missing behind it");
}

#[test]
fn latencies_by_hand() {
    let mut plan = plan(&["a"], "static", 2);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    // Miss, hit, write, hit, miss (evicts 1, which is clean), miss (evicts 2: dirty), hit.
    let result = run(&plan, &[trace("R1 R1 W2 R2 R3 R4 R3")]);
    let a = &result.tenants[0];
    assert_eq!((a.requests, a.read_requests, a.read_hits), (7, 6, 3));
    assert!((a.mean_latency - (10.0 + 1.0 + 1.0 + 1.0 + 10.0 + 10.0 + 1.0) / 7.0).abs() < 1e-9, "{a:?}");
    assert_eq!((a.mean_write_latency, a.backing_writes, a.backing_reads), (1.0, 1, 3));
    let ssd = SsdWritesByCause { fill: 3, guest_write: 1, promotion: 0, total: 4 };
    assert_eq!(a.ssd_writes, ssd);
    assert!((result.seconds - 121.0).abs() < 1e-9);

    plan.tenants[0].write_policy = ConfiguredPolicy::Fixed(WritePolicy::WriteThrough);
    let through = run(&plan, &[trace("R1 R1 W2 R2 R3 R4 R3")]);
    assert_eq!((through.tenants[0].mean_write_latency, through.tenants[0].backing_writes), (10.0, 1));
}

#[test]
fn what_is_held_is_a_mean_over_time_however_long_an_epoch_is() {
    for epoch_seconds in [1000.0, 7.0] {
        let mut plan = plan(&["a"], "static", 4);
        (plan.ssd, plan.backing) = (slow(1), slow(10));
        plan.caching.epoch_seconds = Some(epoch_seconds);
        // One block for 20 s, two for 40, and three for 20; it has gone when the last request has come.
        let result = run(&plan, &[trace("R1 R2 R1 R3 R1")]);
        assert!((result.tenants[0].mean_occupied_blocks - 2.0).abs() < 1e-9, "{epoch_seconds}");
        assert_eq!(result.tenants[0].mean_quota_blocks, 4.0);
        // Requests under way after the last one came change nothing of what there was.
        assert_eq!(result.total.mean_quota_blocks, 4.0);
    }
}

#[test]
fn a_run_ends_with_its_last_request_though_dirty_blocks_are_written_back_after_it() {
    let mut plan = plan(&["a"], "static", 8);
    (plan.ssd, plan.backing) = (slow(1), slow_at_once(10, 2));
    let result = run(&plan, &[trace("W1 W3 W5 W7")]);
    let [ssd, backing] = &result.devices[..] else { panic!("{:?}", result.devices) };
    assert_eq!((ssd.operations, backing.operations), (8, 4));
    assert!((result.seconds - 61.0).abs() < 1e-9 && result.total.seconds == result.tenants[0].seconds);
    assert_eq!(result.total.iops, result.tenants[0].iops);
}

#[test]
fn dirty_neighbours_are_written_back_with_a_block_that_leaves() {
    for allocator in ["static", "unified", "combined", "larder"] {
        let mut plan = plan(&["a"], allocator, 4);
        (plan.ssd, plan.backing) = (slow(1), slow(10));
        plan.tenants[0].caching = Some("lru".parse().expect("a policy"));
        plan.tenants[0].write_policy = ConfiguredPolicy::Fixed(WritePolicy::WriteBack);
        // With 1 leave, for 20, the writes of 2 and 3, not that of 9; 2 is written anew; 3 is clean when it leaves, then 9 and 20 are not. Of the four at the end none
        // is another's neighbour.
        let result = run(&plan, &[trace("W1 W2 W3 W9 W20 W2 W30 W40 W50")]);
        let backing = result.devices.iter().find(|device| device.name.starts_with("backing"));
        assert_eq!(
            (result.tenants[0].backing_writes, backing.map(|backing| backing.operations)),
            (5 + 4, Some(3 + 4)),
            "{allocator}"
        );
    }
}

#[test]
fn hindsight_by_hand() {
    let mut plan = plan(&["a"], "static", 2);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    // The stretches: a write that is read twice saves 27 s, a block that is read again 9 s, a write that is never read 9 s.
    let requests = trace("W1 R1 R2 R1 W1 D1 R2 R3");
    let hindsight = in_hindsight(&plan, std::slice::from_ref(&requests));
    assert_eq!(hindsight.requests, 7);
    let seconds = |writes| hindsight.mean_latency(writes) * 7.0;
    let expected = [70.0, 70.0 - 27.0, 70.0 - 36.0, 70.0 - 45.0, 25.0];
    assert!((0..).zip(expected).all(|(writes, expected)| (seconds(writes) - expected).abs() < 1e-9));
    assert!((seconds(1000) - 25.0).abs() < 1e-9);
    // What comes after the end does not count, also of a trace that begins anew for ever.
    (plan.duration_seconds, plan.tenants[0].repeat) = (Some(60.0), true);
    let short = in_hindsight(&plan, &[requests]);
    assert_eq!((short.requests, (short.mean_latency(0) * 3.0).round()), (3, 30.0));
}

#[test]
fn no_allocator_is_better_than_hindsight() {
    let zipf = |seed: u64, read: f64| {
        let spec = format!("zipf:theta=0.9,blocks=2000,requests=20000,read={read},interval=1ms,seed={seed}");
        spec.parse::<GeneratorSpec>().expect("a generator").open().collect::<Vec<_>>()
    };
    let traces = [zipf(1, 0.9), zipf(2, 0.3)];
    for allocator in NAMES {
        let mut plan = plan(&["a", "b"], allocator, 2000);
        plan.caching.epoch_seconds = Some(2.0);
        let hindsight = in_hindsight(&plan, &traces);
        let total = run(&plan, &traces).total;
        let least = hindsight.mean_latency(total.ssd_writes.total);
        assert!(total.ssd_writes.total > 0, "{allocator}");
        assert!(least <= total.mean_latency && least > 0.0, "{allocator}: {least} s, {total:?}");
    }
}

#[test]
fn a_closed_loop_waits_for_its_requests() {
    let mut plan = plan(&["a"], "static", 10);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    plan.tenants[0].pace = Pace::Closed { outstanding: 1 };
    assert_eq!(run(&plan, &[trace("R1 R1 R2 R2")]).seconds, 22.0);
    plan.tenants[0].pace = Pace::Closed { outstanding: 2 };
    // 1 and 2 miss together, then hit together.
    assert_eq!(run(&plan, &[trace("R1 R2 R1 R2")]).seconds, 11.0);
    plan.tenants[0].repeat = true;
    plan.duration_seconds = Some(50.0);
    assert_eq!(run(&plan, &[trace("R1 R2")]).tenants[0].requests, 2 + 2 * 40);
}

#[test]
fn a_run_ends_with_its_last_request() {
    // The mover would come at 100 s, the tenant go at 1000 s.
    let mut plan = plan(&["a"], "centaur", 10);
    plan.caching.mover_seconds = Some(100.0);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    plan.tenants[0].pace = Pace::Closed { outstanding: 1 };
    plan.tenants[0].stop_seconds = Some(1000.0);
    let result = run(&plan, &[trace("R1 R1 R2 R2")]);
    assert_eq!((result.seconds, result.total.iops), (40.0, result.tenants[0].iops));
    plan.duration_seconds = Some(90.0);
    assert_eq!(run(&plan, &[trace("R1 R1 R2 R2")]).seconds, 40.0);
    // The mover came at 35 s, and reads still when the last request is done.
    plan.caching.mover_seconds = Some(35.0);
    assert_eq!(run(&plan, &[trace("R1 R1 R2 R2")]).seconds, 40.0);
}

/// One time that is weeks late changes nothing but the times, and costs no decisions.
#[test]
fn what_comes_after_weeks_of_nothing_is_served_as_after_some_hours() {
    let mut requests = trace(&"R1 R2 W3 R1 R4 W3 R5 ".repeat(40));
    for (name, budget) in NAMES.into_iter().flat_map(|name| [(name, None), (name, Some(60))]) {
        let mut plan = plan(&["a"], name, 4);
        plan.budget = budget
            .map(|blocks: u64| WriteBudget { bytes: (blocks * BLOCK) as f64, period_seconds: 20_000.0 });
        let mut after = |epochs: u64| {
            let (served, late) = requests.split_at_mut(200);
            let shift = served.last().map_or(0, |it| it.time_ns) + epochs * 100_000_000_000;
            (0..).zip(late).for_each(|(at, it)| it.time_ns = shift + at * 20_000_000_000);
            run(&plan, std::slice::from_ref(&requests))
        };
        let (hours, weeks) = (after(200), after(1_000_000));
        // One that remembers for long knows of the first ones, and the method with windows of its own has more of them.
        let (least, most) = (40, if name == "scave" { 9_000 } else { 400 });
        assert!((least..most).contains(&weeks.decisions.len()), "{name}: {}", weeks.decisions.len());
        assert!((least..most).contains(&hours.decisions.len()), "{name}: {}", hours.decisions.len());
        let pause = weeks.longest_pause.expect("requests at different times");
        assert_eq!((pause.from_seconds, pause.seconds), (199.0 * 20.0, 1e8), "{name}");
        // What a block is worth goes by how long others stayed, so that `larder` is not quite the same.
        let near = |one: u64, other: u64| one.abs_diff(other) <= if name == "larder" { 5 } else { 0 };
        let (after_weeks, after_hours) = (&weeks.total, &hours.total);
        assert_eq!((after_weeks.requests, after_hours.requests), (280, 280));
        assert!(
            near(after_weeks.read_hits, after_hours.read_hits)
                && near(after_weeks.ssd_writes.total, after_hours.ssd_writes.total),
            "{name} {budget:?}: {after_weeks:?}, {after_hours:?}"
        );
        assert_eq!(run(&plan, std::slice::from_ref(&requests)), weeks, "{name}");
    }
}

#[test]
fn shared_and_separate_backings() {
    let mut plan = plan(&["a", "b"], "static", 10);
    plan.ssd = slow(1);
    plan.backing = slow(10);
    plan.backing.parallel = 1;
    let traces = [trace("R1"), trace("R1")];
    let latencies = |plan: &TenantsPlan| {
        run(plan, &traces).tenants.iter().map(|tenant| tenant.mean_latency).collect::<Vec<_>>()
    };
    assert_eq!(latencies(&plan), [10.0, 20.0]);
    plan.backings = Backing::Each;
    assert_eq!(latencies(&plan), [10.0, 10.0]);
    assert_eq!(run(&plan, &traces).devices.len(), 3);
}

#[test]
fn a_tenant_that_leaves_gives_its_blocks_back() {
    let mut plan = plan(&["a", "b"], "wss", 100);
    plan.tenants[1].start_seconds = 500.0;
    plan.tenants[0].stop_seconds = Some(450.0);
    let loops = "R1 R2 R3 R4 R5 ".repeat(20);
    let result = run(&plan, &[trace(&loops), trace(&loops)]);
    let of = |tenant: usize| result.decisions.iter().filter(move |row| row.tenant == tenant);
    assert_eq!(of(0).map(|row| row.quota_blocks).collect::<Vec<_>>(), [100, 1, 5, 5, 5]);
    assert_eq!(of(1).next().map(|row| (row.seconds, row.quota_blocks)), Some((500.0, 100)));
    assert_eq!((result.tenants[0].requests, result.tenants[1].requests), (23, 100));
}

#[test]
fn a_mover_fills_between_and_not_at_misses() {
    let mut plan = plan(&["a"], "centaur", 4);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    plan.caching.mover_seconds = Some(70.0);
    // 1, 2 and 1 are read before the mover comes at 70 s, and hit after it; the write of an absent block goes past.
    let result = run(&plan, &[trace("R1 R2 R1 R2 R1 W2 W9")]);
    let a = &result.tenants[0];
    assert_eq!((a.read_hits, a.block_reads), (1, 5));
    assert_eq!((a.ssd_writes.promotion, a.ssd_writes.fill, a.ssd_writes.guest_write), (2, 0, 1));
    // What is dirty is written back when the tenant goes.
    assert_eq!((a.backing_writes, a.backing_reads), (2, 6));
}

#[test]
fn unified_is_one_cache() {
    let plan = plan(&["a", "b"], "unified", 3);
    // b comes between: a's 1 leaves for b's third block.
    let (a, b) = (trace("R1 R1 W9 R1"), trace("R1 R2 R3"));
    let result = run(&plan, &[a, b]);
    // At each time a comes before b: 1a | 1b, 1a | 2b, 9a (1b leaves) | 3b (1a leaves), 1a misses.
    assert_eq!((result.tenants[0].read_hits, result.tenants[1].read_hits), (1, 0));
    assert_eq!(result.total.ssd_writes.total, 6);
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |plan: &TenantsPlan, count: usize| {
        let sources: Vec<_> =
            (0..count).map(|_| || Ok::<_, Infallible>(Requests(trace("R1").into_iter()))).collect();
        simulate_tenants(plan, &sources, |_| {}).err()
    };
    let good = plan(&["a", "b"], "static", 10);
    assert!(error(&good, 2).is_none());
    assert!(matches!(error(&good, 1), Some(TenantsError::SourceCount { tenants: 2, sources: 1 })));
    assert!(matches!(error(&plan(&[], "static", 10), 0), Some(TenantsError::NoTenant)));
    assert!(matches!(error(&plan(&["a", "a"], "static", 10), 2), Some(TenantsError::SameName(_))));
    assert!(matches!(error(&plan(&["a"], "nobody", 10), 1), Some(TenantsError::UnknownAllocator(_))));
    assert!(matches!(error(&plan(&["a"], "static", 0), 1), Some(TenantsError::CacheSize { blocks: 0 })));
    let mut endless = plan(&["a"], "static", 10);
    endless.tenants[0].repeat = true;
    assert!(matches!(error(&endless, 1), Some(TenantsError::Tenant { .. })));
    let mut still = plan(&["a"], "static", 10);
    still.tenants[0].pace = Pace::Open { rate: 0.0 };
    assert!(matches!(error(&still, 1), Some(TenantsError::Tenant { .. })));
    let mut epoch = plan(&["a"], "static", 10);
    epoch.caching.epoch_seconds = Some(0.0);
    assert!(matches!(error(&epoch, 1), Some(TenantsError::EmptyEpoch)));
}

/// Requests of eight blocks that begin anywhere: half of the blocks hit, but seldom all of a request, which no curve over blocks tells.
#[test]
fn a_tenant_whose_predictions_are_wrong_is_sized_by_measurement_where_that_is_wanted() {
    let mut state = 1u64;
    let mut anywhere = |at: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (offset, len) = ((state >> 33) % 400 * BLOCK, 8 * BLOCK as u32);
        Request { time_ns: at * 1_000_000_000, volume: 0, kind: RequestKind::Read, offset, len }
    };
    let trace = [(0..2000).map(&mut anywhere).collect()];
    let mut plan = plan(&["a"], "eci", 200);
    (plan.ssd, plan.backing) = (slow(1), slow(10));
    // What came as a multiple of what was expected, in the mean of the epochs from the sixth on; and whether all tell of measurement.
    let mut run = |corrected: bool| {
        plan.corrected = corrected;
        let mut rows = run(&plan, &trace).decisions;
        rows.retain(|row| (500.0..1900.0).contains(&row.seconds));
        let ratio =
            |row: &DecisionRow| row.achieved.latency.zip(row.predicted_latency).map(|(came, it)| came / it);
        let ratios: Vec<f64> = rows.iter().map(|row| ratio(row).expect("eci predicts")).collect();
        let tell = rows.iter().all(|row| row.reason.contains("sized by measurement"));
        (ratios.iter().sum::<f64>() / ratios.len() as f64, tell)
    };
    let (paper, corrected) = (run(false), run(true));
    assert!(paper.0 > 1.3 && !paper.1, "{paper:?}");
    assert!((0.9..1.1).contains(&corrected.0) && corrected.1, "{corrected:?}");
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0..4u32, 0..60u64, 1..5u64, 0..40u64);
    prop::collection::vec(request, 0..150).prop_map(|list| {
        let mut now = 0;
        list.into_iter()
            .map(|(kind, block, blocks, gap)| {
                now += gap * 100_000_000;
                let kind = match kind {
                    0 => RequestKind::Write,
                    1 if block == 7 => RequestKind::Discard,
                    _ => RequestKind::Read,
                };
                let (offset, len) = (block * BLOCK, (blocks * BLOCK) as u32);
                Request { time_ns: now, volume: (block % 2) as u32, kind, offset, len }
            })
            .collect()
    })
}

/// Two blocks of cache before a backing that takes 100 s to write one, and serves two at a time, of which one is written back.
#[test]
fn nobody_waits_for_dirty_blocks_and_what_finds_no_room_goes_past_them() {
    let mut plan = plan(&["a"], "static", 2);
    plan.tenants[0].write_policy = ConfiguredPolicy::Fixed(WritePolicy::WriteBack);
    plan.backing = slow_at_once(100, 2);
    // 30 and 40 have 10 and 20 leave, which wait for being written back, more than may. 50 finds no room, 40 is there.
    let result = run(&plan, &[trace("W10 W20 W30 W40 W50 W40")]);
    let tenant = &result.tenants[0];
    assert_eq!((tenant.ssd_writes.guest_write, tenant.backing_writes), (5, 5));
    let waited = tenant.mean_write_latency * 6.0;
    assert!((100.0..100.01).contains(&waited), "{waited}");
    // Once the first is written back there is room again.
    let later = run(&plan, &[trace("W10 W20 W30 W40 R40 R40 R40 R40 W50")]);
    assert_eq!(later.tenants[0].ssd_writes.guest_write, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// One tenant alone has the same hits and the same writes as in the simulation of one cache.
    #[test]
    fn one_tenant_alone_is_a_plain_cache(requests in requests(), blocks in 1..80u64, policy in 0..4usize) {
        let write = [WritePolicy::WriteBack, WritePolicy::WriteThrough, WritePolicy::WriteThroughNoAllocate, WritePolicy::ReadOnly][policy];
        let mut shared = plan(&["a"], "static", blocks);
        shared.tenants[0].write_policy = ConfiguredPolicy::Fixed(write);
        // A backing that takes writes at once: else some find no room, as long as what is dirty waits for being written back.
        shared.backing = slow(0);
        let shared = run(&shared, std::slice::from_ref(&requests));
        let alone = Plan::new(vec![RunSpec { caching: Default::default(), write, blocks }]);
        let alone = simulate(Requests(requests.into_iter()), &alone, None, |_| {}).expect("it can be run");
        let (shared, totals) = (&shared.tenants[0], &alone.runs[0].totals);
        prop_assert_eq!(shared.read_hits, totals.read_hits);
        prop_assert_eq!(shared.ssd_writes.total, totals.ssd_writes.total);
        prop_assert_eq!(shared.block_reads - shared.read_hits, totals.backing_reads);
        // What is cached between missing blocks is read with them.
        prop_assert!(shared.backing_reads >= totals.backing_reads && shared.backing_reads <= shared.block_reads);
        // The run ends with its tenant, whose dirty blocks are written back; the plain cache keeps them. Nor does it write neighbours back with those that leave, which may be written anew.
        let all = totals.backing_writes + alone.runs[0].dirty_blocks;
        prop_assert!(shared.backing_writes >= all && shared.backing_writes <= totals.block_writes.max(all));
        prop_assert!(write == WritePolicy::WriteBack || shared.backing_writes == all);
    }

    /// Whatever the allocator: every request is served once, no more is held than there is, and a run repeats itself.
    #[test]
    fn all_allocators_keep_the_books(
        traces in prop::collection::vec(requests(), 1..4), blocks in 4..80u64, which in 0..NAMES.len(), budget in prop::option::of(1..200u64),
        corrected in any::<bool>(),
    ) {
        let names = ["a", "b", "c"];
        let mut plan = plan(&names[..traces.len()], NAMES[which], blocks);
        plan.caching.epoch_seconds = Some(7.0);
        plan.tenants[0].start_seconds = 11.0;
        plan.corrected = corrected;
        plan.budget = budget.map(|blocks| WriteBudget { bytes: (blocks * BLOCK) as f64, period_seconds: 1e9 });
        let result = run(&plan, &traces);
        for (tenant, requests) in result.tenants.iter().zip(&traces) {
            let (mut reads, mut writes) = (0, 0);
            for request in requests {
                reads += u64::from(request.kind == RequestKind::Read);
                writes += u64::from(request.kind == RequestKind::Write);
            }
            prop_assert_eq!((tenant.requests, tenant.read_requests), (reads + writes, reads));
            prop_assert!(tenant.read_hits <= tenant.block_reads);
        }
        // That no more is held than there is, the run itself asserts after every request; rows that began together end together, and tell it too.
        for together in result.decisions.chunk_by(|one, next| one.seconds == next.seconds && one.tenant < next.tenant) {
            let held: u64 = together.iter().map(|row| u64::from(row.occupied_blocks)).sum();
            prop_assert!(held <= blocks, "{held} of {blocks} at {}", together[0].seconds);
        }
        if let Some(budget) = budget {
            // A request that began within the budget may end beyond it.
            prop_assert!(result.total.ssd_writes.total <= budget + 5);
        }
        prop_assert_eq!(result.failed_decisions, 0, "{:?}", result.failure);
        prop_assert_eq!(&run(&plan, &traces), &result);
    }
}
