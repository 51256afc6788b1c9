//! The deciding part of the loop of an epoch: accesses in, sizes and write policies out.
//!
//! It knows no clock, thread or device, so that a simulator can run the very same loop over a trace: it calls
//! [`EpochLoop::observe`] for every read and write, and [`EpochLoop::decide`] whenever an epoch is over. What surrounds it
//! in the daemon is in [`crate::analyzer`].

use larder_alloc::{
    AllocError, Allocator, ConfiguredPolicy, Constraints, Decision, Findings, Goals, Mode, Static, Tenant,
    WritePolicy,
};
use larder_locality::{
    AccessKind, Analyzer, AnalyzerConfig, CurvePolicy, Op, Sampling, block_keys, blocks_of,
};
use larder_policy::spec::CachingSpec;

use crate::warm_start;

/// Blocks of a tenant that its analyzer looks at, at most: a tenant with fewer is analyzed exactly, a larger one from a
/// sample of this size, in some two megabytes.
const SAMPLED_BLOCKS: u32 = 1 << 15;

/// Each tenant's analyzer remembers this many times the blocks of the cache at least: no cache of this size could serve
/// longer distances.
const REMEMBERED_CACHES: u32 = 2;

/// What an analyzer remembers at least, in blocks: small caches still learn what a larger one would bring.
const REMEMBERED_BLOCKS_MIN: u32 = 1 << 20;

/// A read or write of a tenant, as the monitor saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index of the tenant.
    pub tenant: usize,
    /// Any number that tells the tenant's volumes apart.
    pub volume: u16,
    /// What it does.
    pub kind: AccessKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What the loop knows of a tenant from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopTenant {
    /// Its name.
    pub name: String,
    /// The quota configured, in blocks, if there is one.
    pub quota_blocks: Option<u32>,
    /// The write policy configured.
    pub write_policy: ConfiguredPolicy,
}

/// What the loop knows of the cache from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopConfig {
    /// Bytes in a block.
    pub block_bytes: u32,
    /// Blocks of the cache.
    pub cache_blocks: u32,
    /// The least that a tenant gets, in blocks, while the cache has that much for everybody.
    pub min_blocks: u32,
    /// The share of writes to known blocks from which `auto` means `ro`, from 0 to 1.
    pub write_threshold: f64,
    /// Chooses the blocks that large tenants are analyzed by.
    pub seed: u64,
}

/// A tenant's standing at the end of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The epoch at whose end it was decided, from 1; 0 for the start.
    pub epoch: u64,
    /// What was decided, and why.
    pub decision: Decision,
    /// The size that the useful reuse distance of that epoch asks for, in blocks; 0 where nothing was read again.
    pub urd_blocks: u64,
    /// The size that the plain reuse distance of that epoch asks for, in blocks; 0 where nothing was accessed again.
    pub trd_blocks: u64,
}

/// The loop: one analyzer per tenant, and the allocator.
pub struct EpochLoop {
    config: LoopConfig,
    allocator: Box<dyn Allocator + Send>,
    tenants: Vec<LoopTenant>,
    analyzers: Vec<Analyzer>,
    standings: Vec<Standing>,
    epoch: u64,
}

impl EpochLoop {
    /// A loop at its start: every tenant stands where the static allocator puts it, which is its configured quota or an
    /// equal share of the rest.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache.
    pub fn new(
        config: LoopConfig,
        allocator: Box<dyn Allocator + Send>,
        tenants: Vec<LoopTenant>,
    ) -> Result<Self, AllocError> {
        let analysis = analysis(&config);
        let analyzers = tenants.iter().map(|_| Analyzer::new(&analysis)).collect();
        let nothing = Decision {
            quota_blocks: 0,
            mode: Mode { caching: CachingSpec::default(), write: WritePolicy::WriteThrough },
            predicted: None,
            reason: String::new(),
        };
        let at_start = Standing { epoch: 0, decision: nothing, urd_blocks: 0, trd_blocks: 0 };
        let standings = vec![at_start; tenants.len()];
        let mut new = Self { config, allocator, tenants, analyzers, standings, epoch: 0 };
        let decisions = Static.allocate(&new.inputs(&[]), &new.constraints())?;
        new.stand(decisions, &[]);
        Ok(new)
    }

    /// The tenants hold some blocks already, in their order: before the first decision they keep them, as far as the cache reaches,
    /// unless their quotas are fixed.
    pub fn start_warm(&mut self, held_blocks: &[u32]) {
        if self.allocator.name() == Static::NAME {
            return;
        }
        let cold: Vec<u32> = self.standings.iter().map(|standing| standing.decision.quota_blocks).collect();
        let LoopConfig { cache_blocks, min_blocks, .. } = self.config;
        let quotas = warm_start::quotas(cache_blocks, min_blocks, &cold, held_blocks);
        for ((standing, quota), held) in self.standings.iter_mut().zip(quotas).zip(held_blocks) {
            let decision = &mut standing.decision;
            if *held > 0 && quota != decision.quota_blocks {
                decision.reason =
                    format!("{quota} blocks: it held {held} when the cache was opened; {}", decision.reason);
            }
            decision.quota_blocks = quota;
        }
    }

    /// Tenants have come, or gone: from now on it is these. Whoever stays is known by its name, and keeps what was learned of it, and its quota as far as the cache
    /// reaches; newcomers begin as after a warm start. Where quotas are fixed they are what is configured.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache: then nothing has changed.
    pub fn set_tenants(&mut self, tenants: Vec<LoopTenant>) -> Result<(), AllocError> {
        let before = |tenant: &LoopTenant| self.tenants.iter().position(|known| known.name == tenant.name);
        let places: Vec<Option<usize>> = tenants.iter().map(before).collect();
        let newcomer = Standing {
            epoch: self.epoch,
            decision: Decision {
                quota_blocks: 0,
                mode: Mode { caching: CachingSpec::default(), write: WritePolicy::WriteThrough },
                predicted: None,
                reason: String::new(),
            },
            urd_blocks: 0,
            trd_blocks: 0,
        };
        let mut standings: Vec<Standing> = places
            .iter()
            .map(|place| place.map_or_else(|| newcomer.clone(), |at| self.standings[at].clone()))
            .collect();
        let inputs = inputs(&tenants, &standings, &self.config, &[]);
        let fixed = Static.allocate(&inputs, &self.constraints())?;
        drop(inputs);
        let cold: Vec<u32> = fixed.iter().map(|decision| decision.quota_blocks).collect();
        let held: Vec<u32> = standings.iter().map(|standing| standing.decision.quota_blocks).collect();
        let LoopConfig { cache_blocks, min_blocks, .. } = self.config;
        let quotas = match self.allocator.name() == Static::NAME {
            true => cold,
            false => warm_start::quotas(cache_blocks, min_blocks, &cold, &held),
        };
        for (((standing, place), fixed), quota) in standings.iter_mut().zip(&places).zip(fixed).zip(quotas) {
            let now = &mut standing.decision;
            if place.is_none() {
                let reason = format!("{quota} blocks until the first epoch is over; {}", fixed.reason);
                *now = Decision { quota_blocks: quota, reason, ..fixed };
            } else if now.quota_blocks != quota {
                now.quota_blocks = quota;
                now.reason = format!("{quota} blocks: tenants have come or gone");
            }
        }
        let analysis = analysis(&self.config);
        let mut old: Vec<Option<Analyzer>> =
            std::mem::take(&mut self.analyzers).into_iter().map(Some).collect();
        let known = |place: &Option<usize>| place.and_then(|at| old[at].take());
        self.analyzers =
            places.iter().map(known).map(|known| known.unwrap_or_else(|| Analyzer::new(&analysis))).collect();
        (self.tenants, self.standings) = (tenants, standings);
        Ok(())
    }

    /// An access. One of an unknown tenant is ignored. Takes time in the number of blocks that it touches.
    pub fn observe(&mut self, access: &Access) {
        let Some(analyzer) = self.analyzers.get_mut(access.tenant) else { return };
        let blocks = blocks_of(access.offset, access.len, self.config.block_bytes);
        let op = match access.kind {
            AccessKind::Read => Op::Read,
            AccessKind::Write => Op::Write,
        };
        analyzer.observe(op, block_keys(access.volume, blocks));
    }

    /// The epoch is over: decide for all tenants.
    ///
    /// # Errors
    /// When the allocator cannot decide; then every tenant keeps what it has, and the epoch counts all the same.
    pub fn decide(&mut self) -> Result<&[Standing], AllocError> {
        self.epoch += 1;
        let findings: Vec<Findings> =
            self.analyzers.iter_mut().map(|analyzer| analyzer.finish_epoch().into()).collect();
        let inputs = inputs(&self.tenants, &self.standings, &self.config, &findings);
        let constraints = self.constraints();
        let decisions = self.allocator.allocate(&inputs, &constraints)?;
        self.stand(decisions, &findings);
        Ok(&self.standings)
    }

    /// The tenants, as given.
    pub fn tenants(&self) -> &[LoopTenant] {
        &self.tenants
    }

    /// Where the tenants stand since the last decision.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// Epochs that are over.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Bytes of memory that the analyzers hold.
    pub fn memory_bytes(&self) -> usize {
        self.analyzers.iter().map(Analyzer::memory_bytes).sum()
    }

    fn inputs<'a>(&'a self, findings: &'a [Findings]) -> Vec<Tenant<'a>> {
        inputs(&self.tenants, &self.standings, &self.config, findings)
    }

    fn constraints(&self) -> Constraints {
        Constraints {
            cache_blocks: self.config.cache_blocks,
            block_bytes: self.config.block_bytes,
            write_threshold: self.config.write_threshold,
            write_back: false,
            ..Constraints::default()
        }
    }

    /// Take decisions over, with the findings (none at the start) that led to them.
    fn stand(&mut self, decisions: Vec<Decision>, findings: &[Findings]) {
        for (index, decision) in decisions.into_iter().enumerate().take(self.standings.len()) {
            let found = findings.get(index);
            self.standings[index] = Standing {
                epoch: self.epoch,
                decision,
                urd_blocks: found.map_or(0, |found| found.epoch.urd_blocks()),
                trd_blocks: found.map_or(0, |found| found.epoch.trd_blocks()),
            };
        }
    }
}

/// How each tenant is analyzed. The allocators go by the distances, which are those of `wt`.
fn analysis(config: &LoopConfig) -> AnalyzerConfig {
    let remembered = config.cache_blocks.saturating_mul(REMEMBERED_CACHES).max(REMEMBERED_BLOCKS_MIN);
    AnalyzerConfig {
        policies: vec![CurvePolicy::WriteThrough],
        sampling: Sampling::Blocks(SAMPLED_BLOCKS),
        history_blocks: remembered.into(),
        seed: config.seed,
    }
}

/// The tenants as an allocator sees them. A free function, so that the allocator can be borrowed beside it.
fn inputs<'a>(
    tenants: &'a [LoopTenant],
    standings: &'a [Standing],
    config: &LoopConfig,
    findings: &'a [Findings],
) -> Vec<Tenant<'a>> {
    let input = |(index, (tenant, standing)): (usize, (&'a LoopTenant, &'a Standing))| Tenant {
        name: &tenant.name,
        quota_blocks: standing.decision.quota_blocks,
        mode: standing.decision.mode,
        findings: findings.get(index),
        configured_policy: tenant.write_policy,
        configured_quota_blocks: tenant.quota_blocks,
        min_blocks: config.min_blocks,
        goals: Goals::default(),
    };
    tenants.iter().zip(standings).enumerate().map(input).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    fn config(cache_blocks: u32) -> LoopConfig {
        LoopConfig { block_bytes: BLOCK as u32, cache_blocks, min_blocks: 2, write_threshold: 0.5, seed: 1 }
    }

    fn tenant(name: &str, quota_blocks: Option<u32>) -> LoopTenant {
        LoopTenant { name: name.into(), quota_blocks, write_policy: ConfiguredPolicy::Auto }
    }

    fn eci(cache_blocks: u32, quotas: &[Option<u32>]) -> EpochLoop {
        let allocator = larder_alloc::by_name("eci").expect("known");
        let tenants = quotas.iter().map(|quota| tenant("t", *quota)).collect();
        EpochLoop::new(config(cache_blocks), allocator, tenants).expect("fits")
    }

    fn access(tenant: usize, kind: AccessKind, block: u64) -> Access {
        Access { tenant, volume: 0, kind, offset: block * BLOCK, len: BLOCK }
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
    fn a_warm_start_keeps_what_is_held_unless_quotas_are_fixed() {
        let mut epochs = eci(100, &[None, None]);
        epochs.start_warm(&[70, 0]);
        assert_eq!(quotas(&epochs), [70, 30]);
        assert!(epochs.standings()[0].decision.reason.starts_with("70 blocks: it held 70"));
        let allocator = larder_alloc::by_name("static").expect("known");
        let tenants = vec![tenant("t", None), tenant("t", None)];
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
            (0..60).for_each(|block| epochs.observe(&access(1, AccessKind::Read, block)));
        }
        // The first leaves, and another comes before the other: what this one has read goes with it.
        epochs.set_tenants(named(&["c", "b"])).expect("fits");
        assert_eq!(quotas(&epochs).iter().sum::<u32>(), 100);
        assert!(epochs.standings()[0].decision.reason.starts_with("50 blocks until the first epoch is over"));
        let urds: Vec<_> = epochs.decide().expect("decided").iter().map(|s| s.urd_blocks).collect();
        assert_eq!(urds, [0, 60]);
        assert_eq!(quotas(&epochs), [2, 60]);
        // A newcomer takes from the rest first; quotas that are fixed are what they are.
        epochs.set_tenants(named(&["c", "b", "d"])).expect("fits");
        let seen = quotas(&epochs);
        assert!(seen[1] == 60 && seen[2] > 2 && seen.iter().sum::<u32>() <= 100, "{seen:?}");
        let allocator = larder_alloc::by_name("static").expect("known");
        let mut fixed = EpochLoop::new(config(90), allocator, named(&["a", "b"])).expect("fits");
        fixed.set_tenants(named(&["a", "b", "c"])).expect("fits");
        assert_eq!(quotas(&fixed), [30, 30, 30]);
        assert_eq!(fixed.standings()[0].decision.reason, "30 blocks: tenants have come or gone");
    }

    #[test]
    fn sizes_follow_what_is_read_again() {
        let mut epochs = eci(100, &[None, None]);
        for _ in 0..2 {
            (0..10).for_each(|block| epochs.observe(&access(0, AccessKind::Read, block)));
            (0..50).for_each(|block| epochs.observe(&access(1, AccessKind::Read, block)));
        }
        let standings = epochs.decide().expect("decided");
        let seen: Vec<_> =
            standings.iter().map(|s| (s.epoch, s.urd_blocks, s.decision.quota_blocks)).collect();
        assert_eq!(seen, [(1, 10, 10), (1, 50, 50)]);
        // Nothing happens in the second epoch: both fall back to the minimum.
        assert_eq!(epochs.decide().map(|s| s[0].epoch), Ok(2));
        assert_eq!(quotas(&epochs), [2, 2]);
    }

    /// One block less, and an LRU cache serves nothing of it.
    #[test]
    fn a_loop_gets_its_last_block_too() {
        let mut epochs = eci(10_000, &[None]);
        for _ in 0..3 {
            (0..3000).for_each(|block| epochs.observe(&access(0, AccessKind::Read, block)));
        }
        assert_eq!(epochs.decide().map(|s| (s[0].urd_blocks, s[0].decision.quota_blocks)), Ok((3000, 3000)));
    }

    #[test]
    fn writers_become_read_only_and_come_back() {
        let mut epochs = eci(100, &[None]);
        for kind in [AccessKind::Write, AccessKind::Read] {
            for _ in 0..9 {
                (0..4).for_each(|block| epochs.observe(&access(0, kind, block)));
            }
            epochs.decide().expect("decided");
            let policy = epochs.standings()[0].decision.mode.write;
            let expected =
                if kind == AccessKind::Write { WritePolicy::ReadOnly } else { WritePolicy::WriteThrough };
            assert_eq!(policy, expected);
        }
    }

    #[test]
    fn volumes_of_a_tenant_are_told_apart() {
        let mut epochs = eci(100, &[None]);
        epochs.observe(&access(0, AccessKind::Read, 7));
        epochs.observe(&Access { volume: 1, ..access(0, AccessKind::Read, 7) });
        epochs.observe(&access(0, AccessKind::Read, 7));
        assert_eq!(epochs.decide().map(|standings| standings[0].urd_blocks), Ok(2));
    }

    #[test]
    fn figure_5_of_eci_cache() {
        let mut epochs = eci(100, &[None]);
        for (kind, block) in [('W', 1), ('W', 2), ('R', 1), ('W', 3), ('W', 4), ('W', 5), ('W', 2)] {
            let kind = if kind == 'W' { AccessKind::Write } else { AccessKind::Read };
            epochs.observe(&access(0, kind, block));
        }
        let standing = epochs.decide().expect("decided")[0].clone();
        assert_eq!((standing.trd_blocks, standing.urd_blocks), (5, 2));
    }

    #[test]
    fn a_small_cache_learns_what_a_far_larger_one_would_bring() {
        let mut epochs = eci(100, &[None]);
        for _ in 0..2 {
            (0..100_000).for_each(|block| epochs.observe(&access(0, AccessKind::Read, block)));
        }
        let urd_blocks = epochs.decide().expect("decided")[0].urd_blocks;
        // From a sample of a third of the blocks.
        assert!((98_000..102_000).contains(&urd_blocks), "{urd_blocks}");
    }

    #[test]
    fn memory_stays_bounded_however_much_a_tenant_touches() {
        let mut epochs = eci(100, &[None]);
        (0..400_000).for_each(|block| epochs.observe(&access(0, AccessKind::Write, block)));
        assert!(epochs.memory_bytes() < 4 << 20, "{} bytes", epochs.memory_bytes());
    }

    #[test]
    fn a_request_far_out_takes_no_longer_than_others() {
        let mut epochs = eci(100, &[None]);
        let far = access(0, AccessKind::Read, (1 << 49) - 1);
        epochs.observe(&Access { volume: 1, len: 2 * BLOCK, ..far });
        assert_eq!(epochs.decide().map(|standings| standings[0].urd_blocks), Ok(0));
    }

    #[test]
    fn an_unknown_tenant_is_ignored() {
        let mut epochs = eci(100, &[None]);
        epochs.observe(&access(9, AccessKind::Read, 0));
        assert!(epochs.decide().is_ok());
    }
}
