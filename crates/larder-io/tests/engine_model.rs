//! Random operations on random volumes, against a plain model, over simulated devices.
//!
//! Requests overlap and run many at a time; completions come in any order; quotas, write policies and the free pool change at any moment. Each
//! reply is checked when it is given ([`Rig`]). The operations carry indices into what the setup made, so every shrunk
//! case is a valid one.

use larder_engine::{
    CachingSpec, EngineConfig, Request, RequestKind, SECTOR_BYTES, TenantId, TenantStats, VolumeId,
    WritePolicy,
};
use larder_io::sim::{Done, FaultKind, FaultModel, HostConfig, Rig, Rng, ask};
use larder_policy::spec::{AdmissionSpec, PolicySpec};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, TestRunner};

/// What a run starts with.
#[derive(Clone, Debug)]
struct Setup {
    block_bytes: u32,
    cache_align: u32,
    cache_blocks: u32,
    take_max: usize,
    tenants: Vec<TenantPlan>,
    volumes: Vec<VolumePlan>,
    seed: u64,
}

#[derive(Clone, Debug)]
struct TenantPlan {
    quota: Quota,
    policy: WritePolicy,
    caching: CachingSpec,
}

#[derive(Clone, Debug)]
struct VolumePlan {
    tenant: Index,
    blocks: u64,
    /// Sectors after the last whole block.
    tail: Index,
}

#[derive(Clone, Copy, Debug)]
enum Quota {
    Zero,
    Full,
    Part(Index),
}

#[derive(Clone, Debug)]
enum Op {
    Ask { kind: RequestKind, fua: bool, volume: Index, span: Span },
    AskBeyondTheEnd { volume: Index, misaligned: bool },
    Step(u8),
    Settle,
    SetQuota { tenant: Index, quota: Quota },
    SetPolicy { tenant: Index, policy: WritePolicy },
    Trim { budget: usize },
    SetTakeMax(usize),
}

/// A range of a volume.
#[derive(Clone, Debug)]
enum Span {
    /// Whole blocks, as far as the volume reaches.
    Blocks { first: Index, count: u64 },
    /// A few sectors near the start of a block: collides often.
    Near { block: Index, skip: u64, sectors: u64 },
    /// From one sector to another.
    Any { a: Index, b: Index },
}

/// Which devices fail, and how often.
#[derive(Clone, Debug, Default, PartialEq)]
struct Faults {
    cache: FaultModel,
    backing: FaultModel,
}

fn policies() -> impl Strategy<Value = WritePolicy> {
    prop_oneof![Just(WritePolicy::WriteThrough), Just(WritePolicy::ReadOnly)]
}

fn tenant_plans() -> impl Strategy<Value = TenantPlan> {
    (quotas(), policies(), cachings()).prop_map(|(quota, policy, caching)| TenantPlan {
        quota,
        policy,
        caching,
    })
}

/// Half of them LRU that lets every block in: most of the engine is reached most often that way.
fn cachings() -> impl Strategy<Value = CachingSpec> {
    let replacement = prop::sample::select(PolicySpec::online());
    let admission = prop::sample::select(AdmissionSpec::defaults());
    let any = (replacement, admission).prop_filter_map("LARC stands alone", |(replacement, admission)| {
        CachingSpec::new(replacement, admission).ok()
    });
    prop_oneof![Just(CachingSpec::default()), any]
}

fn quotas() -> impl Strategy<Value = Quota> {
    prop_oneof![1 => Just(Quota::Zero), 2 => Just(Quota::Full), 3 => any::<Index>().prop_map(Quota::Part)]
}

fn setups() -> impl Strategy<Value = Setup> {
    // A few are large enough for requests that run in more parts than may run at a time.
    let volume = (any::<Index>(), prop_oneof![40 => 0..8u64, 1 => 40..60u64], any::<Index>())
        .prop_map(|(tenant, blocks, tail)| VolumePlan { tenant, blocks, tail });
    (
        prop::sample::select(vec![4096, 8192, 65_536, 131_072]),
        prop::sample::select(vec![512, 4096]),
        1..20u32,
        1..32usize,
        prop::collection::vec(tenant_plans(), 1..4),
        prop::collection::vec(volume, 1..5),
        any::<u64>(),
    )
        .prop_map(|(block_bytes, cache_align, cache_blocks, take_max, tenants, volumes, seed)| Setup {
            block_bytes,
            cache_align,
            cache_blocks,
            take_max,
            tenants,
            volumes,
            seed,
        })
}

fn kinds() -> impl Strategy<Value = RequestKind> {
    prop_oneof![
        8 => Just(RequestKind::Read),
        6 => Just(RequestKind::Write),
        1 => Just(RequestKind::Flush),
        1 => Just(RequestKind::Discard),
        1 => any::<bool>().prop_map(|no_hole| RequestKind::WriteZeroes { no_hole }),
    ]
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![
        3 => (any::<Index>(), 1..5u64).prop_map(|(first, count)| Span::Blocks { first, count }),
        3 => (any::<Index>(), 0..12u64, 1..16u64)
            .prop_map(|(block, skip, sectors)| Span::Near { block, skip, sectors }),
        1 => any::<(Index, Index)>().prop_map(|(a, b)| Span::Any { a, b }),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        16 => (kinds(), any::<bool>(), any::<Index>(), spans())
            .prop_map(|(kind, fua, volume, span)| Op::Ask { kind, fua, volume, span }),
        1 => any::<(Index, bool)>()
            .prop_map(|(volume, misaligned)| Op::AskBeyondTheEnd { volume, misaligned }),
        10 => (1..6u8).prop_map(Op::Step),
        1 => Just(Op::Settle),
        1 => (any::<Index>(), quotas()).prop_map(|(tenant, quota)| Op::SetQuota { tenant, quota }),
        1 => (any::<Index>(), policies()).prop_map(|(tenant, policy)| Op::SetPolicy { tenant, policy }),
        1 => (0..4usize).prop_map(|budget| Op::Trim { budget }),
        1 => (0..8usize).prop_map(Op::SetTakeMax),
    ]
}

fn rates() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.02, 0.2, 1.0])
}

fn failing() -> impl Strategy<Value = FaultModel> {
    (rates(), rates(), any::<bool>(), any::<bool>()).prop_map(
        |(read_error, write_error, torn_writes, no_write_zeroes)| FaultModel {
            read_error,
            write_error,
            flush_error: write_error,
            discard_error: write_error,
            torn_writes,
            no_write_zeroes,
            ..FaultModel::default()
        },
    )
}

impl Quota {
    fn blocks(self, cache_blocks: u32) -> u32 {
        match self {
            Self::Zero => 0,
            Self::Full => cache_blocks,
            Self::Part(index) => index.index(cache_blocks as usize) as u32,
        }
    }
}

impl Span {
    /// Offset and length in bytes, inside a volume of `sectors` with blocks of `block` sectors.
    fn bytes(&self, sectors: u64, block: u64) -> (u64, u64) {
        let blocks = sectors.div_ceil(block) as usize;
        let (start, end) = match self {
            Self::Blocks { first, count } => {
                let first = first.index(blocks) as u64;
                (first * block, (first + count) * block)
            }
            Self::Near { block: at, skip, sectors: count } => {
                let start = at.index(blocks) as u64 * block + skip;
                (start, start + count)
            }
            Self::Any { a, b } => {
                let (a, b) = (a.index(sectors as usize) as u64, b.index(sectors as usize) as u64);
                (a.min(b), a.max(b) + 1)
            }
        };
        let (start, end) = (start.min(sectors), end.min(sectors));
        (start * SECTOR_BYTES, (end - start) * SECTOR_BYTES)
    }
}

/// A run: the rig, and what the indices of operations choose from.
struct Run {
    rig: Rig,
    setup: Setup,
    tenants: Vec<TenantId>,
    /// With their bytes.
    volumes: Vec<(VolumeId, u64)>,
    /// Blocks that reads and writes named so far.
    asked: [u64; 2],
}

impl Run {
    fn new(setup: Setup, faults: &Faults) -> Self {
        let Setup { block_bytes, cache_align, cache_blocks, take_max, seed, .. } = setup;
        let engine = EngineConfig { block_bytes, cache_align, cache_blocks };
        let mut rig = Rig::new(HostConfig { engine, seed, cache: faults.cache.clone(), take_max });
        let add_tenant = |plan: &TenantPlan| {
            let tenant = rig.add_tenant(plan.quota.blocks(cache_blocks), plan.policy);
            rig.set_caching(tenant, plan.caching);
            tenant
        };
        let tenants: Vec<TenantId> = setup.tenants.iter().map(add_tenant).collect();
        let block = u64::from(block_bytes);
        let add = |plan: &VolumePlan| {
            let tail = plan.tail.index((block / SECTOR_BYTES) as usize) as u64 * SECTOR_BYTES;
            let bytes = (plan.blocks * block + tail).max(SECTOR_BYTES);
            (rig.add_volume(*plan.tenant.get(&tenants), bytes, faults.backing.clone()), bytes)
        };
        let volumes = setup.volumes.iter().map(add).collect();
        Self { rig, setup, tenants, volumes, asked: [0; 2] }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Ask { kind, fua, volume, span } => {
                let (volume, bytes) = *volume.get(&self.volumes);
                let block = u64::from(self.setup.block_bytes) / SECTOR_BYTES;
                let (offset, len) = span.bytes(bytes / SECTOR_BYTES, block);
                self.submit(Request { fua: *fua, ..ask::of(*kind, volume, offset, len) });
            }
            Op::AskBeyondTheEnd { volume, misaligned } => {
                let (volume, bytes) = *volume.get(&self.volumes);
                let (offset, len) = if *misaligned { (1, SECTOR_BYTES) } else { (bytes, SECTOR_BYTES) };
                self.rig.submit_invalid(ask::write(volume, offset, len));
            }
            Op::Step(count) => (0..*count).for_each(|_| {
                self.rig.step();
            }),
            Op::Settle => {
                self.rig.settle();
            }
            Op::SetQuota { tenant, quota } => {
                self.rig.set_quota(*tenant.get(&self.tenants), quota.blocks(self.setup.cache_blocks));
            }
            Op::SetPolicy { tenant, policy } => {
                self.rig.set_write_policy(*tenant.get(&self.tenants), *policy);
            }
            Op::Trim { budget } => {
                self.rig.trim(*budget);
            }
            Op::SetTakeMax(max) => self.rig.host().pool().set_take_max(*max),
        }
    }

    fn submit(&mut self, request: Request) {
        let block = u64::from(self.setup.block_bytes);
        let blocks = (request.offset + request.len).div_ceil(block) - request.offset / block;
        match request.kind {
            _ if request.len == 0 => {}
            RequestKind::Read => self.asked[0] += blocks,
            RequestKind::Write => self.asked[1] += blocks,
            _ => {}
        }
        self.rig.submit(request);
    }

    /// Come to rest; then nothing may be held that should not be, and every byte must read as the model says.
    fn end(&mut self) {
        self.rig.settle();
        self.rig.check_backings();
        self.check_quotas();
        self.read_everything();
        self.rig.host().cache().heal();
        for (volume, _) in self.volumes.clone() {
            self.rig.host().backing(volume).heal();
        }
        for _ in 0..2 {
            let failed = self.read_everything().iter().filter(|d| d.result.is_err()).count();
            assert_eq!(failed, 0, "reads fail though no device does");
        }
        self.tenants.clone().into_iter().for_each(|t| self.rig.set_quota(t, 0));
        self.check_quotas();
        let free = self.rig.host().pool().len();
        assert_eq!(free, self.setup.cache_blocks as usize, "slots are lost");
    }

    fn check_quotas(&mut self) {
        // More budget than there are blocks, and ghosts, is spent only if eviction makes no progress.
        for _ in 0..=8 * self.setup.cache_blocks {
            if !self.rig.trim(1) {
                break;
            }
        }
        assert!(!self.rig.trim(1), "trimming never ends");
        let engine = self.rig.host().engine();
        for &tenant in &self.tenants {
            assert!(engine.occupied(tenant) <= engine.quota(tenant), "{tenant:?} stays above its quota");
        }
    }

    fn read_everything(&mut self) -> Vec<Done> {
        for (volume, bytes) in self.volumes.clone() {
            self.submit(ask::read(volume, 0, bytes));
        }
        self.rig.settle()
    }

    fn stats(&self) -> Vec<TenantStats> {
        self.tenants.iter().map(|&t| self.rig.stats(t)).collect()
    }
}

fn play(setup: Setup, faults: &Faults, ops: &[Op]) -> Vec<TenantStats> {
    let mut run = Run::new(setup, faults);
    ops.iter().for_each(|op| run.apply(op));
    run.end();
    let stats = run.stats();
    let counted: u64 = stats.iter().map(|s| s.ssd_fill_bytes + s.ssd_guest_write_bytes).sum();
    assert_eq!(counted, run.rig.host().cache().started_bytes(FaultKind::Write), "SSD writes are counted");
    if *faults == Faults::default() {
        let reads: u64 = stats.iter().map(|s| s.read_hits + s.read_misses).sum();
        let writes: u64 = stats.iter().map(|s| s.write_hits + s.write_misses).sum();
        assert_eq!([reads, writes], run.asked, "every block asked for is a hit or a miss");
    }
    stats
}

/// 256 cases of each kind, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let file = FileFailurePersistence::Direct("tests/engine_model.proptest-regressions");
    ProptestConfig { failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

fn histories() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(ops(), 1..120)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sound_devices(setup in setups(), ops in histories()) {
        play(setup, &Faults::default(), &ops);
    }

    #[test]
    fn a_failing_cache_device(setup in setups(), cache in failing(), ops in histories()) {
        play(setup, &Faults { cache, ..Faults::default() }, &ops);
    }

    #[test]
    fn failing_backings(setup in setups(), backing in failing(), ops in histories()) {
        play(setup, &Faults { backing, ..Faults::default() }, &ops);
    }

    #[test]
    fn everything_fails(setup in setups(), cache in failing(), backing in failing(), ops in histories()) {
        play(setup, &Faults { cache, backing }, &ops);
    }
}

/// The cases above are worth something only if they reach what is hard: counted over a fixed sample of them.
#[test]
fn the_cases_reach_every_path() {
    let mut runner = TestRunner::deterministic();
    let mut all = TenantStats::default();
    for _ in 0..60 {
        let (setup, ops) = (setups(), histories()).new_tree(&mut runner).unwrap().current();
        for stats in play(setup, &Faults::default(), &ops) {
            all.read_hits += stats.read_hits;
            all.read_misses += stats.read_misses;
            all.write_hits += stats.write_hits;
            all.write_misses += stats.write_misses;
            all.evictions += stats.evictions;
            all.invalidations += stats.invalidations;
            all.ssd_fill_blocks += stats.ssd_fill_blocks;
            all.ssd_guest_write_blocks += stats.ssd_guest_write_blocks;
        }
    }
    let counts = [all.read_hits, all.read_misses, all.write_hits, all.write_misses];
    let effects = [all.evictions, all.invalidations, all.ssd_fill_blocks, all.ssd_guest_write_blocks];
    assert!(counts.iter().chain(&effects).all(|&n| n > 100), "{all:?}");
}

/// A failure is worth something only if its seed replays it.
#[test]
fn the_same_case_gives_the_same_run() {
    let mut runner = TestRunner::deterministic();
    let faults =
        Faults { cache: FaultModel { read_error: 0.1, ..FaultModel::default() }, ..Faults::default() };
    let mut rng = Rng::new(1);
    for _ in 0..20 {
        let (setup, ops) = (setups(), histories()).new_tree(&mut runner).unwrap().current();
        let setup = Setup { seed: rng.next_u64(), ..setup };
        assert_eq!(play(setup.clone(), &faults, &ops), play(setup, &faults, &ops));
    }
}
