//! rECS: how much of its cache a tenant is using, told from samples of the cache (S-CAVE: Luo, Ma, Lee, Zhang, Liu,
//! Zhou; PACT 2013, section IV).
//!
//! The rECS of a tenant ("ratio of effective cache space") is the share of its blocks in the cache that were hit since
//! the window began. To look at all places of the cache in each window would take too long; so a window has several
//! sampling periods, each of which looks at places in a row from a random one on. The value of a window is the mean of
//! its periods' ratios, and is smoothed: `rECS = old × α + sampled × (1 − α)`.
//!
//! This module knows no clock and keeps no cache: the caller says when a window ends (the paper's: 1 s) and when a
//! period begins (5 in a window), how far to look, and what lies where ([`Places`]). [`References`] remembers hits.
//!
//! The paper asks whether CLOCK's reference counter is above zero, which says "hit since the hand last passed", and
//! depends on how fast the hand goes. Here a hit counts if it came since the window began, whatever the replacement.
//! As in the paper a fill is no hit. Since a period sees the hits so far, periods spread over a window tell
//! the mean of the ratio while it grows; periods at the end of the window tell the ratio of the window.

use larder_policy::Rng;
use thiserror::Error;

/// The paper's α: the weight of what was known before.
pub const ALPHA: f64 = 0.8;

/// What the places of a cache hold at this moment.
pub trait Places {
    /// How many there are.
    fn count(&self) -> u32;

    /// What a place below [`Self::count`] holds; nothing if it is free.
    fn at(&self, place: u32) -> Option<Held>;
}

/// A block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whose it is.
    pub tenant: u16,
    /// True if it was hit since the window began.
    pub referenced: bool,
}

/// A smoothing parameter that is none.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the weight of what was known before must be from 0 to 1, without 1, but is {0}")]
pub struct BadAlpha(pub f64);

/// Blocks that were looked at, and those of them that were hit: the paper's N(all) and N(e).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blocks in the cache.
    pub blocks: u64,
    /// Those hit since the window began.
    pub referenced: u64,
}

impl Usage {
    /// The share of the blocks that were hit, from 0 to 1; none without blocks.
    pub fn ratio(self) -> Option<f64> {
        (self.blocks > 0).then(|| self.referenced as f64 / self.blocks as f64)
    }

    fn count(&mut self, held: Held) {
        self.blocks += 1;
        self.referenced += u64::from(held.referenced);
    }
}

/// Look at every place: the exact usage by tenant, from tenant 0 to the last that holds a block.
pub fn scan_all(places: &impl Places) -> Vec<Usage> {
    let mut usages: Vec<Usage> = Vec::new();
    let all = (0..places.count()).filter_map(|place| places.at(place));
    all.for_each(|held| slot(&mut usages, held.tenant).count(held));
    usages
}

/// Estimates of rECS, by tenant.
#[derive(Clone, Debug)]
pub struct Recs {
    alpha: f64,
    rng: Rng,
    tenants: Vec<Tenant>,
    /// Where the period under way looks next, and how many places it has looked at.
    next: u32,
    scanned: u32,
}

/// What is known of a tenant.
#[derive(Clone, Copy, Debug, Default)]
struct Tenant {
    /// The period under way.
    period: Usage,
    /// The sum of the ratios of the window's periods before it that met a block, and their number.
    ratios: f64,
    periods: u32,
    sampled: Option<f64>,
    smoothed: Option<f64>,
}

impl Recs {
    /// Nothing known yet, with the paper's α. The seed decides where periods begin.
    pub fn new(seed: u64) -> Self {
        Self { alpha: ALPHA, rng: Rng::new(seed), tenants: Vec::new(), next: 0, scanned: 0 }
    }

    /// The same with another α: 0 for no smoothing.
    ///
    /// # Errors
    /// Unless `0 <= alpha < 1`.
    pub fn with_alpha(alpha: f64, seed: u64) -> Result<Self, BadAlpha> {
        if !(0.0..1.0).contains(&alpha) {
            return Err(BadAlpha(alpha));
        }
        Ok(Self { alpha, ..Self::new(seed) })
    }

    /// Begin a sampling period, at a random one of the places.
    pub fn begin_period(&mut self, places: &impl Places) {
        self.tenants.iter_mut().for_each(Tenant::end_period);
        // Below a number of 32 bits, and so one itself.
        self.next = self.rng.below(places.count().into()) as u32;
        self.scanned = 0;
    }

    /// Look at the next `at_most` places, around the end; returns how many there were to look at. A period looks at no
    /// place twice: one that has seen all looks at none. It may be cut into as many of these calls as suits the caller.
    pub fn scan(&mut self, places: &impl Places, at_most: u32) -> u32 {
        let count = places.count();
        let now = at_most.min(count.saturating_sub(self.scanned));
        for _ in 0..now {
            // There may be fewer places than when the period began.
            let place = if self.next < count { self.next } else { 0 };
            if let Some(held) = places.at(place) {
                slot(&mut self.tenants, held.tenant).period.count(held);
            }
            self.next = place + 1;
        }
        self.scanned += now;
        now
    }

    /// The window ends: what its periods found becomes known.
    ///
    /// A tenant of which no block was met keeps the value that it had: nothing was learnt of it.
    pub fn end_window(&mut self) {
        for tenant in &mut self.tenants {
            tenant.end_period();
            tenant.end_window(self.alpha);
        }
    }

    /// The smoothed rECS of a tenant, from 0 to 1; none as long as no block of it was met. The first window that met
    /// one has nothing before it: its value counts in full.
    pub fn smoothed(&self, tenant: u16) -> Option<f64> {
        self.tenants.get(usize::from(tenant))?.smoothed
    }

    /// What the last window found, from 0 to 1; none if it met no block of the tenant.
    pub fn sampled(&self, tenant: u16) -> Option<f64> {
        self.tenants.get(usize::from(tenant))?.sampled
    }

    /// Forget a tenant: it is gone, or begins anew.
    pub fn forget(&mut self, tenant: u16) {
        *slot(&mut self.tenants, tenant) = Tenant::default();
    }
}

impl Tenant {
    fn end_period(&mut self) {
        if let Some(ratio) = std::mem::take(&mut self.period).ratio() {
            self.ratios += ratio;
            self.periods += 1;
        }
    }

    fn end_window(&mut self, alpha: f64) {
        self.sampled = (self.periods > 0).then(|| self.ratios / f64::from(self.periods));
        (self.ratios, self.periods) = (0.0, 0);
        if let Some(sampled) = self.sampled {
            let old = self.smoothed.unwrap_or(sampled);
            self.smoothed = Some(old * alpha + sampled * (1.0 - alpha));
        }
    }
}

/// A tenant's entry in a list that grows to the tenants that there are.
fn slot<T: Clone + Default>(tenants: &mut Vec<T>, tenant: u16) -> &mut T {
    let at = usize::from(tenant);
    if at >= tenants.len() {
        tenants.resize(at + 1, T::default());
    }
    &mut tenants[at]
}

/// Which places were hit since the window began: one byte each.
///
/// A hit stamps its place with the number of the window. Numbers come back after 255 windows; so that no old stamp is
/// taken for a new one, each window's begin wipes one part in 255 of the stamps, rather than all.
#[derive(Clone, Debug)]
pub struct References {
    stamps: Vec<u8>,
    /// From 1 on: 0 is a place without a hit.
    window: u8,
}

impl References {
    /// Of so many places, none of them hit, in a first window.
    pub fn new(places: u32) -> Self {
        Self { stamps: vec![NO_HIT; places as usize], window: 1 }
    }

    /// A block was hit. Places that do not exist are passed over.
    #[inline]
    pub fn hit(&mut self, place: u32) {
        self.stamp(place, self.window);
    }

    /// A place was filled with another block, or freed: its hits were another's.
    #[inline]
    pub fn reload(&mut self, place: u32) {
        self.stamp(place, NO_HIT);
    }

    /// True if the block was hit since the window began.
    #[inline]
    pub fn is_referenced(&self, place: u32) -> bool {
        self.stamps.get(place as usize) == Some(&self.window)
    }

    /// A window begins: no place was hit in it. Wipes a part in 255 of the places.
    pub fn begin_window(&mut self) {
        self.window = self.window % u8::MAX + 1;
        let part = self.stamps.len().div_ceil(usize::from(u8::MAX));
        let begin = (part * usize::from(self.window - 1)).min(self.stamps.len());
        let end = (begin + part).min(self.stamps.len());
        self.stamps[begin..end].fill(NO_HIT);
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.stamps.capacity()
    }

    #[inline]
    fn stamp(&mut self, place: u32, stamp: u8) {
        if let Some(at) = self.stamps.get_mut(place as usize) {
            *at = stamp;
        }
    }
}

const NO_HIT: u8 = 0;

#[cfg(test)]
mod tests;
