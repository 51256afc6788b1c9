//! What a history starts with: the cache, tenants, volumes, and how the devices behave.

use crate::fault::{Fault, Faults};
use larder_engine::format::Shape;
use larder_engine::{CachingSpec, DirtyLimits, Planted, SECTOR_BYTES, Sharing, Watermarks, WritePolicy};
use larder_io::sim::{FaultModel, Rng};

/// The write policies that histories use.
pub const POLICIES: &[WritePolicy] =
    &[WritePolicy::WriteBack, WritePolicy::WriteBack, WritePolicy::WriteThrough, WritePolicy::ReadOnly];

/// True if every completed write is on the backing: then the death of the process loses none, and the backing shows what guests read.
pub fn is_through(policy: WritePolicy) -> bool {
    policy != WritePolicy::WriteBack
}

/// Replacement and admission.
const CACHING: [&str; 14] = [
    "lru",
    "lru",
    "lru",
    "fifo",
    "clock",
    "arc",
    "mq",
    "2q",
    "lirs",
    "larc",
    "s3-fifo",
    "sieve",
    "lru+nth:2",
    "lfu",
];

/// A tenant.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Blocks that it may hold.
    pub quota: u32,
    /// Blocks that it may hold where partitions lend, unless its quota is more.
    pub most: u32,
    /// What happens to its writes.
    pub policy: WritePolicy,
    /// How much of it may be dirty.
    pub dirty: DirtyLimits,
    /// Which blocks enter and leave.
    pub caching: CachingSpec,
}

/// A volume.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Whose it is, by number.
    pub tenant: usize,
    /// Its size.
    pub bytes: u64,
    /// Rises when another volume takes its place.
    pub identity: u32,
    /// Its writes reach the backing in the order of its flushes.
    pub ordered: bool,
}

/// What a history starts with.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed of all that is random.
    pub seed: u64,
    /// The cache.
    pub shape: Shape,
    /// Blocks in a region.
    pub region_blocks: u32,
    /// The tenants.
    pub tenants: Vec<Tenant>,
    /// Their volumes.
    pub disks: Vec<Disk>,
    /// How the backings behave.
    pub backing: FaultModel,
    /// How the cache device behaves.
    pub cache: FaultModel,
    /// Writes may be held back from their backings.
    pub holds_back: bool,
    /// Partitions lend each other what they do not use, from few slots. Whether they do, and how they are run, changes in the history.
    pub lending: bool,
    /// A cleaner keeps blocks free, of those that there are at the start. Whether it does changes in the history.
    pub pooled: bool,
    /// When it begins and ends now.
    pub watermarks: Option<Watermarks>,
    /// Whether tenants share a partition, and how, changes in the history.
    pub shares: bool,
    /// How they share one now.
    pub sharing: Sharing,
    /// What tenants may write to the cache device is limited now and then.
    pub limited: bool,
    /// Slots beside those of the blocks that tenants may hold where they lend.
    pub spare_slots: u32,
    /// Guests change their memory while it is read into.
    pub meddling: bool,
    /// A bug to be found.
    pub planted: Option<Planted>,
}

impl Plan {
    /// The plan of a seed, with these faults at most.
    pub fn of(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::new(seed ^ 0x706c_616e);
        let wide = rng.below(6) == 0;
        let block_bytes = if wide { 4096 } else { [4096, 4096, 8192, 16_384][rng.below(4) as usize] };
        let shape = Shape {
            block_bytes,
            sector_bytes: [512, 512, 4096][rng.below(3) as usize],
            slots: 360 + rng.below(60) as u32,
            records: 32 + rng.below(9),
            volume_table_bytes: 4096,
        };
        // Where dirty blocks are lost with metadata everything begins anew: half of those histories have none.
        let holds_back = !faults.has(Fault::Metadata) || Rng::new(seed ^ 0x7468_726f).below(2) == 0;
        let tenants: Vec<Tenant> =
            (0..1 + rng.below(3)).map(|_| Tenant::any(&mut rng, wide, holds_back)).collect();
        let count = tenants.len() as u64 + rng.below(2);
        let disks = (0..count).map(|n| Disk {
            tenant: if n < tenants.len() as u64 {
                n as usize
            } else {
                rng.below(tenants.len() as u64) as usize
            },
            bytes: disk_bytes(&mut rng, u64::from(block_bytes), wide),
            identity: 0,
            ordered: holds_back && rng.below(3) == 0,
        });
        let disks = disks.collect();
        let region_blocks = 1 << rng.below(if wide { 5 } else { 4 });
        let (backing, cache) = models(&mut rng, faults, holds_back);
        let limited = Rng::new(seed ^ 0x6c69_6d69).below(4) == 0;
        let lending = Rng::new(seed ^ 0x6c65_6e64).below(4) == 0;
        let mut pool = Rng::new(seed ^ 0x706f_6f6c);
        let pooled = pool.below(4) == 0;
        let watermarks = if pooled { any_watermarks(&mut pool, shape.slots) } else { None };
        let mut spare = Rng::new(seed ^ 0x7370_6172);
        // Tenants touch few blocks: all but so many are to spare, or none.
        let spare_slots = if spare.below(2) == 0 { shape.slots - 8 - spare.below(40) as u32 } else { 0 };
        let mut shared = Rng::new(seed ^ 0x7368_6172);
        let shares = shared.below(4) == 0;
        let sharing = if shares { any_sharing(&mut shared, wide) } else { Sharing::Off };
        Self {
            seed,
            shape,
            region_blocks,
            tenants,
            disks,
            backing,
            cache,
            holds_back,
            lending,
            pooled,
            watermarks,
            shares,
            sharing,
            limited,
            spare_slots,
            meddling: Rng::new(seed ^ 0x6d65_6464).below(4) == 0,
            planted: None,
        }
    }

    /// Bytes in a block.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.shape.block_bytes)
    }
}

impl Tenant {
    fn any(rng: &mut Rng, wide: bool, holds_back: bool) -> Self {
        let caching = any_caching(rng);
        Self {
            quota: any_quota(rng, wide),
            most: u32::MAX,
            policy: any_policy(rng, holds_back),
            dirty: any_limits(rng),
            caching,
        }
    }
}

/// Replacement and admission by chance.
pub fn any_caching(rng: &mut Rng) -> CachingSpec {
    let caching = CACHING[rng.below(CACHING.len() as u64) as usize];
    caching.parse().expect("the names are known")
}

/// Watermarks by chance, near what tenants hold, or none: few of the slots are ever used.
pub fn any_watermarks(rng: &mut Rng, slots: u32) -> Option<Watermarks> {
    let low = slots - 1 - rng.below(30) as u32;
    let high = (low + 1 + rng.below(12) as u32).min(slots);
    (rng.below(4) > 0).then_some(Watermarks { low, high })
}

/// A way to share a partition by chance.
pub fn any_sharing(rng: &mut Rng, wide: bool) -> Sharing {
    let (blocks, caching) = (any_quota(rng, wide), any_caching(rng));
    match rng.below(5) {
        0 => Sharing::Off,
        1..=2 => Sharing::All { blocks: 2 * blocks, caching },
        _ => Sharing::Spill { blocks, caching },
    }
}

/// A policy by chance.
pub fn any_policy(rng: &mut Rng, holds_back: bool) -> WritePolicy {
    let may = |policy: &WritePolicy| holds_back || is_through(*policy);
    let policies: Vec<WritePolicy> = POLICIES.iter().copied().filter(may).collect();
    policies[rng.below(policies.len() as u64) as usize]
}

/// The cleaner begins at once, late, or hardly ever.
fn any_limits(rng: &mut Rng) -> DirtyLimits {
    let usual = DirtyLimits::default();
    match rng.below(4) {
        0 => DirtyLimits { rest: 0, max: 50, age: 1 },
        1 => DirtyLimits { rest: 90, max: 100, ..usual },
        _ => usual,
    }
}

/// A quota by chance: mostly less than its volumes have.
pub fn any_quota(rng: &mut Rng, wide: bool) -> u32 {
    match rng.below(16) {
        0 => rng.below(2) as u32,
        _ if wide => 20 + rng.below(60) as u32,
        _ => 2 + rng.below(12) as u32,
    }
}

/// A size by chance, odd more often than not.
pub fn disk_bytes(rng: &mut Rng, block: u64, wide: bool) -> u64 {
    let blocks = if wide { 24 + rng.below(40) } else { 3 + rng.below(13) };
    blocks * block + rng.below(2) * rng.below(8) * SECTOR_BYTES
}

/// Half of the histories that may have errors have none by rate. Errors in metadata would end the cache at once: those come one by one.
/// A cache device that fails too often is given up, and dirty blocks with it.
fn models(rng: &mut Rng, faults: Faults, holds_back: bool) -> (FaultModel, FaultModel) {
    let (mut backing, mut cache) = (FaultModel::default(), FaultModel::default());
    // What a flush covers is known long before it has ended.
    let flush_latency = |rng: &mut Rng| (1, [20, 20, 300, 3000][rng.below(4) as usize]);
    (backing.flush_latency, cache.flush_latency) = (flush_latency(rng), flush_latency(rng));
    let (backings, caches) = (rng.below(4), rng.below(4));
    if faults.has(Fault::BackingErrors) && backings < 2 {
        let read_error = if backings == 0 { 0.1 } else { 0.0 };
        backing =
            FaultModel { read_error, write_error: 0.05, flush_error: 0.1, discard_error: 0.1, ..backing };
    }
    if faults.has(Fault::CacheErrors) && caches < 2 {
        cache = FaultModel { read_error: if holds_back { 0.05 } else { 0.15 }, ..cache };
    }
    (backing, cache)
}
