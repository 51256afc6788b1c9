//! The monitor and the analyzer of one tenant.
//!
//! A tenant that does nothing takes hardly any memory or time, and a host may have a thousand of them: what analyzes requests is made for the first one, and given up when none has
//! come for [`FORGOTTEN_EPOCHS`].

use std::ops::Range;

use larder_locality::{Analyzer, AnalyzerConfig, Bank, BlockRequest, Op, Reach};
use larder_policy::WritePolicy;
use larder_policy::spec::CachingSpec;

use super::{ControlConfig, ServedBy, rounds};
use crate::{CacheUse, Findings, Latencies, Measured, Mode, Needs, SinceDecision, Timed};

/// An analyzer remembers so many times the blocks of the cache at least: no cache of this size could serve longer distances.
const REMEMBERED_CACHES: u64 = 2;

/// What an analyzer remembers at least, in blocks: small caches still learn what a larger one would bring.
const REMEMBERED_BLOCKS_MIN: u64 = 1 << 20;

/// Requests of a kind that make their mean latency count in full; fewer are mixed with what was known before.
const ENOUGH: f64 = 20.0;

/// Writes in an epoch of which the SSD takes [`ENOUGH`], or is out of use.
const MANY: f64 = 5.0 * ENOUGH;

/// Requests that are gathered before they are analyzed, which is faster than one by one.
const TOGETHER: usize = 4096;

/// Whole epochs without a request after which the blocks that a tenant has accessed are remembered no more.
pub(super) const FORGOTTEN_EPOCHS: u32 = 32;

/// What analyzers are made like.
#[derive(Clone)]
struct Design {
    analyzer: Option<AnalyzerConfig>,
    caches: Vec<(CachingSpec, WritePolicy)>,
    reach_blocks: u64,
    bank_blocks: u32,
    seed: u64,
}

impl Design {
    fn new(config: &ControlConfig, needs: &Needs, tenant: u64) -> Self {
        let cache = u64::from(config.cache_blocks);
        let seed = config.seed.wrapping_add(tenant);
        let analyzer = (!needs.curves.is_empty()).then(|| AnalyzerConfig {
            policies: needs.curves.clone(),
            sampling: config.sampling,
            history_blocks: (cache * REMEMBERED_CACHES).max(REMEMBERED_BLOCKS_MIN),
            seed,
        });
        let caches = needs.bank.iter().map(|&Mode { caching, write }| (caching, write)).collect();
        Self { analyzer, caches, reach_blocks: cache.max(1), bank_blocks: config.bank_blocks, seed }
    }

    fn make(&self) -> Scopes {
        let bank = (!self.caches.is_empty()).then(|| {
            Bank::new(&self.caches, Reach::Blocks(self.reach_blocks), self.bank_blocks, self.seed).ok()
        });
        Scopes { analyzer: self.analyzer.as_ref().map(Analyzer::new), bank: bank.flatten() }
    }

    /// Requests are analyzed for their blocks.
    fn wants_curves(&self) -> bool {
        self.analyzer.is_some()
    }
}

/// What analyzes requests.
struct Scopes {
    analyzer: Option<Analyzer>,
    bank: Option<Bank>,
}

/// Observes one tenant.
pub(super) struct Observer {
    gathered: Vec<BlockRequest>,
    design: Design,
    /// None of a tenant that did nothing yet, or for long.
    scopes: Option<Box<Scopes>>,
    /// Whole epochs since the last request.
    idle_epochs: u32,
    measured: Measured,
    /// What was measured in the epochs before, as far as it still counts.
    past: Measured,
    latencies: Option<Latencies>,
    /// When the epoch began, and the weight in seconds of what is left of those before.
    began: f64,
    before: f64,
    /// When the last decision was, and what of the epoch had been measured by then.
    decided: f64,
    measured_before: Measured,
    /// Requests since the last look at their rate, when that was, and the rate that was decided by.
    since_look: u64,
    looked: f64,
    decided_by: Option<f64>,
}

/// A tenant whose rate of requests is so many times that which was decided by has changed.
const CHANGED: f64 = 3.0;

/// Requests without which no rate is told.
const RATE_MIN: u64 = 200;

impl Observer {
    pub(super) fn new(config: &ControlConfig, needs: &Needs, tenant: u64) -> Self {
        let (measured, latencies) = (Measured::default(), None);
        Self {
            gathered: Vec::new(),
            design: Design::new(config, needs, tenant),
            scopes: None,
            idle_epochs: 0,
            measured,
            past: Measured::default(),
            latencies,
            began: 0.0,
            before: 0.0,
            decided: 0.0,
            measured_before: Measured::default(),
            since_look: 0,
            looked: 0.0,
            decided_by: None,
        }
    }

    /// The tenant has come, or is another one as it were: what was counted and measured does not count any more.
    pub(super) fn restart(&mut self, now: f64) {
        self.analyze();
        self.fade(0.0, 0.0);
        (self.began, self.before, self.decided) = (now, 0.0, now);
        (self.since_look, self.looked, self.decided_by) = (0, now, None);
    }

    /// Something else is to be observed of the same tenant: what was counted does not count any more, for it was another count. What requests take was measured as before, and the rate is known.
    pub(super) fn redesign(&mut self, config: &ControlConfig, needs: &Needs, tenant: u64, now: f64) {
        self.design = Design::new(config, needs, tenant);
        (self.scopes, self.gathered) = (None, Vec::new());
        self.fade(1.0, 0.0);
        (self.began, self.before, self.decided) = (now, 0.0, now);
    }

    /// True if the tenant has done far more since the last look than what was decided by.
    pub(super) fn has_changed(&self, now: f64) -> bool {
        let most = self.decided_by.map(|rate| rate * CHANGED * (now - self.looked));
        self.since_look >= RATE_MIN && most.is_some_and(|most| self.since_look as f64 > most)
    }

    /// So many seconds go by in which nothing comes: they do not count.
    pub(super) fn pass_over(&mut self, seconds: f64) {
        self.began += seconds;
        self.decided += seconds;
        self.looked += seconds;
    }

    /// Requests since the last look.
    pub(super) fn since_look(&self) -> u64 {
        self.since_look
    }

    /// The rate of requests was looked at.
    pub(super) fn looked(&mut self, now: f64) {
        (self.since_look, self.looked) = (0, now);
    }

    #[inline]
    pub(super) fn observe(&mut self, op: Op, keys: Range<u64>) -> bool {
        if op == Op::Populate && self.scopes.is_none() && self.gathered.is_empty() {
            // Nothing waits to be moved.
            return false;
        }
        if op != Op::Populate {
            self.idle_epochs = 0;
            self.since_look += 1;
        }
        // A request has far fewer blocks.
        let blocks = (keys.end - keys.start) as u32;
        self.gathered.push(BlockRequest { op, blocks, first: keys.start });
        self.gathered.len() >= TOGETHER
    }

    /// No request has come for so long that nothing is remembered of the tenant's blocks.
    pub(super) fn is_forgotten(&self) -> bool {
        self.idle_epochs > FORGOTTEN_EPOCHS
    }

    /// Analyze what was gathered.
    pub(super) fn analyze(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let scopes = self.scopes.get_or_insert_with(|| Box::new(self.design.make()));
        if let Some(bank) = &mut scopes.bank {
            for request in &self.gathered {
                bank.observe(request.op, request.first..request.first + u64::from(request.blocks), true);
            }
        }
        if let Some(analyzer) = &mut scopes.analyzer {
            analyzer.observe_all(&self.gathered);
        }
        self.gathered.clear();
    }

    #[inline]
    pub(super) fn served(&mut self, by: ServedBy, seconds: f64) {
        let timed = match by {
            ServedBy::ReadHit => &mut self.measured.read_hits,
            ServedBy::ReadMiss => &mut self.measured.read_misses,
            ServedBy::CachedWrite => &mut self.measured.cached_writes,
            ServedBy::BackingWrite => &mut self.measured.backing_writes,
        };
        timed.add(seconds);
    }

    #[inline]
    pub(super) fn written_back(&mut self, blocks: u64, seconds: f64) {
        self.measured.write_backs.count += blocks;
        self.measured.write_backs.seconds += seconds;
    }

    /// What was measured elsewhere.
    pub(super) fn absorb(&mut self, more: &Measured) {
        self.measured.add(more);
    }

    #[inline]
    pub(super) fn ssd_written(&mut self, blocks: u64) {
        self.measured.ssd_blocks_written += blocks;
    }

    pub(super) fn measured(&self) -> Measured {
        self.measured
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let of = |scopes: &Scopes| {
            let analyzer = scopes.analyzer.as_ref().map_or(0, Analyzer::memory_bytes);
            analyzer + scopes.bank.as_ref().map_or(0, Bank::memory_bytes)
        };
        self.gathered.capacity() * size_of::<BlockRequest>()
            + self.design.caches.capacity() * size_of::<(CachingSpec, WritePolicy)>()
            + self.scopes.as_deref().map_or(0, of)
    }

    /// What was found. With a memory, the epoch is over: what was counted weighs that much in the next one ([`rounds::kept`]).
    pub(super) fn findings(
        &mut self,
        now: f64,
        nominal: Latencies,
        epoch_seconds: f64,
        memory: Option<f64>,
        promised: bool,
    ) -> Findings {
        self.analyze();
        // With a memory, the mean of some epochs: a burst in one of them would else make every miss dear in the next, and cheap in the one after.
        // Not where a promise is to be kept: what is late would be kept late.
        let past = if promised { Measured::default() } else { self.past };
        let before = self.latencies.unwrap_or(nominal);
        let latencies = latencies(&past, &self.measured, &before, &nominal);
        let mut findings = Findings {
            seconds: now - self.began + self.before,
            measured: self.measured,
            measured_seconds: now - self.began,
            since_decision: Some(SinceDecision {
                measured: self.measured.since(&self.measured_before),
                seconds: now - self.decided,
                part: ((now - self.decided) / epoch_seconds).clamp(0.0, 1.0),
            }),
            latencies,
            usage: CacheUse::default(),
            ..Findings::default()
        };
        if let Some(bank) = self.scopes.as_mut().and_then(|scopes| scopes.bank.as_mut()) {
            findings.bank = bank.curves();
        }
        if let Some(analyzer) = self.scopes.as_ref().and_then(|scopes| scopes.analyzer.as_ref()) {
            let counts = analyzer.counts();
            findings.curves = counts.curves();
            findings.sampled = analyzer.rate();
            findings.epoch = analyzer.findings_with(&counts, &findings.curves);
        } else if !self.design.wants_curves() {
            // Nothing was analyzed; that there were requests is known all the same.
            findings.epoch.requests = self.measured.requests();
            findings.epoch.accesses = findings.epoch.requests;
        }
        self.decided_by = Some(findings.epoch.requests as f64 / findings.seconds.max(f64::MIN_POSITIVE));
        (self.decided, self.measured_before) = (now, self.measured);
        if let Some(memory) = memory {
            self.latencies = Some(latencies);
            if is_out_of_use(&self.measured) {
                self.past.cached_writes = Timed::default();
            }
            let counted = rounds::kept(memory, &findings.epoch);
            self.before = findings.seconds * counted;
            self.began = now;
            self.fade(memory, counted);
            self.idle_epochs = self.idle_epochs.saturating_add(1);
            if self.is_forgotten() {
                (self.scopes, self.gathered) = (None, Vec::new());
            }
        }
        findings
    }

    /// An epoch is over: what was measured in it, and what was counted, count so much in the next one.
    fn fade(&mut self, measured: f64, counted: f64) {
        self.past.add(&std::mem::take(&mut self.measured));
        self.measured_before = Measured::default();
        self.past.fade(measured);
        let Some(scopes) = &mut self.scopes else { return };
        if let Some(analyzer) = &mut scopes.analyzer {
            analyzer.decay(counted);
        }
        if let Some(bank) = &mut scopes.bank {
            bank.fade(counted);
        }
    }
}

/// True where the SSD takes hardly any of a tenant's writes now, though the backing takes many.
fn is_out_of_use(now: &Measured) -> bool {
    let (cached, backing) = (now.cached_writes.count as f64, now.backing_writes.count as f64);
    cached < ENOUGH && cached + backing >= MANY
}

/// What requests take: as measured in this epoch and, as far as that still counts, in those before (`past`); or as known `before` where there were too few.
///
/// Which device takes the writes is a matter of choice, and one that takes none now is not measured: then it is taken to be as crowded as the other, so that a burst
/// does not speak for the device that it did not meet. Nor does it speak for the SSD that did meet it, if that has taken hardly any since: it would hardly be chosen again.
fn latencies(past: &Measured, now: &Measured, before: &Latencies, nominal: &Latencies) -> Latencies {
    let mix = |timed: &Timed, before: f64| {
        let weight = (timed.count as f64 / ENOUGH).min(1.0);
        timed.mean().map_or(before, |mean| mean * weight + before * (1.0 - weight))
    };
    let crowded = |timed: &Timed, nominal: f64| timed.mean().map(|mean| (mean / nominal).max(1.0));
    let mut measured = *past;
    let is_outdated = past.cached_writes.count > 0 && is_out_of_use(now);
    if is_outdated {
        measured.cached_writes = Timed::default();
    }
    measured.add(now);
    let (cached, backing) = (&measured.cached_writes, &measured.backing_writes);
    let cached_like = crowded(backing, nominal.backing_write)
        .map_or(before.cached_write, |times| nominal.cached_write * times);
    let backing_like = crowded(cached, nominal.cached_write)
        .map_or(before.backing_write, |times| nominal.backing_write * times);
    let is_guessed = is_outdated || cached.count == 0;
    Latencies {
        read_hit: mix(&measured.read_hits, before.read_hit),
        read_miss: mix(&measured.read_misses, before.read_miss),
        cached_write: mix(cached, if is_guessed { cached_like } else { before.cached_write }),
        backing_write: mix(backing, if backing.count == 0 { backing_like } else { before.backing_write }),
        write_back: mix(&measured.write_backs, before.write_back),
    }
}
