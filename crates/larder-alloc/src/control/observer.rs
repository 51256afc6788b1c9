//! The monitor and the analyzer of one tenant.

use std::ops::Range;

use larder_locality::{Analyzer, AnalyzerConfig, Bank, BlockRequest, Op, Reach};

use super::{ControlConfig, ServedBy};
use crate::{CacheUse, Findings, Latencies, Measured, Mode, Needs, Timed};

/// An analyzer remembers so many times the blocks of the cache at least: no cache of this size could serve longer distances.
const REMEMBERED_CACHES: u64 = 2;

/// What an analyzer remembers at least, in blocks: small caches still learn what a larger one would bring.
const REMEMBERED_BLOCKS_MIN: u64 = 1 << 20;

/// Requests of a kind that make their mean latency count in full; fewer are mixed with what was known before.
const ENOUGH: f64 = 20.0;

/// Requests that are gathered before they are analyzed, which is faster than one by one.
const TOGETHER: usize = 4096;

/// Observes one tenant.
pub(super) struct Observer {
    gathered: Vec<BlockRequest>,
    analyzer: Option<Analyzer>,
    bank: Option<Bank>,
    measured: Measured,
    latencies: Option<Latencies>,
    /// When the epoch began, and the weight in seconds of what is left of those before.
    began: f64,
    before: f64,
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
        let cache = u64::from(config.cache_blocks);
        let seed = config.seed.wrapping_add(tenant);
        let analyzer = (!needs.curves.is_empty()).then(|| {
            Analyzer::new(&AnalyzerConfig {
                policies: needs.curves.clone(),
                sampling: config.sampling,
                history_blocks: (cache * REMEMBERED_CACHES).max(REMEMBERED_BLOCKS_MIN),
                seed,
            })
        });
        let caches: Vec<_> = needs.bank.iter().map(|&Mode { caching, write }| (caching, write)).collect();
        let bank = (!caches.is_empty())
            .then(|| Bank::new(&caches, Reach::Blocks(cache.max(1)), config.bank_blocks, seed).ok())
            .flatten();
        let (measured, latencies) = (Measured::default(), None);
        Self {
            gathered: Vec::new(),
            analyzer,
            bank,
            measured,
            latencies,
            began: 0.0,
            before: 0.0,
            since_look: 0,
            looked: 0.0,
            decided_by: None,
        }
    }

    /// The tenant has come: what was counted does not count any more.
    pub(super) fn restart(&mut self, now: f64) {
        self.analyze();
        self.fade(0.0);
        (self.began, self.before) = (now, 0.0);
        (self.since_look, self.looked, self.decided_by) = (0, now, None);
    }

    /// Look at the rate of requests: true if the tenant does far more than what was decided by.
    pub(super) fn look(&mut self, now: f64) -> bool {
        let (requests, seconds) = (std::mem::take(&mut self.since_look), now - self.looked);
        self.looked = now;
        let most = self.decided_by.map(|rate| rate * CHANGED * seconds);
        requests >= RATE_MIN && most.is_some_and(|most| requests as f64 > most)
    }

    #[inline]
    pub(super) fn observe(&mut self, op: Op, keys: Range<u64>) -> bool {
        // A request has far fewer blocks.
        let blocks = (keys.end - keys.start) as u32;
        self.since_look += 1;
        self.gathered.push(BlockRequest { op, blocks, first: keys.start });
        self.gathered.len() >= TOGETHER
    }

    /// Analyze what was gathered.
    pub(super) fn analyze(&mut self) {
        if let Some(bank) = &mut self.bank {
            for request in &self.gathered {
                bank.observe(request.op, request.first..request.first + u64::from(request.blocks), true);
            }
        }
        if let Some(analyzer) = &mut self.analyzer {
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
        self.gathered.capacity() * size_of::<BlockRequest>()
            + self.analyzer.as_ref().map_or(0, Analyzer::memory_bytes)
            + self.bank.as_ref().map_or(0, Bank::memory_bytes)
    }

    /// What was found. With a memory, the epoch is over: what was counted weighs that much in the next one.
    pub(super) fn findings(&mut self, now: f64, nominal: Latencies, memory: Option<f64>) -> Findings {
        self.analyze();
        let latencies = latencies(&self.measured, &self.latencies.unwrap_or(nominal), &nominal);
        let mut findings = Findings {
            seconds: now - self.began + self.before,
            bank: self.bank.as_mut().map(Bank::curves).unwrap_or_default(),
            measured: self.measured,
            measured_seconds: now - self.began,
            latencies,
            usage: CacheUse::default(),
            ..Findings::default()
        };
        if let Some(analyzer) = &self.analyzer {
            let counts = analyzer.counts();
            findings.curves = counts.curves();
            findings.epoch = analyzer.findings_with(&counts, &findings.curves);
        } else {
            // Nothing was analyzed; that there were requests is known all the same.
            findings.epoch.requests = self.measured.requests();
            findings.epoch.accesses = findings.epoch.requests;
        }
        self.decided_by = Some(findings.epoch.requests as f64 / findings.seconds.max(f64::MIN_POSITIVE));
        if let Some(memory) = memory {
            self.latencies = Some(latencies);
            self.before = findings.seconds * memory;
            self.began = now;
            self.fade(memory);
        }
        findings
    }

    fn fade(&mut self, memory: f64) {
        self.measured = Measured::default();
        if let Some(analyzer) = &mut self.analyzer {
            analyzer.decay(memory);
        }
        if let Some(bank) = &mut self.bank {
            bank.fade(memory);
        }
    }
}

/// What requests take: as measured, or as before where there were too few.
///
/// Which device takes the writes is a matter of choice, and one that takes none now is not measured: then it is taken to be as crowded as the other, so that a burst
/// does not speak for the device that it did not meet.
fn latencies(measured: &Measured, before: &Latencies, nominal: &Latencies) -> Latencies {
    let mix = |timed: &Timed, before: f64| {
        let weight = (timed.count as f64 / ENOUGH).min(1.0);
        timed.mean().map_or(before, |mean| mean * weight + before * (1.0 - weight))
    };
    let crowded = |timed: &Timed, nominal: f64| timed.mean().map(|mean| (mean / nominal).max(1.0));
    let (cached, backing) = (&measured.cached_writes, &measured.backing_writes);
    let cached_like = crowded(backing, nominal.backing_write)
        .map_or(before.cached_write, |times| nominal.cached_write * times);
    let backing_like = crowded(cached, nominal.cached_write)
        .map_or(before.backing_write, |times| nominal.backing_write * times);
    Latencies {
        read_hit: mix(&measured.read_hits, before.read_hit),
        read_miss: mix(&measured.read_misses, before.read_miss),
        cached_write: mix(cached, if cached.count == 0 { cached_like } else { before.cached_write }),
        backing_write: mix(backing, if backing.count == 0 { backing_like } else { before.backing_write }),
        write_back: mix(&measured.write_backs, before.write_back),
    }
}
