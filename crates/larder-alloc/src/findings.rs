//! All that the monitor and the analyzer tell about one tenant at the end of an epoch.

use larder_locality::{BankCurve, EpochFindings, PolicyCurves};

/// Requests of one kind, and the seconds that they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// How many.
    pub count: u64,
    /// Seconds, added up.
    pub seconds: f64,
}

impl Timed {
    /// Count one that took so many seconds.
    #[inline]
    pub fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
    }

    /// Seconds of one in the mean; none where there was none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / self.count as f64)
    }
}

/// The requests of a tenant in an epoch, by what served them, with their latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Reads that the SSD served alone.
    pub read_hits: Timed,
    /// Reads that needed the backing.
    pub read_misses: Timed,
    /// Writes that the SSD took alone.
    pub cached_writes: Timed,
    /// Writes that had to go to the backing.
    pub backing_writes: Timed,
    /// Dirty blocks that left and were written back, and the seconds that requests waited for that, which are in none of the others.
    pub write_backs: Timed,
    /// Blocks written to the SSD, by whatever cause.
    pub ssd_blocks_written: u64,
}

impl Measured {
    /// Count another's as well.
    pub fn add(&mut self, more: &Self) {
        for (timed, more) in self.timed_mut().into_iter().zip(more.timed()) {
            timed.count += more.count;
            timed.seconds += more.seconds;
        }
        self.ssd_blocks_written += more.ssd_blocks_written;
    }

    /// Count this part of it only, 0 to 1.
    pub(crate) fn fade(&mut self, part: f64) {
        for timed in self.timed_mut() {
            *timed = Timed { count: (timed.count as f64 * part) as u64, seconds: timed.seconds * part };
        }
        self.ssd_blocks_written = (self.ssd_blocks_written as f64 * part) as u64;
    }

    /// What was counted since another moment, at which it was `before`.
    pub fn since(&self, before: &Self) -> Self {
        let mut more = *self;
        for (timed, before) in more.timed_mut().into_iter().zip(before.timed()) {
            timed.count = timed.count.saturating_sub(before.count);
            timed.seconds = (timed.seconds - before.seconds).max(0.0);
        }
        more.ssd_blocks_written = self.ssd_blocks_written.saturating_sub(before.ssd_blocks_written);
        more
    }

    fn timed(&self) -> [Timed; 5] {
        [self.read_hits, self.read_misses, self.cached_writes, self.backing_writes, self.write_backs]
    }

    fn timed_mut(&mut self) -> [&mut Timed; 5] {
        [
            &mut self.read_hits,
            &mut self.read_misses,
            &mut self.cached_writes,
            &mut self.backing_writes,
            &mut self.write_backs,
        ]
    }

    /// The share of the requests that the SSD served alone, 0 to 1; none without requests.
    pub fn request_hit_ratio(&self) -> Option<f64> {
        let (hits, all) = (self.read_hits.count + self.cached_writes.count, self.requests());
        (all > 0).then(|| hits as f64 / all as f64)
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        [self.read_hits, self.read_misses, self.cached_writes, self.backing_writes]
            .iter()
            .map(|timed| timed.count)
            .sum()
    }

    /// Mean seconds of a request; none without requests.
    pub fn mean_latency(&self) -> Option<f64> {
        let seconds = self.timed().iter().map(|timed| timed.seconds).sum();
        Timed { count: self.requests(), seconds }.mean()
    }
}

/// What a request of a tenant takes, by what serves it, in seconds: measured lately, or what the devices of the host take
/// where the tenant had none of the kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// A read that the SSD serves alone.
    pub read_hit: f64,
    /// A read that needs the backing.
    pub read_miss: f64,
    /// A write that the SSD takes alone.
    pub cached_write: f64,
    /// A write that goes to the backing.
    pub backing_write: f64,
    /// What requests wait in all for one dirty block that has to be written back for them.
    pub write_back: f64,
}

impl Default for Latencies {
    /// An SSD beside a hard disk: 100 µs beside 5 ms. Nobody waits for blocks that are written back.
    fn default() -> Self {
        Self { read_hit: 1e-4, read_miss: 5e-3, cached_write: 1e-4, backing_write: 5e-3, write_back: 0.0 }
    }
}

/// How a tenant uses the blocks that it has (S-CAVE, sections IV and V). The window is the time since the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheUse {
    /// Blocks that it holds.
    pub resident_blocks: u32,
    /// The share of them (0 to 1) that was hit in the window, sampled or counted: the `E_sampled` of S-CAVE. None where the tenant holds nothing, or
    /// nobody needs to know.
    pub effective: Option<f64>,
    /// Blocks that it accessed on the backing in the window.
    pub missed_blocks: u64,
}

impl CacheUse {
    /// What is known of it where nothing newer is told: what the tenant holds. The window is over.
    pub fn held(&self) -> Self {
        Self { resident_blocks: self.resident_blocks, ..Self::default() }
    }
}

/// What was found about one tenant in an epoch. Where the allocator's method has a memory ([`crate::Profile::memory`]), `epoch`, `curves` and `bank` still
/// count a part of the epochs before, and `seconds` has the same part of theirs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Classes, distances, counts.
    pub epoch: EpochFindings,
    /// Seconds in which that much was counted: those of the epoch, or that the tenant was there of it.
    pub seconds: f64,
    /// Curves of LRU caches, one for each policy that the allocator needs ([`crate::Needs`]).
    pub curves: Vec<PolicyCurves>,
    /// The share of the blocks that these were made of, up to 1; 0 where that is not known, and taken for all of them.
    pub sampled: f64,
    /// Points of other caches, for each mode that the allocator needs.
    pub bank: Vec<BankCurve>,
    /// What happened in the epoch.
    pub measured: Measured,
    /// Seconds in which that happened; 0 where that is not known apart from `seconds`.
    pub measured_seconds: f64,
    /// What of it happened since the last decision; none where that was at the begin of the epoch.
    pub since_decision: Option<SinceDecision>,
    /// What a request takes.
    pub latencies: Latencies,
    /// How it uses its cache.
    pub usage: CacheUse,
    /// Blocks that it would hold at the price of SSD writes, were those of all tenants to stay for as long; none where all may be written, where everything fits, or where the tenant asks for nothing.
    pub held_at_price: Option<u32>,
}

/// What happened since the last decision, or since the tenant came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SinceDecision {
    /// What happened.
    pub measured: Measured,
    /// Seconds that have passed since.
    pub seconds: f64,
    /// The part of a whole epoch that these are, 0 to 1.
    pub part: f64,
}

impl Findings {
    /// What happened under the last decision, and the part of a whole epoch that it has stood for.
    pub(crate) fn under_decision(&self) -> SinceDecision {
        self.since_decision.unwrap_or(SinceDecision {
            measured: self.measured,
            seconds: self.measured_seconds,
            part: 1.0,
        })
    }
}

impl From<EpochFindings> for Findings {
    /// With nothing else known; an epoch of one second.
    fn from(epoch: EpochFindings) -> Self {
        Self { epoch, seconds: 1.0, ..Self::default() }
    }
}
