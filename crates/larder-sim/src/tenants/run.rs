//! A run: events in order of time, each request through cache, devices and the loop of an epoch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use larder_alloc::control::{ControlConfig, ControlLoop, ControlTenant, ServedBy};
use larder_alloc::{AllocError, CacheUse, Layout, Population, Profile};
use larder_locality::Op as BlockOp;
use larder_policy::trial::{Action, Outcome};
use larder_trace::{Request, RequestKind};
use rustix::time::{ClockId, clock_gettime};

use super::arrivals::{Arrivals, Next, ns};
use super::device::Op;
use super::latency::Latency;
use super::machine::{Machine, nominal};
use super::result::{Achieved, DecisionRow, SsdWritesByCause, TenantResult, TenantsResult};
use super::store::{Access, Store};
use super::traffic::Traffic;
use super::{Pace, TenantsPlan};
use crate::block::{Keys, TooManySegments};
use crate::plan::CACHE_BLOCKS_MAX;
use crate::{BlockSize, Progress, Source};

/// Requests between two calls of `progress`.
const PROGRESS: u64 = 4096;

/// Reads that a mover has under way for a tenant.
const MOVES: usize = 8;

/// Why a run gives no result.
#[derive(Debug, thiserror::Error)]
pub enum TenantsError<E> {
    /// A trace cannot be read.
    #[error("tenant {tenant}: {error}")]
    Source {
        /// Whose it is.
        tenant: String,
        /// Why.
        error: E,
    },
    /// No allocator has this name.
    #[error("{0:?} is no allocator; there are {names}", names = larder_alloc::NAMES.join(", "))]
    UnknownAllocator(String),
    /// Nobody is there.
    #[error("there is no tenant")]
    NoTenant,
    /// Tenants and traces do not belong together.
    #[error("{tenants} tenants, but {sources} traces")]
    SourceCount {
        /// Tenants.
        tenants: usize,
        /// Traces.
        sources: usize,
    },
    /// Two tenants have the same name.
    #[error("two tenants are called {0:?}")]
    SameName(String),
    /// A tenant for which nothing is ever done, or that never ends.
    #[error("tenant {tenant}: {what}")]
    Tenant {
        /// Which.
        tenant: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A cache of less than a block, or of more blocks than there may be.
    #[error("a cache of {blocks} blocks cannot be simulated: from 1 to {CACHE_BLOCKS_MAX} can")]
    CacheSize {
        /// Its blocks.
        blocks: u64,
    },
    /// A block that is none.
    #[error(transparent)]
    Block(#[from] crate::BlockSizeError),
    /// An epoch of nothing.
    #[error("an epoch must be longer than nothing")]
    EmptyEpoch,
    /// A trace is too wide.
    #[error(transparent)]
    TooManySegments(#[from] TooManySegments),
    /// Nothing could be decided at the start.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

/// Run one allocator over the tenants' traces. `sources` open the trace of each tenant, in their order; a trace that is to be repeated is opened again.
///
/// # Errors
/// Where a trace cannot be read, and where the plan asks for what cannot be.
pub fn simulate_tenants<S: Source, F: Fn() -> Result<S, S::Error>>(
    plan: &TenantsPlan,
    sources: &[F],
    mut progress: impl FnMut(Progress),
) -> Result<TenantsResult, TenantsError<S::Error>> {
    check(plan, sources.len())?;
    let mut run = Run::new(plan, sources)?;
    let began = cpu();
    run.all(sources, &mut progress)?;
    Ok(run.finish((cpu() - began).as_secs_f64()))
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

fn check<E>(plan: &TenantsPlan, sources: usize) -> Result<(), TenantsError<E>> {
    let tenants = &plan.tenants;
    if tenants.is_empty() {
        return Err(TenantsError::NoTenant);
    }
    if tenants.len() != sources {
        return Err(TenantsError::SourceCount { tenants: tenants.len(), sources });
    }
    for (at, tenant) in tenants.iter().enumerate() {
        if tenants[..at].iter().any(|other| other.name == tenant.name) {
            return Err(TenantsError::SameName(tenant.name.clone()));
        }
        let endless = tenant.repeat
            && tenant.stop_seconds.is_none()
            && plan.duration_seconds.is_none()
            && plan.limit.is_none();
        let what = match tenant.pace {
            Pace::Open { rate } if !(rate > 0.0 && rate.is_finite()) => "its rate must be above 0",
            Pace::Closed { outstanding: 0 } => "a closed loop has at least one request outstanding",
            _ if endless => "its trace is repeated for ever: give it a stop, the run a duration, or a limit",
            _ if tenant.start_seconds < 0.0 || tenant.start_seconds.is_nan() => "its start must not be before that of the run",
            _ if tenant.goals.weight <= 0.0 || tenant.goals.weight.is_nan() => "its weight must be above 0",
            _ => continue,
        };
        return Err(TenantsError::Tenant { tenant: tenant.name.clone(), what });
    }
    Ok(())
}

/// What happens at a time. At the same time, what is further up comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A tenant goes.
    Leave(usize),
    /// A tenant comes.
    Come(usize),
    /// A mover begins its batch for all tenants.
    Mover,
    /// A mover goes on with a tenant's batch.
    Moved(usize),
    /// Blocks of a tenant are written back: the first, and how many.
    WriteBack(usize, u64, u64),
    /// A tenant's next request.
    Request(usize),
}

/// One tenant in the run.
struct Guest<S> {
    arrivals: Arrivals<S>,
    next: Option<Request>,
    /// Requests under way, of a closed loop.
    outstanding: u32,
    ended: bool,
    gone: bool,
    count: TenantResult,
    reads: Latency,
    writes: Latency,
    hits: u64,
    last_done: u64,
    /// The stream of reads under way, for the bypass: where it goes on, and its bytes so far.
    stream: (u32, u64, u64),
    /// What a mover still has to bring: runs of blocks.
    moves: Vec<(u64, u64)>,
    moving: usize,
    /// Blocks held and allotted, times nanoseconds, until `since`.
    occupied_ns: f64,
    quota_ns: f64,
    since: u64,
    row: Row,
}

/// What was counted since the last decision.
#[derive(Clone, Copy, Default)]
struct Row {
    requests: u64,
    hits: u64,
    sum_ns: u64,
    ssd_blocks: u64,
    began: u64,
}

struct Run<'a, S> {
    plan: &'a TenantsPlan,
    block: BlockSize,
    profile: Profile,
    control: ControlLoop,
    store: Store,
    machine: Machine,
    guests: Vec<Guest<S>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    keys: Keys,
    /// Whose the segments of keys are, and the numbers of the tenants' volumes.
    owners: Vec<usize>,
    volumes: std::collections::HashMap<(usize, u32), u32>,
    last_volume: ((usize, u32), u32),
    buffer: Vec<u64>,
    traffic: Traffic,
    rows: Vec<DecisionRow>,
    /// Rows under way, by tenant.
    open_rows: Vec<Option<usize>>,
    now: u64,
    requests: u64,
    failed: u64,
    failure: Option<String>,
    control_cpu: f64,
}

/// How an allocator's system is run here.
fn profile(plan: &TenantsPlan, theirs: Profile) -> Profile {
    let caching = &plan.caching;
    let epoch_seconds = caching.epoch_seconds.filter(|_| !theirs.own_epoch).unwrap_or(theirs.epoch_seconds);
    let population = match theirs.population {
        Population::Batched { seconds } => Population::Batched {
            seconds: caching.mover_seconds.or(caching.epoch_seconds.map(|epoch| epoch / 5.0)).unwrap_or(seconds),
        },
        Population::OnDemand => Population::OnDemand,
    };
    let layout = match (theirs.layout, caching.partitioned) {
        (Layout::Combined { .. }, Some(partitioned)) => Layout::Combined { partitioned },
        (layout, _) => layout,
    };
    let mut mode = theirs.mode;
    mode.caching = caching.caching.unwrap_or(mode.caching);
    mode.write = caching.write.unwrap_or(mode.write);
    let block_bytes = caching.block.map_or(theirs.block_bytes, BlockSize::bytes);
    Profile { layout, population, mode, block_bytes, epoch_seconds, ..theirs }
}

impl<'a, S: Source> Run<'a, S> {
    fn new<F: Fn() -> Result<S, S::Error>>(
        plan: &'a TenantsPlan,
        sources: &[F],
    ) -> Result<Self, TenantsError<S::Error>> {
        let allocator = larder_alloc::by_name(&plan.allocator)
            .ok_or_else(|| TenantsError::UnknownAllocator(plan.allocator.clone()))?;
        let profile = profile(plan, allocator.profile());
        if profile.epoch_seconds <= 0.0 || profile.epoch_seconds.is_nan() {
            return Err(TenantsError::EmptyEpoch);
        }
        let block = BlockSize::new(profile.block_bytes.into())?;
        let blocks = |bytes: u64| bytes / u64::from(block.bytes());
        let cache_blocks = blocks(plan.cache_bytes);
        if !(1..=CACHE_BLOCKS_MAX).contains(&cache_blocks) {
            return Err(TenantsError::CacheSize { blocks: cache_blocks });
        }
        // Both are below 2^32.
        let (cache_blocks, count) = (cache_blocks as u32, plan.tenants.len());
        let in_cache = |bytes: u64| u32::try_from(blocks(bytes)).unwrap_or(u32::MAX);
        let config = ControlConfig {
            block_bytes: block.bytes(),
            cache_blocks,
            min_blocks: in_cache(plan.min_bytes),
            write_threshold: plan.write_threshold,
            write_back: true,
            objective: plan.objective,
            budget: plan.budget,
            epoch_seconds: profile.epoch_seconds,
            nominal: nominal(&plan.ssd, &plan.backing, block.bytes().into()),
            sampling: plan.sampling,
            bank_blocks: larder_alloc::control::BANK_BLOCKS,
            seed: plan.seed,
        };
        let tenants = plan.tenants.iter().map(|tenant| ControlTenant {
            name: tenant.name.clone(),
            quota_blocks: tenant.quota_bytes.map(in_cache),
            write_policy: tenant.write_policy,
            goals: tenant.goals,
        });
        let effective = allocator.needs(plan.budget.is_some()).effective;
        let control = ControlLoop::new(config, allocator, profile, tenants.collect());
        let store =
            Store::new(profile.layout, profile.population, profile.mode, cache_blocks, count, plan.seed)
                .with_effective(effective);
        let mut run = Self {
            plan,
            block,
            profile,
            control,
            store,
            machine: Machine::new(plan, block.bytes()),
            guests: Vec::with_capacity(count),
            events: BinaryHeap::new(),
            keys: Keys::new(),
            owners: Vec::new(),
            volumes: std::collections::HashMap::new(),
            last_volume: ((usize::MAX, 0), 0),
            buffer: Vec::new(),
            traffic: Traffic::default(),
            rows: Vec::new(),
            open_rows: vec![None; count],
            now: 0,
            requests: 0,
            failed: 0,
            failure: None,
            control_cpu: 0.0,
        };
        run.open(sources)?;
        Ok(run)
    }

    /// Open all traces, and know when their tenants come.
    fn open<F: Fn() -> Result<S, S::Error>>(&mut self, sources: &[F]) -> Result<(), TenantsError<S::Error>> {
        let name = |at: usize| self.plan.tenants[at].name.clone();
        let failed = |at: usize| move |error| TenantsError::Source { tenant: name(at), error };
        for (at, source) in sources.iter().enumerate() {
            let source = source().map_err(failed(at))?;
            let arrivals = Arrivals::new(&self.plan.tenants[at], source, None, self.plan.limit);
            self.guests.push(Guest::new(arrivals));
        }
        if self.plan.aligned {
            let mut firsts = Vec::new();
            for (at, guest) in self.guests.iter_mut().enumerate() {
                firsts.extend(guest.arrivals.peek_first_ns().map_err(failed(at))?);
            }
            if let Some(&first) = firsts.iter().min() {
                self.guests.iter_mut().for_each(|guest| guest.arrivals.begin_at(first));
            }
        }
        for (at, guest) in self.guests.iter().enumerate() {
            self.events.push(Reverse((guest.arrivals.start_ns(), Event::Come(at))));
            if guest.arrivals.stop_ns() < u64::MAX {
                self.events.push(Reverse((guest.arrivals.stop_ns(), Event::Leave(at))));
            }
        }
        if let Population::Batched { seconds } = self.profile.population {
            self.events.push(Reverse((ns(seconds), Event::Mover)));
        }
        Ok(())
    }

    fn all<F: Fn() -> Result<S, S::Error>>(
        &mut self,
        sources: &[F],
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), TenantsError<S::Error>> {
        let end = self.plan.duration_seconds.map_or(u64::MAX, ns);
        let mut due = self.due();
        while let Some(Reverse((at, event))) = self.events.pop() {
            while due <= at && due <= end && self.is_somebody_left() {
                self.now = due;
                self.decide();
                due = self.due();
            }
            if at >= end {
                self.now = end;
                break;
            }
            self.now = at;
            match event {
                Event::Come(tenant) => {
                    self.come(tenant, sources)?;
                    due = self.due();
                }
                Event::Leave(tenant) => self.leave(tenant),
                Event::Mover => self.start_movers(),
                Event::Moved(tenant) => self.go_on_moving(tenant),
                Event::WriteBack(tenant, place, length) => {
                    self.machine.ssd(at, Op::Read, place, length);
                    self.machine.backing(tenant, at, Op::Write, place, length);
                }
                Event::Request(tenant) => {
                    self.request(tenant, sources)?;
                    if self.requests.is_multiple_of(PROGRESS) {
                        progress(Progress { requests: self.requests });
                    }
                }
            }
        }
        progress(Progress { requests: self.requests });
        Ok(())
    }

    fn due(&self) -> u64 {
        ns(self.control.due_seconds())
    }

    fn seconds(&self) -> f64 {
        self.now as f64 / 1e9
    }

    fn is_somebody_left(&self) -> bool {
        self.guests.iter().any(|guest| !guest.gone)
    }

    /// A tenant comes, and all others that come at the same time with it.
    fn come<F: Fn() -> Result<S, S::Error>>(
        &mut self,
        tenant: usize,
        sources: &[F],
    ) -> Result<(), TenantsError<S::Error>> {
        let mut new = vec![tenant];
        while let Some(&Reverse((at, Event::Come(other)))) = self.events.peek() {
            if at != self.now {
                break;
            }
            self.events.pop();
            new.push(other);
        }
        self.control.arrive(&new, self.seconds())?;
        self.stand();
        for tenant in new {
            self.guests[tenant].since = self.now;
            let streams = match self.plan.tenants[tenant].pace {
                Pace::Open { .. } => 1,
                Pace::Closed { outstanding } => outstanding,
            };
            self.guests[tenant].outstanding = streams;
            match self.plan.tenants[tenant].pace {
                Pace::Open { .. } => self.fetch(tenant, sources)?,
                Pace::Closed { .. } => {
                    for _ in 0..streams {
                        self.events.push(Reverse((self.now, Event::Request(tenant))));
                    }
                }
            }
        }
        Ok(())
    }

    /// A tenant goes.
    fn leave(&mut self, tenant: usize) {
        if std::mem::replace(&mut self.guests[tenant].gone, true) {
            return;
        }
        self.guests[tenant].ended = true;
        self.close_row(tenant);
        self.weigh(tenant);
        self.control.leave(tenant);
        self.traffic.clear();
        self.store.drop_all(tenant, &self.owners, &mut self.traffic);
        self.store.apply(self.control.positions(), &mut self.traffic);
        self.write_back();
    }

    /// An open loop's next request is known: it comes at its time.
    fn fetch<F: Fn() -> Result<S, S::Error>>(
        &mut self,
        tenant: usize,
        sources: &[F],
    ) -> Result<(), TenantsError<S::Error>> {
        match self.next(tenant, sources)? {
            Some((at, request)) => {
                self.guests[tenant].next = Some(request);
                self.events.push(Reverse((at.max(self.now), Event::Request(tenant))));
            }
            None => self.leave(tenant),
        }
        Ok(())
    }

    fn next<F: Fn() -> Result<S, S::Error>>(
        &mut self,
        tenant: usize,
        sources: &[F],
    ) -> Result<Option<(u64, Request)>, TenantsError<S::Error>> {
        let name = || self.plan.tenants[tenant].name.clone();
        let failed = |error| TenantsError::Source { tenant: name(), error };
        loop {
            match self.guests[tenant].arrivals.next().map_err(failed)? {
                Next::Request(at, request) => return Ok(Some((at, request))),
                Next::End => return Ok(None),
                Next::Again => {
                    let source = sources[tenant]().map_err(failed)?;
                    self.guests[tenant].arrivals.reopened(source);
                }
            }
        }
    }

    fn request<F: Fn() -> Result<S, S::Error>>(
        &mut self,
        tenant: usize,
        sources: &[F],
    ) -> Result<(), TenantsError<S::Error>> {
        if self.guests[tenant].gone {
            return Ok(());
        }
        match self.plan.tenants[tenant].pace {
            Pace::Open { .. } => {
                if let Some(request) = self.guests[tenant].next.take() {
                    self.serve(tenant, &request)?;
                }
                self.fetch(tenant, sources)
            }
            Pace::Closed { .. } => {
                let next = if self.guests[tenant].ended { None } else { self.next(tenant, sources)? };
                match next {
                    Some((_, request)) => {
                        let done = self.serve(tenant, &request)?;
                        self.events.push(Reverse((done, Event::Request(tenant))));
                    }
                    None => {
                        self.guests[tenant].ended = true;
                        self.guests[tenant].outstanding -= 1;
                        if self.guests[tenant].outstanding == 0 {
                            self.leave(tenant);
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// A request comes now: when it is done.
    fn serve(&mut self, tenant: usize, request: &Request) -> Result<u64, TenantsError<S::Error>> {
        let (action, op) = match request.kind {
            RequestKind::Read => (Action::Read, BlockOp::Read),
            RequestKind::Write => (Action::Write, BlockOp::Write),
            RequestKind::Discard => (Action::Discard, BlockOp::Discard),
            RequestKind::Flush => return Ok(self.now),
        };
        self.cut(tenant, request)?;
        self.monitor(tenant, op);
        let over = !self.control.may_write(self.seconds());
        let closed = over || (action == Action::Read && self.bypasses(tenant, request));
        self.traffic.clear();
        let access = Access { tenant, action, keys: &self.buffer, closed };
        self.store.access(&access, &self.owners, &mut self.traffic);
        debug_assert!(self.store.holds_no_more_than_there_is());
        let done = match action {
            Action::Read => self.read(tenant),
            Action::Write => self.write(tenant),
            Action::Discard | Action::Flush => return Ok(self.now),
        };
        Ok(done)
    }

    /// The request's blocks go to the buffer, as keys.
    fn cut(&mut self, tenant: usize, request: &Request) -> Result<(), TenantsError<S::Error>> {
        let volume = (tenant, request.volume);
        if self.last_volume.0 != volume {
            let number = self.volumes.len() as u32;
            self.last_volume = (volume, *self.volumes.entry(volume).or_insert(number));
        }
        let blocks = self.block.blocks_of(request);
        self.buffer.clear();
        let room = (blocks.end - blocks.start) as usize;
        self.keys.extend(&mut self.buffer, self.last_volume.1, &blocks, room)?;
        for &key in self.buffer.iter().step_by(1 << 16).chain(self.buffer.last()) {
            let segment = (key >> 32) as usize;
            if segment >= self.owners.len() {
                self.owners.resize(segment + 1, tenant);
            }
        }
        Ok(())
    }

    /// The loop sees the request.
    fn monitor(&mut self, tenant: usize, op: BlockOp) {
        let mut full = false;
        let mut rest = &self.buffer[..];
        while let Some(&first) = rest.first() {
            // Keys follow each other but where a segment ends.
            let in_segment = ((first | 0xffff_ffff) - first).saturating_add(1);
            let count = rest.len().min(usize::try_from(in_segment).unwrap_or(usize::MAX));
            full |= self.control.observe(tenant, op, first..first + count as u64);
            rest = &rest[count..];
        }
        if full {
            let before = cpu();
            self.control.analyze(tenant);
            self.control_cpu += (cpu() - before).as_secs_f64();
        }
    }

    /// A long sequential stream of reads passes by the cache, where the allocator's system has it so.
    fn bypasses(&mut self, tenant: usize, request: &Request) -> bool {
        let Some(limit) = self.profile.bypass_sequential_bytes else { return false };
        let (volume, end, bytes) = &mut self.guests[tenant].stream;
        let goes_on = *volume == request.volume && *end == request.offset;
        *bytes = if goes_on { *bytes + u64::from(request.len) } else { request.len.into() };
        (*volume, *end) = (request.volume, request.offset + u64::from(request.len));
        *bytes >= limit
    }

    fn read(&mut self, tenant: usize) -> u64 {
        let (now, mut done) = (self.now, self.now);
        let (hits, entered) = (self.traffic.count(Outcome::Hit), self.traffic.count(Outcome::Entered));
        let blocks = self.buffer.len() as u64;
        if hits > 0 {
            done = done.max(self.machine.ssd(now, Op::Read, self.buffer[0], hits));
        }
        for (place, length) in runs(&self.buffer, |at| self.traffic.outcomes[at] != Outcome::Hit) {
            done = done.max(self.machine.backing(tenant, now, Op::Read, place, length));
        }
        if entered > 0 {
            self.machine.ssd(now, Op::Write, self.buffer[0], entered);
        }
        let waited = self.write_back_for(tenant).saturating_sub(done);
        let count = &mut self.guests[tenant].count;
        count.block_reads += blocks;
        count.read_hits += hits;
        count.backing_reads += blocks - hits;
        count.ssd_writes.fill += entered;
        count.read_requests += 1;
        self.written_to_ssd(tenant, entered);
        let by = if hits == blocks { ServedBy::ReadHit } else { ServedBy::ReadMiss };
        self.done(tenant, by, done, waited)
    }

    fn write(&mut self, tenant: usize) -> u64 {
        let (now, mut done) = (self.now, self.now);
        let blocks = self.buffer.len() as u64;
        let to_ssd = blocks - self.traffic.count(Outcome::Passed);
        if to_ssd > 0 {
            done = done.max(self.machine.ssd(now, Op::Write, self.buffer[0], to_ssd));
        }
        let through = self.traffic.through;
        let mut to_backing = 0;
        for (place, length) in runs(&self.buffer, |at| through || self.traffic.outcomes[at] == Outcome::Passed) {
            done = done.max(self.machine.backing(tenant, now, Op::Write, place, length));
            to_backing += length;
        }
        let waited = self.write_back_for(tenant).saturating_sub(done);
        let count = &mut self.guests[tenant].count;
        count.block_writes += blocks;
        count.backing_writes += to_backing;
        count.ssd_writes.guest_write += to_ssd;
        self.written_to_ssd(tenant, to_ssd);
        let by = if to_backing == 0 { ServedBy::CachedWrite } else { ServedBy::BackingWrite };
        self.done(tenant, by, done, waited)
    }

    /// Dirty blocks that left are written back, neighbours together.
    fn write_back(&mut self) {
        let mut keys: Vec<u64> = self.traffic.written_back().collect();
        keys.sort_unstable();
        for (place, length) in runs(&keys, |_| true) {
            let owner = self.owners[(place >> 32) as usize];
            self.guests[owner].count.backing_writes += length;
            let begin = self.machine.write_back(owner, self.now, length);
            self.events.push(Reverse((begin, Event::WriteBack(owner, place, length))));
        }
    }

    /// Dirty blocks that left for a request are written back: when it may go on.
    fn write_back_for(&mut self, tenant: usize) -> u64 {
        if self.traffic.written_back().next().is_none() {
            return self.now;
        }
        self.write_back();
        let owners = self.traffic.written_back().map(|key| self.owners[(key >> 32) as usize]);
        let mut owners: Vec<usize> = owners.chain([tenant]).collect();
        owners.dedup();
        let cleaned = owners.into_iter().map(|owner| self.machine.when_cleaned(owner, self.now));
        cleaned.max().unwrap_or(self.now)
    }

    fn written_to_ssd(&mut self, tenant: usize, blocks: u64) {
        if blocks > 0 {
            self.control.ssd_written(tenant, blocks);
            self.guests[tenant].row.ssd_blocks += blocks;
        }
    }

    /// A request is done after all but what it `waited` for blocks that had to be written back.
    fn done(&mut self, tenant: usize, by: ServedBy, done: u64, waited: u64) -> u64 {
        let (alone, done) = (done - self.now, done + waited);
        let took = done - self.now;
        let guest = &mut self.guests[tenant];
        let hit = matches!(by, ServedBy::ReadHit | ServedBy::CachedWrite);
        match by {
            ServedBy::ReadHit | ServedBy::ReadMiss => guest.reads.add(took),
            ServedBy::CachedWrite | ServedBy::BackingWrite => guest.writes.add(took),
        }
        guest.hits += u64::from(hit);
        guest.row.requests += 1;
        guest.row.hits += u64::from(hit);
        guest.row.sum_ns += took;
        guest.last_done = guest.last_done.max(done);
        self.control.served(tenant, by, alone as f64 / 1e9);
        let left = self.traffic.written_back().count() as u64;
        if left > 0 {
            self.control.written_back(tenant, left, waited as f64 / 1e9);
        }
        self.requests += 1;
        done
    }

    /// Decisions are due: ask for them, and carry them out.
    fn decide(&mut self) {
        // What is due may be due within the nanosecond that has begun.
        let now = self.seconds().max(self.control.due_seconds());
        if !self.control.must_decide(now) {
            self.control.look(now);
            return;
        }
        let count = self.guests.len();
        let usages: Vec<CacheUse> = (0..count).map(|tenant| self.store.usage(tenant)).collect();
        let before = cpu();
        let decided = self.control.decide(now, &usages).map(|_| ());
        self.control_cpu += (cpu() - before).as_secs_f64();
        if let Err(error) = decided {
            self.failed += 1;
            self.failure = Some(error.to_string());
        }
        self.stand();
    }

    /// What was decided holds from now on.
    fn stand(&mut self) {
        for tenant in 0..self.guests.len() {
            self.close_row(tenant);
            self.weigh(tenant);
        }
        self.traffic.clear();
        self.store.apply(self.control.positions(), &mut self.traffic);
        self.write_back();
        for tenant in 0..self.guests.len() {
            self.begin_row(tenant);
        }
    }

    fn begin_row(&mut self, tenant: usize) {
        let position = &self.control.positions()[tenant];
        if !position.present {
            return;
        }
        let decision = &position.decision;
        self.open_rows[tenant] = Some(self.rows.len());
        self.guests[tenant].row = Row { began: self.now, ..Row::default() };
        self.rows.push(DecisionRow {
            seconds: self.now as f64 / 1e9,
            tenant,
            quota_blocks: decision.quota_blocks,
            occupied_blocks: 0,
            caching: decision.mode.caching.to_string(),
            write_policy: decision.mode.write.to_string(),
            predicted_latency: decision.predicted.map(|predicted| predicted.latency),
            predicted_request_hit_ratio: decision.predicted.map(|predicted| predicted.request_hit_ratio),
            predicted_ssd_writes_per_second: decision
                .predicted
                .map(|predicted| predicted.ssd_writes_per_second),
            achieved: Achieved::default(),
            reason: decision.reason.clone(),
        });
    }

    fn close_row(&mut self, tenant: usize) {
        let Some(row) = self.open_rows[tenant].take() else { return };
        let Row { requests, hits, sum_ns, ssd_blocks, began } = self.guests[tenant].row;
        let seconds = (self.now - began) as f64 / 1e9;
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let some = requests > 0;
        self.rows[row].occupied_blocks = self.store.resident(tenant);
        self.rows[row].achieved = Achieved {
            latency: some.then(|| sum_ns as f64 / 1e9 / requests as f64),
            request_hit_ratio: some.then(|| hits as f64 / requests as f64),
            iops: per_second(requests),
            ssd_writes_per_second: per_second(ssd_blocks),
        };
    }

    /// What a tenant held and was allotted until now.
    fn weigh(&mut self, tenant: usize) {
        let decision = &self.control.positions()[tenant].decision;
        let (held, quota) = (self.store.resident(tenant), decision.quota_blocks);
        let guest = &mut self.guests[tenant];
        let time = (self.now - guest.since.min(self.now)) as f64;
        guest.occupied_ns += f64::from(held) * time;
        guest.quota_ns += f64::from(quota) * time;
        guest.since = self.now;
    }

    /// A mover epoch is over: what each tenant's cache is to hold is brought in, a few runs of blocks at a time.
    fn start_movers(&mut self) {
        self.control.populate();
        for tenant in 0..self.guests.len() {
            let most = self.control.blocks_to_write(self.seconds());
            if !self.control.positions()[tenant].present || most == 0 {
                continue;
            }
            self.traffic.clear();
            self.store.move_in(tenant, most, &mut self.traffic);
            self.write_back();
            let brought = self.traffic.brought.len() as u64;
            let mut moves: Vec<_> = runs(&self.traffic.brought, |_| true).collect();
            moves.reverse();
            let guest = &mut self.guests[tenant];
            guest.count.ssd_writes.promotion += brought;
            guest.count.backing_reads += brought;
            guest.moves.splice(0..0, moves);
            self.written_to_ssd(tenant, brought);
            while self.guests[tenant].moving < MOVES && !self.guests[tenant].moves.is_empty() {
                self.guests[tenant].moving += 1;
                self.events.push(Reverse((self.now, Event::Moved(tenant))));
            }
        }
        if let (Population::Batched { seconds }, true) = (self.profile.population, self.is_somebody_left()) {
            self.events.push(Reverse((self.now + ns(seconds).max(1), Event::Mover)));
        }
    }

    fn go_on_moving(&mut self, tenant: usize) {
        match self.guests[tenant].moves.pop() {
            Some((place, length)) => {
                let read = self.machine.backing(tenant, self.now, Op::Read, place, length);
                self.machine.ssd(self.now, Op::Write, place, length);
                self.events.push(Reverse((read, Event::Moved(tenant))));
            }
            None => self.guests[tenant].moving -= 1,
        }
    }

    fn finish(mut self, cpu_seconds: f64) -> TenantsResult {
        for tenant in 0..self.guests.len() {
            self.close_row(tenant);
            if !self.guests[tenant].gone {
                self.weigh(tenant);
            }
        }
        let end = self.guests.iter().map(|guest| guest.last_done).max().unwrap_or(0).max(self.now);
        let names: Vec<String> = self.plan.tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let (mut reads, mut writes, mut total) = (Latency::new(), Latency::new(), TenantResult::default());
        let mut hits = 0;
        for guest in &self.guests {
            reads.merge(&guest.reads);
            writes.merge(&guest.writes);
            hits += guest.hits;
            add(&mut total, &guest.count);
            total.mean_occupied_blocks += guest.occupied_ns / end.max(1) as f64;
            total.mean_quota_blocks += guest.quota_ns / end.max(1) as f64;
        }
        let tell = |guest: &Guest<S>, name: &String| {
            let start = guest.arrivals.start_ns();
            let there = guest.last_done.saturating_sub(start);
            let mut result = guest.count.clone();
            result.mean_occupied_blocks = guest.occupied_ns / guest.since.saturating_sub(start).max(1) as f64;
            result.mean_quota_blocks = guest.quota_ns / guest.since.saturating_sub(start).max(1) as f64;
            conclude(result, name, &guest.reads, &guest.writes, guest.hits, there)
        };
        let tenants: Vec<_> = self.guests.iter().zip(&names).map(|(guest, name)| tell(guest, name)).collect();
        let devices = self.machine.used(end, &names);
        TenantsResult {
            allocator: self.plan.allocator.clone(),
            cache_bytes: self.plan.cache_bytes,
            block_bytes: self.block.bytes(),
            epoch_seconds: self.profile.epoch_seconds,
            seconds: end as f64 / 1e9,
            total: conclude(total, "total", &reads, &writes, hits, end),
            tenants,
            decisions: self.rows,
            devices,
            failed_decisions: self.failed,
            failure: self.failure,
            cpu_seconds,
            control_cpu_seconds: self.control_cpu,
        }
    }
}

impl<S> Guest<S> {
    fn new(arrivals: Arrivals<S>) -> Self {
        Self {
            arrivals,
            next: None,
            outstanding: 0,
            ended: false,
            gone: false,
            count: TenantResult::default(),
            reads: Latency::new(),
            writes: Latency::new(),
            hits: 0,
            last_done: 0,
            stream: (0, u64::MAX, 0),
            moves: Vec::new(),
            moving: 0,
            occupied_ns: 0.0,
            quota_ns: 0.0,
            since: 0,
            row: Row::default(),
        }
    }
}

/// Runs of keys that follow each other, of those for which `wanted` says so: first key and length.
fn runs(keys: &[u64], wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < keys.len() && !wanted(at) {
            at += 1;
        }
        let begin = at;
        while at < keys.len() && wanted(at) && keys[at] == keys[begin] + (at - begin) as u64 {
            at += 1;
        }
        (begin < at).then(|| (keys[begin], (at - begin) as u64))
    })
}

/// What was counted as counts.
fn add(sum: &mut TenantResult, one: &TenantResult) {
    sum.read_requests += one.read_requests;
    sum.block_reads += one.block_reads;
    sum.read_hits += one.read_hits;
    sum.block_writes += one.block_writes;
    sum.ssd_writes.fill += one.ssd_writes.fill;
    sum.ssd_writes.guest_write += one.ssd_writes.guest_write;
    sum.ssd_writes.promotion += one.ssd_writes.promotion;
    sum.backing_reads += one.backing_reads;
    sum.backing_writes += one.backing_writes;
}

/// What follows from the counts.
fn conclude(
    counts: TenantResult,
    name: &str,
    reads: &Latency,
    writes: &Latency,
    hits: u64,
    took_ns: u64,
) -> TenantResult {
    let mut all = reads.clone();
    all.merge(writes);
    let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let seconds = took_ns as f64 / 1e9;
    let SsdWritesByCause { fill, guest_write, promotion, .. } = counts.ssd_writes;
    TenantResult {
        name: name.to_owned(),
        requests: all.count(),
        seconds,
        iops: if seconds > 0.0 { all.count() as f64 / seconds } else { 0.0 },
        mean_latency: all.mean(),
        mean_read_latency: reads.mean(),
        mean_write_latency: writes.mean(),
        p50_latency: all.quantile(0.5),
        p99_latency: all.quantile(0.99),
        read_hit_ratio: ratio(counts.read_hits, counts.block_reads),
        request_hit_ratio: ratio(hits, all.count()),
        ssd_writes: SsdWritesByCause { total: fill + guest_write + promotion, ..counts.ssd_writes },
        ..counts
    }
}
