//! The engine on cases whose answer is known beforehand.
//!
//! The thesis on caching for containers counts hits and evictions of a sequential read; the others are the promises of the data path, each
//! shown on the smallest case that could break it.

use larder_engine::{
    CACHE_ERRORS_MAX, EngineConfig, IoError, Request, STAGE_BYTES_BEHIND, STAGE_BYTES_MAX, Target, TenantId,
    TenantStats, VolumeId, WritePolicy,
};
use larder_io::sim::{FaultKind, FaultModel, HostConfig, PendingOp, Rig, Rng, SimHost, Transfer, ask};

const BLOCK: u64 = 4096;

fn host_config(cache_blocks: u32) -> HostConfig {
    let engine = EngineConfig { block_bytes: BLOCK as u32, cache_align: 512, cache_blocks };
    HostConfig { engine, seed: 1, cache: FaultModel::default(), take_max: usize::MAX }
}

/// One tenant with the whole cache, and one volume of `blocks` blocks.
fn rig(cache_blocks: u32, blocks: u64) -> (Rig, TenantId, VolumeId) {
    let mut rig = Rig::new(host_config(cache_blocks));
    let tenant = rig.add_tenant(cache_blocks, WritePolicy::WriteThrough);
    let volume = rig.add_volume(tenant, blocks * BLOCK, FaultModel::default());
    (rig, tenant, volume)
}

fn read_blocks(rig: &mut Rig, volume: VolumeId, blocks: impl IntoIterator<Item = u64>) {
    for block in blocks {
        assert_eq!(rig.run(ask::read(volume, block * BLOCK, BLOCK)), Ok(()));
    }
}

/// Hits, misses and evictions.
fn counts(stats: TenantStats) -> (u64, u64, u64) {
    (stats.read_hits, stats.read_misses, stats.evictions)
}

fn backing_reads(rig: &mut Rig, volume: VolumeId) -> u64 {
    rig.host().backing(volume).started(FaultKind::Read)
}

fn pending_on_cache(rig: &mut Rig) -> Option<PendingOp> {
    pending_on_cache_of(rig.host())
}

fn pending_on_cache_of(host: &SimHost) -> Option<PendingOp> {
    host.pending().into_iter().find(|p| p.op.target == Target::Cache)
}

/// Read 131,072 blocks in order, twice, `step` blocks at a time; the counts after each pass.
fn thesis(cache_blocks: u32, step: u64) -> [(u64, u64, u64); 2] {
    let mut host = SimHost::new(host_config(cache_blocks));
    let tenant = host.add_tenant(cache_blocks, WritePolicy::WriteThrough);
    let volume = host.add_volume(tenant, 131_072 * BLOCK, FaultModel::default());
    [(); 2].map(|()| {
        for block in (0..131_072).step_by(step as usize) {
            let id = host.free_id();
            let request = ask::read(volume, block * BLOCK, step * BLOCK);
            host.submit(Request { id, ..request }, Vec::new());
            while host.step() {}
            assert!(host.take_done().iter().all(|d| d.result.is_ok()));
        }
        host.engine().self_check();
        counts(host.engine().stats(tenant))
    })
}

#[test]
fn two_sequential_passes_that_fit() {
    assert_eq!(thesis(524_288, 1), [(0, 131_072, 0), (131_072, 131_072, 0)]);
    assert_eq!(thesis(524_288, 16), [(0, 131_072, 0), (131_072, 131_072, 0)]);
}

#[test]
fn two_sequential_passes_that_do_not_fit() {
    assert_eq!(thesis(128_000, 1), [(0, 131_072, 3072), (0, 262_144, 134_144)]);
    assert_eq!(thesis(128_000, 16), [(0, 131_072, 3072), (0, 262_144, 134_144)]);
}

#[test]
fn concurrent_misses_of_one_block_read_the_backing_once() {
    let (mut rig, tenant, volume) = rig(8, 8);
    rig.submit(ask::read(volume, BLOCK, BLOCK));
    rig.submit(ask::read(volume, BLOCK + 512, 1024));
    let ended = rig.settle();
    assert_eq!(ended.iter().map(|d| d.result).collect::<Vec<_>>(), [Ok(()), Ok(())]);
    assert_eq!(backing_reads(&mut rig, volume), 1);
    assert_eq!((counts(rig.stats(tenant)), rig.stats(tenant).backing_reads), ((1, 1, 0), 1));
}

#[test]
fn a_block_being_read_is_not_evicted() {
    let mut rig = Rig::new(host_config(2));
    let [a, b] = [(); 2].map(|()| rig.add_tenant(2, WritePolicy::WriteThrough));
    let [va, vb] = [a, b].map(|t| rig.add_volume(t, 4 * BLOCK, FaultModel::default()));
    read_blocks(&mut rig, va, [0, 1]);
    rig.submit(ask::read(va, 0, BLOCK));
    let hit = pending_on_cache(&mut rig).expect("the block is read from the cache");
    rig.set_quota(a, 0);
    rig.trim(100);
    assert_eq!(rig.host().engine().occupied(a), 1, "the other block left");
    // The free slot goes to one block of the other tenant; there is none for the second.
    rig.submit(ask::read(vb, 0, BLOCK));
    rig.submit(ask::read(vb, BLOCK, BLOCK));
    for other in rig.host().pending().iter().filter(|p| p.op.id != hit.op.id) {
        rig.finish(other.op.id);
    }
    rig.trim(100);
    assert_eq!(rig.host().engine().occupied(a), 1);
    let ended = rig.finish(hit.op.id);
    assert_eq!(ended.iter().map(|d| d.result).collect::<Vec<_>>(), [Ok(())]);
    rig.settle();
    rig.trim(100);
    assert_eq!(rig.host().engine().occupied(a), 0, "nothing holds it any more");
    read_blocks(&mut rig, vb, [0, 1, 0, 1]);
    assert_eq!(rig.host().engine().occupied(b), 2);
}

#[test]
fn a_failing_cache_device_costs_hits_only() {
    let (mut rig, tenant, volume) = rig(16, 64);
    read_blocks(&mut rig, volume, 0..16);
    for kind in [FaultKind::Read, FaultKind::Write] {
        rig.host().cache().fail_range(kind, 0..u64::MAX);
    }
    read_blocks(&mut rig, volume, (0..64).cycle().take(CACHE_ERRORS_MAX as usize));
    assert_eq!(rig.run(ask::write(volume, 0, 8 * BLOCK)), Ok(()));
    assert!(rig.host().engine().cache_failed());
    let used = |rig: &mut Rig| {
        [FaultKind::Read, FaultKind::Write].map(|kind| rig.host().cache().started(kind)).iter().sum::<u64>()
    };
    let (before, hits) = (used(&mut rig), rig.stats(tenant).read_hits);
    read_blocks(&mut rig, volume, 0..64);
    assert_eq!(rig.run(ask::write(volume, 0, 64 * BLOCK)), Ok(()));
    read_blocks(&mut rig, volume, 0..64);
    assert_eq!((used(&mut rig), rig.stats(tenant).read_hits), (before, hits));
    while rig.trim(1) {}
    assert_eq!((rig.host().engine().occupied(tenant), rig.host().pool().len()), (0, 16));
}

#[test]
fn a_failing_backing_is_the_error_of_one_request() {
    let (mut rig, tenant, volume) = rig(8, 8);
    rig.host().backing(volume).fail_next(FaultKind::Read, 1);
    rig.submit(ask::read(volume, 0, BLOCK));
    rig.submit(ask::read(volume, 0, 512));
    rig.submit(ask::read(volume, BLOCK, BLOCK));
    let mut ended: Vec<_> =
        rig.settle().iter().map(|d| (d.request.offset, d.request.len, d.result)).collect();
    ended.sort_by_key(|&(offset, len, _)| (offset, len));
    assert_eq!(ended, [(0, 512, Ok(())), (0, BLOCK, Err(IoError::Io)), (BLOCK, BLOCK, Ok(()))]);
    assert_eq!(rig.host().engine().occupied(tenant), 1, "nothing of the failed block is cached");
    let (before, hits) = (backing_reads(&mut rig, volume), rig.stats(tenant).read_hits);
    read_blocks(&mut rig, volume, [0]);
    assert_eq!((backing_reads(&mut rig, volume), rig.stats(tenant).read_hits), (before + 1, hits));
}

#[test]
fn a_bad_sector_fails_only_requests_that_want_it() {
    let (mut rig, _, volume) = rig(8, 8);
    rig.host().backing(volume).fail_range(FaultKind::Read, 512..1024);
    assert_eq!(rig.run(ask::read(volume, 0, 512)), Ok(()));
    assert_eq!(rig.run(ask::read(volume, 0, BLOCK)), Err(IoError::Io));
    assert_eq!(rig.run(ask::read(volume, 1024, BLOCK)), Ok(()));
}

#[test]
fn a_failed_write_is_not_cached() {
    for policy in [WritePolicy::WriteThrough, WritePolicy::ReadOnly] {
        let (mut rig, tenant, volume) = rig(8, 8);
        rig.set_write_policy(tenant, policy);
        read_blocks(&mut rig, volume, [0]);
        for block in [0, 1] {
            rig.host().backing(volume).fail_next(FaultKind::Write, 1);
            assert!(rig.run(ask::write(volume, block * BLOCK, BLOCK)).is_err());
        }
        let before = backing_reads(&mut rig, volume);
        read_blocks(&mut rig, volume, [0, 1]);
        assert_eq!(backing_reads(&mut rig, volume), before + 2);
    }
}

/// A backing that fails a flush may have lost what it acknowledged: what the cache holds of it is no longer known to be true.
#[test]
fn a_failed_flush_costs_the_volume_its_cached_blocks_and_no_other() {
    let (mut rig, tenant, volume) = rig(64, 16);
    let other = rig.add_volume(tenant, 16 * BLOCK, FaultModel::default());
    for v in [volume, other] {
        read_blocks(&mut rig, v, 0..16);
    }
    rig.host().backing(volume).fail_next(FaultKind::Flush, 1);
    assert_eq!(rig.run(ask::flush(volume)), Err(IoError::Io));
    let before = backing_reads(&mut rig, volume);
    read_blocks(&mut rig, volume, 0..4);
    assert_eq!(backing_reads(&mut rig, volume) - before, 4, "served from the backing, at once");
    while rig.trim(1) {}
    assert_eq!(rig.host().engine().occupied(tenant), 16, "the other volume keeps its blocks");
    let hits = rig.stats(tenant).read_hits;
    read_blocks(&mut rig, other, 0..16);
    read_blocks(&mut rig, volume, [1, 1]);
    assert_eq!(rig.stats(tenant).read_hits - hits, 17, "the volume is cached again");
}

#[test]
fn a_smaller_quota_evicts_the_coldest() {
    let (mut rig, tenant, volume) = rig(8, 8);
    read_blocks(&mut rig, volume, (0..8).chain([2, 5]));
    rig.set_quota(tenant, 4);
    assert!(rig.trim(3), "one more is to go");
    assert!(!rig.trim(3));
    let before = counts(rig.stats(tenant));
    assert_eq!((before.2, rig.host().engine().occupied(tenant)), (4, 4));
    read_blocks(&mut rig, volume, [2, 5, 6, 7]);
    assert_eq!(counts(rig.stats(tenant)), (before.0 + 4, before.1, 4));
    read_blocks(&mut rig, volume, [0, 1, 3, 4]);
    assert_eq!(counts(rig.stats(tenant)), (before.0 + 4, before.1 + 4, 8));
}

#[test]
fn a_partial_hit_is_one_read_of_the_backing_where_little_lies_between() {
    let (mut rig, tenant, volume) = rig(16, 16);
    read_blocks(&mut rig, volume, [1, 4, 5]);
    let before = backing_reads(&mut rig, volume);
    assert_eq!(rig.run(ask::read(volume, 0, 8 * BLOCK)), Ok(()));
    let stats = rig.stats(tenant);
    assert_eq!((stats.read_hits, stats.read_misses, stats.backing_reads), (3, 3 + 5, 3 + 8));
    assert_eq!(backing_reads(&mut rig, volume), before + 1, "blocks 0 to 7");
    assert_eq!((stats.ssd_fill_blocks, rig.host().engine().occupied(tenant)), (8, 8), "each block once");
    assert_eq!(rig.run(ask::read(volume, 0, 8 * BLOCK)), Ok(()));
    assert_eq!(rig.stats(tenant).read_hits, 3 + 8);
}

#[test]
fn a_partial_hit_reads_what_is_missing_and_no_more_where_much_lies_between() {
    let (mut rig, tenant, volume) = rig(16, 16);
    // Not in the middle only: what is cached before the first that is missing, and behind the last, is not read either.
    read_blocks(&mut rig, volume, [0, 2, 3, 4, 5, 6, 9, 10, 11, 12, 14, 15]);
    let (before, stats) = (backing_reads(&mut rig, volume), rig.stats(tenant));
    assert_eq!(rig.run(ask::read(volume, 0, 16 * BLOCK)), Ok(()));
    assert_eq!(backing_reads(&mut rig, volume), before + 2, "block 1, and blocks 7 to 13");
    let now = rig.stats(tenant);
    assert_eq!((now.read_misses, now.backing_reads), (stats.read_misses + 4, stats.backing_reads + 8));
}

#[test]
fn what_lies_between_missing_blocks_costs_no_guest_an_error() {
    let (mut rig, tenant, volume) = rig(16, 16);
    read_blocks(&mut rig, volume, [1, 2]);
    rig.host().backing(volume).fail_range(FaultKind::Read, BLOCK..BLOCK + 512);
    let (before, stats) = (backing_reads(&mut rig, volume), rig.stats(tenant));
    assert_eq!(
        rig.run(ask::read(volume, 0, 5 * BLOCK)),
        Ok(()),
        "the cache has the block that is not readable"
    );
    assert_eq!(backing_reads(&mut rig, volume), before + 3, "all at once, then each hole");
    let now = rig.stats(tenant);
    assert_eq!((now.read_hits, now.read_misses), (stats.read_hits + 2, stats.read_misses + 3));
    assert_eq!(now.backing_errors, stats.backing_errors + 1);
    assert_eq!(rig.run(ask::read(volume, 0, 5 * BLOCK)), Ok(()));
}

#[test]
fn what_does_not_enter_is_read_at_once_too() {
    let (mut rig, tenant, volume) = rig(16, 16);
    read_blocks(&mut rig, volume, [1, 2]);
    rig.set_caching(tenant, "larc".parse().expect("known"));
    let before = backing_reads(&mut rig, volume);
    assert_eq!(rig.run(ask::read(volume, 0, 5 * BLOCK)), Ok(()));
    assert_eq!(backing_reads(&mut rig, volume), before + 1, "blocks 0 to 4");
    assert_eq!((rig.stats(tenant).ssd_fill_blocks, rig.host().engine().occupied(tenant)), (2, 2));
    // Of the first and the last block only a part is wanted, and no more is read of what does not enter.
    assert_eq!(rig.run(ask::read(volume, 7 * BLOCK + 512, 2 * BLOCK)), Ok(()));
    read_blocks(&mut rig, volume, [8]);
    assert_eq!(rig.host().engine().occupied(tenant), 3, "LARC lets in what is wanted again");
    let before = backing_reads(&mut rig, volume);
    assert_eq!(rig.run(ask::read(volume, 6 * BLOCK + 512, 4 * BLOCK)), Ok(()));
    assert_eq!(backing_reads(&mut rig, volume), before + 3, "a part of block 6, blocks 7 to 9, a part of 10");
}

/// Readers wait for a cache device that is behind with its writes, and movers rest: what is written to it by nobody is not to look like that.
#[test]
fn reads_of_which_nothing_enters_do_not_make_the_cache_device_seem_behind() {
    const PART: u64 = 1 << 20;
    let blocks = 12 * PART / BLOCK;
    let mut host = SimHost::new(host_config(2 * blocks as u32));
    let [stream, other] = [(); 2].map(|()| host.add_tenant(blocks as u32, WritePolicy::WriteThrough));
    let big = host.add_volume(stream, blocks * BLOCK, FaultModel::default());
    let small = host.add_volume(other, BLOCK, FaultModel::default());
    let read = |host: &mut SimHost, request| {
        let id = host.free_id();
        host.submit(Request { id, ..request }, Vec::new());
    };
    for block in (1..blocks).step_by(2) {
        read(&mut host, ask::read(big, block * BLOCK, BLOCK));
        while host.step() {}
    }
    // With a mover no miss enters.
    host.set_mover(stream, true);
    (0..12).for_each(|at| read(&mut host, ask::read(big, at * PART, PART)));
    let staged = host.memory().stage_bytes();
    assert!(staged > 0 && staged <= STAGE_BYTES_BEHIND, "{staged} bytes: the first are read at once");
    host.take_done();
    read(&mut host, ask::read(small, 0, BLOCK));
    let missed = host.pending().into_iter().find(|pending| pending.op.target == Target::Backing(small));
    host.finish(missed.expect("it is missing").op.id);
    assert!(
        host.take_done().iter().any(|done| done.request.volume == small),
        "the reader waits for no write"
    );
}

#[test]
fn write_through_fills_and_read_only_invalidates() {
    let (mut rig, tenant, volume) = rig(8, 8);
    assert_eq!(rig.run(ask::write(volume, 0, 2 * BLOCK)), Ok(()));
    read_blocks(&mut rig, volume, [0, 1]);
    assert_eq!(counts(rig.stats(tenant)), (2, 0, 0));
    rig.set_write_policy(tenant, WritePolicy::ReadOnly);
    assert_eq!(rig.run(ask::write(volume, 512, 512)), Ok(()));
    let stats = rig.stats(tenant);
    assert_eq!((stats.write_hits, stats.write_misses, stats.invalidations), (1, 2, 1));
    read_blocks(&mut rig, volume, [0, 1]);
    assert_eq!(counts(rig.stats(tenant)), (3, 1, 0));
}

#[test]
fn far_more_requests_than_locks_all_end() {
    let (mut rig, _, volume) = rig(16, 32);
    let mut rng = Rng::new(9);
    let mut ended = 0;
    for _ in 0..1500 {
        let (offset, len) = (rng.below(31) * BLOCK + rng.below(8) * 512, (1 + rng.below(8)) * 512);
        let make = if rng.chance(0.5) { ask::read } else { ask::write };
        ended += rig.submit(make(volume, offset, len)).len();
    }
    assert_eq!(ended + rig.settle().len(), 1500);
}

#[test]
fn memory_for_fills_is_bounded() {
    let part = 1 << 20;
    let requests = STAGE_BYTES_MAX / part + 10;
    let blocks = (requests * part / BLOCK) as u32;
    let mut host = SimHost::new(host_config(blocks));
    let tenant = host.add_tenant(blocks, WritePolicy::WriteThrough);
    let volume = host.add_volume(tenant, requests * part, FaultModel::default());
    for at in 0..requests {
        let id = host.free_id();
        host.submit(Request { id, ..ask::read(volume, at * part, part) }, Vec::new());
    }
    let staged = host.memory().stage_bytes();
    assert!(staged > STAGE_BYTES_MAX / 2 && staged <= STAGE_BYTES_MAX, "{staged} bytes are staged");
    while host.step() {}
    let done = host.take_done();
    assert_eq!(done.iter().filter(|d| d.result.is_ok()).count() as u64, requests);
    assert_eq!((host.engine().in_flight(), host.memory().stages()), (0, 0));
}

/// A client that reads one piece after the other, from a backing that is faster than the cache device.
#[test]
fn a_reader_waits_for_a_cache_device_that_is_behind_and_is_not_served_past_it() {
    let (part, requests) = (1 << 20, 100);
    let blocks = requests * part / BLOCK;
    let mut host = SimHost::new(host_config(blocks as u32));
    let tenant = host.add_tenant(blocks as u32, WritePolicy::WriteThrough);
    let volume = host.add_volume(tenant, requests * part, FaultModel::default());
    for at in 0..requests {
        let id = host.free_id();
        host.submit(Request { id, ..ask::read(volume, at * part, part) }, Vec::new());
        while let Some(op) = host.pending().into_iter().find(|p| p.op.target != Target::Cache) {
            host.finish(op.op.id);
        }
        let staged = host.memory().stage_bytes();
        assert!(staged <= STAGE_BYTES_BEHIND + part, "the reader ran ahead");
        let mut answered = !host.take_done().is_empty();
        assert_eq!(answered, staged <= STAGE_BYTES_BEHIND, "with {staged} bytes staged");
        while !answered {
            let op = pending_on_cache_of(&host).expect("the reader waits for a write to the cache");
            host.finish(op.op.id);
            answered = !host.take_done().is_empty();
        }
    }
    while host.step() {}
    assert_eq!(host.engine().occupied(tenant), blocks as u32, "every block was cached");
}

/// The choices of one run, and after it those of the next, in depth-first order.
#[derive(Default)]
struct Choices {
    /// Chosen, of how many.
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, of));
        }
        self.at += 1;
        self.made[self.at - 1].0
    }

    /// Go on to the next run. False if this was the last.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.made.pop() {
            if chosen + 1 < of {
                self.made.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

/// What two requests that meet on one block find.
#[derive(Clone, Copy, Debug)]
struct Scene {
    cached: bool,
    policy: WritePolicy,
    cache_align: u32,
}

impl Scene {
    fn all() -> impl Iterator<Item = Self> {
        let policies = [WritePolicy::WriteThrough, WritePolicy::ReadOnly];
        let scene = move |n: usize| Self {
            cached: n & 1 == 0,
            policy: policies[n >> 1 & 1],
            cache_align: [512, 4096][n >> 2 & 1],
        };
        (0..8).map(scene)
    }

    /// Data moves only when the run says so.
    fn rig(self) -> (Rig, VolumeId) {
        let model = FaultModel { transfer: Transfer::Completion, ..FaultModel::default() };
        let mut config = host_config(2);
        config.engine.cache_align = self.cache_align;
        config.cache = model.clone();
        let mut rig = Rig::new(config);
        let tenant = rig.add_tenant(2, self.policy);
        let volume = rig.add_volume(tenant, 2 * BLOCK, model);
        if self.cached {
            read_blocks(&mut rig, volume, [0]);
        }
        (rig, volume)
    }
}

type Ask = fn(VolumeId) -> Request;

/// One run: the requests come in this order; when they come, when each operation moves its data and when it ends is chosen.
fn run_one(scene: Scene, asks: &[Ask], choices: &mut Choices) {
    let (mut rig, volume) = scene.rig();
    let mut left = asks.iter();
    loop {
        let ops = rig.host().pending();
        let more = usize::from(left.len() > 0);
        if ops.len() + more == 0 {
            break;
        }
        match choices.choose(ops.len() + more) {
            n if n < ops.len() && ops[n].transferred => drop(rig.finish(ops[n].op.id)),
            n if n < ops.len() => rig.host().transfer(ops[n].op.id),
            _ => drop(left.next().map(|ask| rig.submit(ask(volume)))),
        }
    }
    rig.check_idle();
    // The first may be a hit or fill the block; the second must then say the same from the cache.
    read_blocks(&mut rig, volume, [0, 0]);
}

/// Every interleaving of these requests, in every scene. Returns how many there were.
fn run_all(asks: &[Ask]) -> usize {
    let mut runs = 0;
    for scene in Scene::all() {
        let mut choices = Choices::default();
        loop {
            run_one(scene, asks, &mut choices);
            runs += 1;
            if !choices.advance() {
                break;
            }
        }
    }
    runs
}

const READS: [Ask; 2] = [|v| ask::read(v, 0, BLOCK), |v| ask::read(v, 512, 512)];

const WRITES: [Ask; 6] = [
    |v| ask::write(v, 0, BLOCK),
    |v| ask::write(v, 512, 512),
    |v| ask::write(v, 2048, 512),
    |v| ask::write(v, 512, BLOCK),
    |v| ask::discard(v, 0, BLOCK),
    |v| ask::write_zeroes(v, 512, 1024),
];

#[test]
fn a_write_that_overtakes_a_fill_leaves_no_old_bytes_in_any_interleaving() {
    let mut runs = 0;
    for read in READS {
        for write in WRITES {
            runs += run_all(&[read, write]) + run_all(&[write, read]);
        }
    }
    assert!(runs > 1000, "only {runs} interleavings: nothing ran at once");
}

#[test]
fn two_writes_leave_the_cache_and_the_backing_equal_in_any_interleaving() {
    let mut runs = 0;
    for first in WRITES {
        for second in WRITES {
            runs += run_all(&[first, second]);
        }
    }
    assert!(runs > 1000, "only {runs} interleavings: nothing ran at once");
}

#[test]
fn partitions_lend_what_they_do_not_use_and_get_it_back() {
    let mut rig = Rig::new(host_config(1000));
    let tenants = [(); 2].map(|()| rig.add_tenant(500, WritePolicy::WriteThrough));
    let volumes = tenants.map(|tenant| rig.add_volume(tenant, 2000 * BLOCK, FaultModel::default()));
    let held = |rig: &mut Rig| tenants.map(|tenant| rig.host().engine().occupied(tenant));
    rig.host().set_lending(true);
    read_blocks(&mut rig, volumes[0], 0..900);
    assert_eq!(held(&mut rig), [900, 0], "nobody else wants it");
    read_blocks(&mut rig, volumes[1], 0..50);
    assert_eq!(held(&mut rig), [900, 50], "it is not taken before it is wanted");
    read_blocks(&mut rig, volumes[1], 50..450);
    let [lender, borrower] = held(&mut rig);
    assert!(borrower == 450 && lender <= 550 && lender + borrower >= 900, "{lender} {borrower}");
    read_blocks(&mut rig, volumes[1], 450..2000);
    let [lender, borrower] = held(&mut rig);
    assert!(borrower >= 500 && lender >= 436, "who has its quota takes from nobody: {lender} {borrower}");
    // A lower quota takes nothing away by itself; the end of lending does.
    rig.set_quota(tenants[0], 100);
    while rig.trim(64) {}
    assert_eq!(held(&mut rig)[0], lender);
    rig.host().set_lending(false);
    while rig.trim(64) {}
    assert_eq!(held(&mut rig), [100, 500]);
}

#[test]
fn who_has_paused_lends_to_who_hits_what_it_reads_and_gets_it_back() {
    let mut rig = Rig::new(host_config(1000));
    let tenants = [(); 2].map(|()| rig.add_tenant(500, WritePolicy::WriteThrough));
    let [paused, busy] = tenants.map(|tenant| rig.add_volume(tenant, 50_000 * BLOCK, FaultModel::default()));
    let held = |rig: &mut Rig| tenants.map(|tenant| rig.host().engine().occupied(tenant));
    let twice = |rig: &mut Rig, blocks: std::ops::Range<u64>| {
        blocks.step_by(2).for_each(|pair| (0..2).for_each(|_| read_blocks(rig, busy, pair..pair + 2)));
    };
    rig.host().set_lending(true);
    read_blocks(&mut rig, paused, 0..500);
    // Who hits nothing takes nothing, whoever pauses; nor who reads each block in two pieces.
    read_blocks(&mut rig, busy, 0..15_000);
    (15_000..16_000).for_each(|block| (0..2).for_each(|_| read_blocks(&mut rig, busy, block..block + 1)));
    assert_eq!(held(&mut rig), [500, 500]);
    twice(&mut rig, 16_000..18_000);
    let [lender, borrower] = held(&mut rig);
    assert!(lender < 300 && lender + borrower > 930, "{lender} {borrower}");
    read_blocks(&mut rig, paused, 0..600);
    let [lender, borrower] = held(&mut rig);
    assert!(lender >= 500 && borrower <= 500, "it has its quota again: {lender} {borrower}");
    // What both hit as often stays where it is.
    for pair in (18_000..19_000).step_by(2) {
        twice(&mut rig, pair..pair + 2);
        (0..2).for_each(|_| read_blocks(&mut rig, paused, pair..pair + 2));
    }
    let [one, other] = held(&mut rig);
    assert!(one.min(other) > 430, "{one} {other}");
    // A part that it keeps, however seldom it hits it; no more than is the most for the other.
    rig.host().set_bounds(tenants[0], 400, u32::MAX);
    twice(&mut rig, 19_000..29_000);
    assert_eq!(held(&mut rig)[0], 400);
    rig.host().set_bounds(tenants[0], 0, u32::MAX);
    rig.host().set_bounds(tenants[1], 0, 600);
    twice(&mut rig, 29_000..39_000);
    assert_eq!(held(&mut rig), [400, 600]);
}

#[test]
fn who_uses_what_it_holds_keeps_it_beside_one_that_hits_a_few_blocks_far_more_often() {
    let mut rig = Rig::new(host_config(1000));
    let tenants = [(); 2].map(|()| rig.add_tenant(500, WritePolicy::WriteThrough));
    let [steady, busy] = tenants.map(|tenant| rig.add_volume(tenant, 50_000 * BLOCK, FaultModel::default()));
    rig.host().set_lending(true);
    read_blocks(&mut rig, steady, 0..500);
    for round in 0..4000 {
        // Of ten blocks nine are hit, and one is never read again; the other tenant reads one of its own meanwhile.
        read_blocks(&mut rig, busy, round % 20 * 9..round % 20 * 9 + 9);
        read_blocks(&mut rig, busy, 1000 + round..1001 + round);
        read_blocks(&mut rig, steady, round % 500..round % 500 + 1);
    }
    assert_eq!(tenants.map(|tenant| rig.host().engine().occupied(tenant)), [500, 500]);
    assert_eq!(rig.stats(tenants[0]).read_hits, 4000);
}

#[test]
fn who_reads_all_that_it_holds_seldom_keeps_it_beside_a_scan_with_a_few_hot_blocks_until_it_pauses() {
    let mut rig = Rig::new(host_config(1000));
    let tenants = [(); 2].map(|()| rig.add_tenant(500, WritePolicy::WriteThrough));
    let [steady, busy] = tenants.map(|tenant| rig.add_volume(tenant, 200_000 * BLOCK, FaultModel::default()));
    let held = |rig: &mut Rig| tenants.map(|tenant| rig.host().engine().occupied(tenant));
    rig.host().set_lending(true);
    read_blocks(&mut rig, steady, 0..500);
    for round in 0..2000 {
        // What the steady one reads is older than eight times as long as the other takes to turn its own over.
        (0..2).for_each(|_| read_blocks(&mut rig, busy, 0..10));
        read_blocks(&mut rig, busy, 1000 + round * 60..1060 + round * 60);
        if round < 1000 {
            read_blocks(&mut rig, steady, round % 500..round % 500 + 1);
            assert_eq!(held(&mut rig)[0], 500, "round {round}");
        }
    }
    assert!(held(&mut rig)[0] < 200, "{:?}", held(&mut rig));
    assert_eq!(rig.stats(tenants[0]).read_hits, 1000);
}

#[test]
fn nobody_holds_more_than_is_the_most_for_it_however_much_is_free() {
    let mut rig = Rig::new(host_config(1000));
    let tenants = [(); 2].map(|()| rig.add_tenant(100, WritePolicy::WriteBack));
    let volumes = tenants.map(|tenant| rig.add_volume(tenant, 2000 * BLOCK, FaultModel::default()));
    let held = |rig: &mut Rig| tenants.map(|tenant| rig.host().engine().occupied(tenant));
    rig.host().set_lending(true);
    rig.host().set_bounds(tenants[0], 0, 300);
    read_blocks(&mut rig, volumes[0], 0..900);
    read_blocks(&mut rig, volumes[1], 0..500);
    assert_eq!(held(&mut rig), [300, 500]);
    // It is the policy's to say which: the last that came.
    let hits = rig.stats(tenants[0]).read_hits;
    read_blocks(&mut rig, volumes[0], 600..900);
    assert_eq!((rig.stats(tenants[0]).read_hits - hits, held(&mut rig)), (300, [300, 500]));
    // Less: what is above it leaves, though nobody wants its place. More: it grows.
    rig.host().set_bounds(tenants[0], 0, 200);
    while rig.trim(64) {}
    assert_eq!(held(&mut rig), [200, 500]);
    read_blocks(&mut rig, volumes[0], 0..300);
    assert_eq!(held(&mut rig), [200, 500]);
    rig.host().set_bounds(tenants[0], 0, 250);
    read_blocks(&mut rig, volumes[0], 300..600);
    assert_eq!(held(&mut rig), [250, 500]);
    // A quota goes before it, and others get theirs as ever.
    rig.set_quota(tenants[0], 280);
    read_blocks(&mut rig, volumes[0], 600..900);
    assert_eq!(held(&mut rig), [280, 500]);
    rig.set_quota(tenants[1], 720);
    read_blocks(&mut rig, volumes[1], 500..1500);
    assert_eq!(held(&mut rig), [280, 720]);
}

#[test]
fn another_replacement_keeps_what_is_cached_and_its_order() {
    for name in ["s3-fifo", "lirs", "larc", "arc", "clock", "lru"] {
        let (mut rig, tenant, volume) = rig(100, 1000);
        read_blocks(&mut rig, volume, 0..100);
        rig.set_caching(tenant, name.parse().unwrap());
        assert_eq!(rig.host().engine().occupied(tenant), 100, "{name}");
        read_blocks(&mut rig, volume, 0..100);
        assert_eq!(counts(rig.stats(tenant)), (100, 100, 0), "{name}");
        // Ghosts of one are none of another.
        read_blocks(&mut rig, volume, 200..500);
        rig.set_caching(tenant, "fifo".parse().unwrap());
        rig.set_caching(tenant, name.parse().unwrap());
        read_blocks(&mut rig, volume, 200..500);
        assert_eq!(rig.host().engine().occupied(tenant), 100, "{name}");
    }
    let (mut rig, tenant, volume) = rig(100, 1000);
    read_blocks(&mut rig, volume, (0..100).chain(0..10));
    rig.set_caching(tenant, "fifo".parse().unwrap());
    read_blocks(&mut rig, volume, 500..590);
    rig.set_caching(tenant, "lru".parse().unwrap());
    let before = rig.stats(tenant).read_hits;
    read_blocks(&mut rig, volume, 0..10);
    assert_eq!(rig.stats(tenant).read_hits - before, 10, "the ten used last are there");
}

#[test]
fn writes_that_do_not_allocate_keep_what_is_cached_up_to_date() {
    let (mut rig, tenant, volume) = rig(100, 1000);
    rig.set_write_policy(tenant, WritePolicy::WriteThroughNoAllocate);
    read_blocks(&mut rig, volume, 0..4);
    assert_eq!(rig.run(ask::write(volume, 0, 8 * BLOCK)), Ok(()));
    assert_eq!(rig.host().engine().occupied(tenant), 4);
    let before = backing_reads(&mut rig, volume);
    read_blocks(&mut rig, volume, 0..4);
    assert_eq!(backing_reads(&mut rig, volume), before, "they are hits, and the rig looks at the data");
}

#[test]
fn long_streams_of_reads_stay_out() {
    let (mut rig, tenant, volume) = rig(500, 1000);
    rig.host().set_stream_bypass(Some(64 * BLOCK));
    read_blocks(&mut rig, volume, 0..200);
    assert_eq!(rig.host().engine().occupied(tenant), 63, "what came before it was long is cached");
    let before = rig.stats(tenant).read_hits;
    read_blocks(&mut rig, volume, 0..200);
    assert_eq!(rig.stats(tenant).read_hits - before, 63, "what is cached is hit");
    // What jumps is no stream, and one large request is.
    read_blocks(&mut rig, volume, (300..400).rev());
    assert_eq!(rig.host().engine().occupied(tenant), 163);
    assert_eq!(rig.run(ask::read(volume, 500 * BLOCK, 100 * BLOCK)), Ok(()));
    assert_eq!(rig.host().engine().occupied(tenant), 163);
    rig.host().set_stream_bypass(None);
    read_blocks(&mut rig, volume, 600..700);
    assert_eq!(rig.host().engine().occupied(tenant), 263);
}

/// The mover comes, and all that it fills is there.
fn move_in(rig: &mut Rig) {
    rig.host().move_in();
    while rig.host().step() {}
    rig.host().engine().self_check();
}

#[test]
fn a_mover_fills_between_and_not_at_misses() {
    let (mut rig, tenant, volume) = rig(4, 16);
    rig.host().set_mover(tenant, true);
    read_blocks(&mut rig, volume, [1, 2, 1]);
    assert_eq!(rig.host().engine().occupied(tenant), 0);
    assert_eq!(counts(rig.host().engine().stats(tenant)), (0, 3, 0));
    move_in(&mut rig);
    // Neighbours are read together.
    assert_eq!((rig.host().engine().occupied(tenant), backing_reads(&mut rig, volume)), (2, 4));
    read_blocks(&mut rig, volume, [1, 2]);
    assert_eq!(rig.run(ask::write(volume, 2 * BLOCK, BLOCK)), Ok(()));
    assert_eq!(rig.run(ask::write(volume, 9 * BLOCK, BLOCK)), Ok(()));
    let stats = rig.host().engine().stats(tenant);
    assert_eq!((stats.read_hits, stats.write_hits, stats.write_misses), (2, 1, 1));
    assert_eq!((stats.ssd_fill_blocks, stats.ssd_guest_write_blocks), (2, 1));
    // What was written past the cache is wanted too; a mover that is dismissed leaves misses to themselves.
    move_in(&mut rig);
    assert_eq!(rig.host().engine().occupied(tenant), 3);
    rig.host().set_mover(tenant, false);
    read_blocks(&mut rig, volume, [5, 5]);
    assert_eq!(rig.host().engine().stats(tenant).read_hits, 3);
}

#[test]
fn what_a_mover_brings_takes_the_place_of_what_nobody_wants() {
    let (mut rig, tenant, volume) = rig(4, 32);
    rig.host().set_mover(tenant, true);
    read_blocks(&mut rig, volume, 0..4);
    move_in(&mut rig);
    read_blocks(&mut rig, volume, [1, 10, 12]);
    // As LRU: 0 and 2 make room, in whatever order; 1 and 3 stay.
    move_in(&mut rig);
    let before = rig.host().engine().stats(tenant);
    assert_eq!((before.evictions, before.ssd_fill_blocks), (2, 6));
    read_blocks(&mut rig, volume, [1, 3, 10, 12]);
    assert_eq!(rig.host().engine().stats(tenant).read_hits, before.read_hits + 4);
    // What was discarded is wanted no more.
    read_blocks(&mut rig, volume, [20]);
    assert_eq!(rig.run(ask::of(larder_engine::RequestKind::Discard, volume, 20 * BLOCK, BLOCK)), Ok(()));
    move_in(&mut rig);
    assert_eq!(rig.host().engine().stats(tenant).ssd_fill_blocks, before.ssd_fill_blocks);
}

#[test]
fn a_mover_brings_back_what_left_though_it_is_wanted() {
    let (mut rig, tenant, volume) = rig(4, 32);
    rig.host().set_write_policy(tenant, WritePolicy::ReadOnly);
    rig.host().set_mover(tenant, true);
    read_blocks(&mut rig, volume, [1, 2]);
    move_in(&mut rig);
    // Under `ro` a write takes its block out; the shadow holds it still.
    assert_eq!(rig.run(ask::write(volume, BLOCK, BLOCK)), Ok(()));
    assert_eq!(rig.host().engine().occupied(tenant), 1);
    move_in(&mut rig);
    read_blocks(&mut rig, volume, [1, 2]);
    assert_eq!(rig.host().engine().stats(tenant).read_hits, 2);
}
