//! What could be had at best: the least mean latency to which any cache could bring tenants with so many writes to the SSD, had it known all requests beforehand.
//!
//! Nobody waits for others there, the cache has room for everything, and a request that needs the backing takes what it takes without a cache. Between two writes of
//! a block its accesses are one *stretch*: with one write to the SSD, at its begin, all of its reads are served from there, and a write that begins it as well.
//! So a stretch saves at most what its accesses do, each its part of what its request does; with so many writes to the SSD at most that of as many stretches, those
//! that save most. A request of which the SSD has some blocks only is credited with their part all the same, which is more than that saves.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use larder_trace::{Request, RequestKind};

use super::arrivals::{Arrivals, Next, ns};
use super::device::{Op, STRIPE, Streams};
use super::run::{TenantsError, check};
use super::{Backing, TenantsPlan};
use crate::block::Keys;
use crate::{BlockSize, Source, TooManySegments};

/// What the SSD could save.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindsight {
    /// Reads and writes.
    pub requests: u64,
    /// Seconds that all of them take without a cache and without waiting.
    uncached_seconds: f64,
    /// `saved[n]`: seconds that are saved with n writes of a block to the SSD.
    saved: Vec<f64>,
}

impl Hindsight {
    /// The least mean latency in seconds, with at most so many blocks written to the SSD.
    pub fn mean_latency(&self, ssd_writes: u64) -> f64 {
        let at = usize::try_from(ssd_writes).unwrap_or(usize::MAX).min(self.saved.len() - 1);
        (self.uncached_seconds - self.saved[at]) / self.requests.max(1) as f64
    }
}

/// What the SSD could save in the run that is planned; its allocator, size and budget are of no account. Of tenants in closed loop, whose requests have no times, all come at once.
///
/// # Errors
/// Where a trace cannot be read, and where the plan asks for what cannot be.
pub fn hindsight<S: Source, F: Fn() -> Result<S, S::Error>>(
    plan: &TenantsPlan,
    sources: &[F],
) -> Result<Hindsight, TenantsError<S::Error>> {
    check(plan, sources.len())?;
    let failed =
        |at: usize| move |error| TenantsError::Source { tenant: plan.tenants[at].name.clone(), error };
    let mut tenants = Vec::with_capacity(sources.len());
    for (at, (tenant, source)) in plan.tenants.iter().zip(sources).enumerate() {
        let source = source().map_err(failed(at))?;
        tenants.push(Arrivals::new(tenant, source, None, plan.limit));
    }
    let mut stretches = Stretches::new(plan);
    let mut ready: Vec<Option<(u64, Request)>> = Vec::new();
    for (at, arrivals) in tenants.iter_mut().enumerate() {
        ready.push(following(arrivals, &sources[at]).map_err(failed(at))?);
    }
    let earliest = |ready: &[Option<(u64, Request)>]| {
        let times = ready.iter().enumerate().filter_map(|(at, it)| it.map(|(time, _)| (time, at)));
        times.min().map(|(_, at)| at)
    };
    let end = plan.duration_seconds.map_or(u64::MAX, ns);
    while let Some(at) = earliest(&ready) {
        match ready[at].take() {
            Some((time, request)) if time < end => stretches.look(at, &request)?,
            _ => continue,
        }
        ready[at] = following(&mut tenants[at], &sources[at]).map_err(failed(at))?;
    }
    Ok(stretches.end())
}

/// A tenant's next request; a trace that is to be repeated is opened again.
fn following<S: Source>(
    arrivals: &mut Arrivals<S>,
    source: &impl Fn() -> Result<S, S::Error>,
) -> Result<Option<(u64, Request)>, S::Error> {
    loop {
        match arrivals.next()? {
            Next::Request(at, request) => return Ok(Some((at, request))),
            Next::End => return Ok(None),
            Next::Again => arrivals.reopened(source()?),
        }
    }
}

/// The stretches so far.
struct Stretches<'a> {
    plan: &'a TenantsPlan,
    block: BlockSize,
    /// One, or one for each tenant: what goes on where another request ended.
    backings: Vec<Streams>,
    keys: Keys,
    volumes: HashMap<(usize, u32), u32>,
    buffer: Vec<u64>,
    /// What is saved by the stretches that are under way.
    open: HashMap<u64, f64>,
    saved: Vec<f64>,
    requests: u64,
    uncached_seconds: f64,
}

impl<'a> Stretches<'a> {
    fn new(plan: &'a TenantsPlan) -> Self {
        let backings = if plan.backings == Backing::Shared { 1 } else { plan.tenants.len() };
        Self {
            plan,
            block: plan.caching.block.unwrap_or_default(),
            backings: vec![Streams::default(); backings],
            keys: Keys::new(),
            volumes: HashMap::new(),
            buffer: Vec::new(),
            open: HashMap::new(),
            saved: Vec::new(),
            requests: 0,
            uncached_seconds: 0.0,
        }
    }

    /// The next request.
    fn look(&mut self, tenant: usize, request: &Request) -> Result<(), TooManySegments> {
        let number = self.volumes.len() as u32;
        let volume = *self.volumes.entry((tenant, request.volume)).or_insert(number);
        let blocks = self.block.blocks_of(request);
        self.buffer.clear();
        self.keys.extend(&mut self.buffer, volume, &blocks, usize::MAX)?;
        let op = match request.kind {
            RequestKind::Read => Op::Read,
            RequestKind::Write => Op::Write,
            RequestKind::Discard => {
                self.saved.extend(self.buffer.iter().filter_map(|key| self.open.remove(key)));
                return Ok(());
            }
            RequestKind::Flush => return Ok(()),
        };
        self.requests += 1;
        let Some(&first) = self.buffer.first() else { return Ok(()) };
        let count = self.buffer.len() as u64;
        let at = tenant.min(self.backings.len() - 1);
        let sequential = self.backings[at].go_on(first, count);
        let bytes = (count * u64::from(self.block.bytes())).min(STRIPE);
        let uncached = self.plan.backing.seconds(op, sequential, bytes);
        let cached = self.plan.ssd.seconds(op, true, bytes);
        self.uncached_seconds += uncached;
        let each = (uncached - cached).max(0.0) / count as f64;
        for &key in &self.buffer {
            match op {
                Op::Write => self.saved.extend(self.open.insert(key, each)),
                Op::Read => match self.open.entry(key) {
                    Entry::Occupied(mut stretch) => *stretch.get_mut() += each,
                    Entry::Vacant(stretch) => _ = stretch.insert(0.0),
                },
            }
        }
        Ok(())
    }

    fn end(mut self) -> Hindsight {
        self.saved.extend(self.open.into_values());
        self.saved.retain(|&saved| saved > 0.0);
        self.saved.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut sum = 0.0;
        let sums = self.saved.iter().map(|saved| {
            sum += saved;
            sum
        });
        let saved = std::iter::once(0.0).chain(sums).collect();
        Hindsight { requests: self.requests, uncached_seconds: self.uncached_seconds, saved }
    }
}
