//! The cache of all tenants, however it is divided.

use std::collections::HashSet;

use larder_alloc::control::Position;
use larder_alloc::{CacheUse, Layout, Mode, Population, Resize, WritePolicy, resize};
use larder_policy::Cache;
use larder_policy::admission::AnyAdmission;
use larder_policy::any::AnyReplacement;
use larder_policy::index::hash;
use larder_policy::trial::{Action, Blocks, Outcome, Trial};
use larder_policy::watermarks::Watermarks;

use super::batched::Batched;
use super::combined::Combined;
use super::lending::Lending;
use super::plan::TenantPlan;
use super::pooled::Cleaned;
use super::traffic::Traffic;

/// Replacement, admission and write policy around the blocks of one partition.
pub(super) type Part = Trial<AnyReplacement>;

/// A part of `blocks` at its start.
pub(super) fn part(mode: Mode, blocks: u32, seed: u64) -> Part {
    let (policy, admission) = (mode.caching.policy(), mode.caching.admission());
    let cache = Cache::new(blocks, AnyReplacement::new(&policy, blocks, seed));
    Trial::new(cache, AnyAdmission::new(&admission, blocks, seed), mode.write)
}

/// A request's blocks, as the caches take them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<'a> {
    pub(super) tenant: usize,
    pub(super) action: Action,
    pub(super) keys: &'a [u64],
    /// Nothing may be written to the SSD for it.
    pub(super) closed: bool,
    /// Nothing leaves for it.
    pub(super) stuck: bool,
    /// What enters for it is to leave before others, where partitions lend.
    pub(super) leaves_first: bool,
    /// When it comes.
    pub(super) now_ns: u64,
}

/// The cache.
pub(super) struct Store {
    layout: Laid,
    cache_blocks: u32,
    seed: u64,
    modes: Vec<Mode>,
    usages: Vec<Usage>,
    /// Hits are to be remembered by block.
    effective: bool,
    /// Blocks of a request do not leave for others of it.
    pins: bool,
    hashes: Vec<u32>,
}

/// By layout.
enum Laid {
    Unified { part: Box<Part>, resident: Vec<u32>, owners: Vec<usize> },
    Parts { parts: Vec<Part>, cleaned: Option<Cleaned> },
    Combined(Box<Combined>),
    Lending(Lending),
    Batched(Vec<Batched>),
}

/// How a tenant used its cache in the window.
#[derive(Clone, Debug, Default)]
struct Usage {
    missed: u64,
    /// Blocks that were hit, and are still there.
    hit: HashSet<u64>,
}

impl Store {
    pub(super) fn new(
        layout: Layout,
        population: Population,
        mode: Mode,
        cache_blocks: u32,
        tenants: usize,
        seed: u64,
    ) -> Self {
        let parts = || (0..tenants).map(|_| part(mode, 0, seed)).collect();
        let laid = match (layout, population) {
            (Layout::Unified, _) => Laid::Unified {
                part: Box::new(part(mode, cache_blocks, seed)),
                resident: vec![0; tenants],
                owners: Vec::new(),
            },
            (Layout::Combined { partitioned }, _) => {
                let common = cache_blocks - (f64::from(cache_blocks) * partitioned.clamp(0.0, 1.0)) as u32;
                Laid::Combined(Box::new(Combined::new(mode, common, tenants, seed)))
            }
            (_, Population::Batched { .. }) => {
                Laid::Batched((0..tenants).map(|_| Batched::new(mode, seed)).collect())
            }
            (Layout::Lending, Population::OnDemand) => {
                Laid::Lending(Lending::new(mode, cache_blocks, tenants, seed))
            }
            (Layout::Partitioned, Population::OnDemand) => Laid::Parts { parts: parts(), cleaned: None },
            (Layout::Pooled { low, high }, Population::OnDemand) => {
                let share = |share: f64| (f64::from(cache_blocks) * share).ceil() as u32;
                let watermarks = Watermarks { low: share(low), high: share(high) };
                Laid::Parts { parts: parts(), cleaned: Some(Cleaned::new(watermarks, cache_blocks)) }
            }
        };
        Self {
            layout: laid,
            cache_blocks,
            seed,
            modes: vec![mode; tenants],
            usages: vec![Usage::default(); tenants],
            effective: false,
            pins: false,
            hashes: Vec::new(),
        }
    }

    /// Remember by block what is hit.
    pub(super) fn with_effective(mut self, effective: bool) -> Self {
        self.effective = effective;
        self
    }

    /// Where partitions lend no tenant holds more than the `most`, or its quota where that is more, and none lends what is below the `least` unless it is above its quota.
    pub(super) fn with_bounds(mut self, least: Vec<u32>, most: Vec<u32>) -> Self {
        if let Laid::Lending(lending) = &mut self.layout {
            lending.set_bounds(least, most);
        }
        self
    }

    /// Blocks enter one by one, and do not leave for others of their request, as in the daemon, where it has them locked.
    pub(super) fn like_daemon(mut self, like: bool) -> Self {
        self.pins = like;
        if let Laid::Lending(lending) = &mut self.layout {
            lending.set_by_block(like);
        }
        self
    }

    /// A tenant's request accesses its blocks; `owners` tells whose a block is from the upper half of its key.
    pub(super) fn access(&mut self, access: &Access<'_>, owners: &[usize], traffic: &mut Traffic) {
        self.set_stuck(access.tenant, access.stuck);
        let Access { tenant, action, keys, closed, leaves_first, now_ns, .. } = *access;
        if self.pins {
            self.pin(tenant, keys);
        }
        self.hashes.clear();
        self.hashes.extend(keys.iter().map(|&key| hash(key)));
        let blocks = Blocks { keys, hashes: &self.hashes, first: 0 };
        let write = match &mut self.layout {
            Laid::Unified { part, resident, owners: of } => {
                if of.len() < owners.len() {
                    of.extend_from_slice(&owners[of.len()..]);
                }
                let before = i64::from(part.resident_blocks());
                one(part, action, &blocks, closed, traffic);
                // What entered is what there is more now, and what left for it.
                let more = i64::from(part.resident_blocks()) - before + traffic.left.len() as i64;
                resident[tenant] = (i64::from(resident[tenant]) + more) as u32;
                traffic.left.iter().for_each(|&(key, _)| resident[of[(key >> 32) as usize]] -= 1);
                part.write_policy()
            }
            Laid::Parts { parts, cleaned } => {
                match cleaned {
                    Some(cleaned) => cleaned.access(parts, tenant, action, &blocks, closed, traffic),
                    None => one(&mut parts[tenant], action, &blocks, closed, traffic),
                }
                parts[tenant].write_policy()
            }
            Laid::Combined(combined) => {
                combined.access(tenant, action, &blocks, closed, traffic);
                self.modes[tenant].write
            }
            Laid::Lending(lending) => {
                lending.set_clock(now_ns);
                lending.access(tenant, action, &blocks, (closed, leaves_first), traffic);
                self.modes[tenant].write
            }
            Laid::Batched(parts) => {
                parts[tenant].access(action, &blocks, closed, traffic);
                self.modes[tenant].write
            }
        };
        traffic.through = action == Action::Write
            && (closed || !matches!(write, WritePolicy::WriteBack | WritePolicy::WriteOnly));
        if self.pins {
            self.pin(tenant, &[]);
        }
        self.note(access, owners, traffic);
    }

    /// Blocks with these keys, which follow each other, stay. Where a segment ends they do not follow, and none is pinned.
    fn pin(&mut self, tenant: usize, keys: &[u64]) {
        let first = keys.first().copied().unwrap_or(0);
        let end = first.saturating_add(keys.len() as u64);
        let pinned = if keys.last().is_none_or(|&last| last + 1 == end) { first..end } else { 0..0 };
        match &mut self.layout {
            Laid::Unified { part, .. } => part.pin(pinned),
            Laid::Parts { parts, .. } => parts[tenant].pin(pinned),
            Laid::Lending(lending) => lending.part_mut(tenant).pin(pinned),
            Laid::Combined(combined) => combined.pin(tenant, &pinned),
            // Nothing enters there for a request.
            Laid::Batched(_) => {}
        }
    }

    /// Carry decisions out: those that shrink first. What is configured of a tenant's replacement and admission holds, whatever was decided.
    pub(super) fn apply(&mut self, positions: &[Position], tenants: &[TenantPlan], traffic: &mut Traffic) {
        let quota = |at: usize| positions[at].decision.quota_blocks;
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by_key(|&at| i64::from(quota(at)) - i64::from(self.quota(at)));
        for at in order {
            if positions[at].present {
                let Mode { caching, write } = positions[at].decision.mode;
                let caching = tenants[at].caching.unwrap_or(caching);
                self.change(at, Mode { caching, write }, traffic);
            }
            self.resize(at, quota(at), traffic);
        }
    }

    /// A tenant's blocks leave.
    pub(super) fn drop_all(&mut self, tenant: usize, owners: &[usize], traffic: &mut Traffic) {
        match &mut self.layout {
            Laid::Unified { part, resident, .. } => {
                let gone: Vec<u64> =
                    part.cache().resident().filter(|key| owners[(key >> 32) as usize] == tenant).collect();
                for key in gone {
                    let dirty = part.take(key).unwrap_or(false);
                    traffic.left.push((key, dirty));
                }
                resident[tenant] = 0;
            }
            Laid::Combined(combined) => combined.drop_all(tenant, owners, traffic),
            Laid::Lending(lending) => lending.drop_all(tenant, traffic),
            Laid::Parts { .. } | Laid::Batched(_) => self.resize(tenant, 0, traffic),
        }
    }

    /// A mover epoch of a tenant: what it brings in, at most so many blocks, and what leaves.
    pub(super) fn move_in(&mut self, tenant: usize, most: u64, traffic: &mut Traffic) {
        if let Laid::Batched(parts) = &mut self.layout {
            parts[tenant].move_in(most, traffic);
        }
    }

    /// A run of a tenant's blocks is written back: with it, as in the daemon, the dirty blocks around it, which stay; no more than `most` blocks together. The first of them, and how many.
    pub(super) fn clean_around(
        &mut self,
        tenant: usize,
        (first, length): (u64, u64),
        most: u64,
    ) -> (u64, u64) {
        let (mut first, mut end) = (first, first + length);
        while end - first < most && first > 0 && self.clean_block(tenant, first - 1) {
            first -= 1;
        }
        while end - first < most && self.clean_block(tenant, end) {
            end += 1;
        }
        (first, end - first)
    }

    /// A block is written back, and stays: true if it was dirty.
    fn clean_block(&mut self, tenant: usize, key: u64) -> bool {
        match &mut self.layout {
            Laid::Unified { part, .. } => part.clean_block(key),
            Laid::Parts { parts, .. } => parts[tenant].clean_block(key),
            Laid::Combined(combined) => combined.clean_block(tenant, key),
            Laid::Lending(lending) => lending.part_mut(tenant).clean_block(key),
            Laid::Batched(parts) => parts[tenant].clean_block(key),
        }
    }

    /// Blocks that a tenant holds.
    pub(super) fn resident(&self, tenant: usize) -> u32 {
        match &self.layout {
            Laid::Unified { resident, .. } => resident[tenant],
            Laid::Parts { parts, .. } => parts[tenant].resident_blocks(),
            Laid::Combined(combined) => combined.resident(tenant),
            Laid::Lending(lending) => lending.resident(tenant),
            Laid::Batched(parts) => parts[tenant].resident(),
        }
    }

    fn set_stuck(&mut self, tenant: usize, stuck: bool) {
        match &mut self.layout {
            Laid::Unified { part, .. } => part.set_stuck(stuck),
            Laid::Parts { parts, .. } => parts[tenant].set_stuck(stuck),
            Laid::Combined(combined) => combined.set_stuck(tenant, stuck),
            Laid::Lending(lending) => lending.part_mut(tenant).set_stuck(stuck),
            // Its blocks come in batches.
            Laid::Batched(_) => {}
        }
    }

    /// What must hold at any time.
    pub(super) fn holds_no_more_than_there_is(&self) -> bool {
        let held: u64 = (0..self.modes.len()).map(|tenant| u64::from(self.resident(tenant))).sum();
        held <= self.cache_blocks.into()
    }

    /// How a tenant used its cache since it was asked last: blocks that were hit and left are not in use.
    pub(super) fn usage(&mut self, tenant: usize) -> CacheUse {
        let resident_blocks = self.resident(tenant);
        let usage = std::mem::take(&mut self.usages[tenant]);
        let effective = (self.effective && resident_blocks > 0)
            .then(|| (usage.hit.len() as f64 / f64::from(resident_blocks)).min(1.0));
        CacheUse { resident_blocks, effective, missed_blocks: usage.missed }
    }

    fn note(&mut self, access: &Access<'_>, owners: &[usize], traffic: &Traffic) {
        let usage = &mut self.usages[access.tenant];
        usage.missed += traffic.outcomes.iter().filter(|&&one| one != Outcome::Hit).count() as u64;
        if !self.effective {
            return;
        }
        for (&key, outcome) in access.keys.iter().zip(&traffic.outcomes) {
            match outcome {
                Outcome::Hit => usage.hit.insert(key),
                Outcome::Entered | Outcome::Passed => usage.hit.remove(&key),
            };
        }
        if access.action == Action::Discard {
            access.keys.iter().for_each(|key| _ = usage.hit.remove(key));
        }
        for (key, _) in &traffic.left {
            self.usages[owners[(key >> 32) as usize]].hit.remove(key);
        }
    }

    /// A quota that limits nothing: quotas over a pool of free blocks are limits, and this one is all of the cache.
    pub(super) fn is_unlimited(&self, quota: u32) -> bool {
        matches!(self.layout, Laid::Parts { cleaned: Some(_), .. }) && quota >= self.cache_blocks
    }

    /// Blocks that a tenant may hold.
    fn quota(&self, tenant: usize) -> u32 {
        match &self.layout {
            Laid::Unified { .. } => 0,
            Laid::Parts { parts, .. } => parts[tenant].cache().capacity(),
            Laid::Combined(combined) => combined.quota(tenant),
            Laid::Lending(lending) => lending.quota(tenant),
            Laid::Batched(parts) => parts[tenant].quota(),
        }
    }

    fn resize(&mut self, tenant: usize, blocks: u32, traffic: &mut Traffic) {
        match &mut self.layout {
            Laid::Unified { .. } => {}
            Laid::Parts { parts, .. } => {
                let part = &mut parts[tenant];
                let Resize { size, evict } = resize(part.cache().capacity(), part.resident_blocks(), blocks);
                if size != part.cache().capacity() {
                    let left = traffic.left.len();
                    part.set_capacity(size, traffic);
                    debug_assert_eq!(traffic.left.len() - left, evict as usize);
                }
            }
            Laid::Combined(combined) => combined.resize(tenant, blocks, traffic),
            Laid::Lending(lending) => lending.resize(tenant, blocks, traffic),
            Laid::Batched(parts) => parts[tenant].resize(blocks, traffic),
        }
    }

    /// A tenant's cache works in another way from now on.
    fn change(&mut self, tenant: usize, mode: Mode, traffic: &mut Traffic) {
        let before = std::mem::replace(&mut self.modes[tenant], mode);
        if before == mode {
            return;
        }
        match &mut self.layout {
            // All tenants have the same there.
            Laid::Unified { .. } | Laid::Combined(_) => self.modes[tenant] = before,
            Laid::Parts { .. } | Laid::Lending(_) => {
                let part = match &mut self.layout {
                    Laid::Parts { parts, .. } => &mut parts[tenant],
                    Laid::Lending(lending) => lending.part_mut(tenant),
                    _ => return,
                };
                let blocks = part.cache().capacity();
                if before.caching.policy() != mode.caching.policy() {
                    part.set_replacement(AnyReplacement::new(&mode.caching.policy(), blocks, self.seed));
                }
                if before.caching.admission() != mode.caching.admission() {
                    part.set_admission(AnyAdmission::new(&mode.caching.admission(), blocks, self.seed));
                }
                if before.write != mode.write {
                    part.set_write_policy(mode.write, |key| traffic.left.push((key, true)));
                }
            }
            Laid::Batched(parts) => parts[tenant].set_write_policy(mode.write, traffic),
        }
    }
}

/// All blocks of a request in one part.
pub(super) fn one(part: &mut Part, action: Action, blocks: &Blocks<'_>, closed: bool, traffic: &mut Traffic) {
    part.set_closed(closed);
    part.accesses(action, blocks, 0..blocks.keys.len(), traffic);
    part.end_request(action);
}
