//! A run: events in order of time, each request through cache, devices and the loop of an epoch.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use larder_alloc::control::{ControlConfig, ControlLoop, ControlTenant};
use larder_alloc::{Latencies, Population, Profile};
use larder_trace::Request;
use rustix::time::{ClockId, clock_gettime};

use super::arrivals::{Arrivals, Next, ns};
use super::machine::{Machine, nominal};
use super::result::{DayWrites, DecisionRow, TenantsResult};
use super::store::Store;
use super::traffic::Traffic;
use super::{Pace, TenantsPlan};
use crate::block::Keys;
use crate::plan::CACHE_BLOCKS_MAX;
use crate::{BlockSize, Progress, Source};
use followed::Followed;
use guest::Guest;
use idle::Idle;

mod check;
mod decide;
mod finish;
mod followed;
mod guest;
mod idle;
mod movers;
mod serve;
mod setup;

pub use check::TenantsError;
pub(super) use check::check;

/// Requests between two calls of `progress`.
const PROGRESS: u64 = 4096;

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

/// Processor time of this thread so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
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
    /// Runs of a tenant's dirty blocks that waited for others may begin.
    Cleaned(usize),
    /// A tenant's next request.
    Request(usize),
}

/// The run.
struct Run<'a, S> {
    plan: &'a TenantsPlan,
    block: BlockSize,
    profile: Profile,
    control: ControlLoop,
    followed: Followed<'a>,
    store: Store,
    machine: Machine,
    guests: Vec<Guest<S>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    keys: Keys,
    /// Whose the segments of keys are, and the numbers of the tenants' volumes.
    owners: Vec<usize>,
    volumes: HashMap<(usize, u32), u32>,
    last_volume: ((usize, u32), u32),
    buffer: Vec<u64>,
    traffic: Traffic,
    rows: Vec<DecisionRow>,
    /// Rows under way, by tenant.
    open_rows: Vec<Option<usize>>,
    now: u64,
    /// When the last dirty block was written back of tenants who were all gone.
    written_back: u64,
    idle: Idle,
    by_day: Vec<DayWrites>,
    requests: u64,
    failed: u64,
    failure: Option<String>,
    control_cpu: f64,
}

impl<'a, S: Source> Run<'a, S> {
    fn new<F: Fn() -> Result<S, S::Error>>(
        plan: &'a TenantsPlan,
        sources: &[F],
    ) -> Result<Self, TenantsError<S::Error>> {
        let named = if plan.corrected { larder_alloc::corrected } else { larder_alloc::by_name };
        let allocator =
            named(&plan.allocator).ok_or_else(|| TenantsError::UnknownAllocator(plan.allocator.clone()))?;
        let profile = setup::profile(plan, allocator.profile());
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
            write_back: plan.write_back,
            objective: plan.objective,
            budget: plan.budget,
            epoch_seconds: profile.epoch_seconds,
            nominal: match &plan.recorded {
                Some(_) => Latencies::default(),
                None => nominal(&plan.ssd, &plan.backing, block.bytes().into()),
            },
            sampling: plan.sampling,
            bank_blocks: larder_alloc::control::BANK_BLOCKS,
            seed: plan.recorded.as_ref().and_then(|recorded| recorded.seed).unwrap_or(plan.seed),
        };
        let tenants = plan.tenants.iter().map(|tenant| ControlTenant {
            name: tenant.name.clone(),
            quota_blocks: tenant.quota_bytes.map(in_cache),
            write_policy: tenant.write_policy,
            goals: tenant.goals,
        });
        let effective = allocator.needs(plan.budget.is_some()).effective;
        let mut control = ControlLoop::new(config, allocator, profile, tenants.collect());
        if plan.spends_evenly {
            control.spend_evenly();
        }
        if let Some(seconds) = plan.ends_seconds {
            control.ends_at(seconds);
        }
        let most = plan.tenants.iter().map(|tenant| tenant.goals.max_blocks.unwrap_or(u32::MAX)).collect();
        let least = plan.tenants.iter().map(|tenant| tenant.goals.keeps()).collect();
        let store =
            Store::new(profile.layout, profile.population, profile.mode, cache_blocks, count, plan.seed)
                .with_effective(effective)
                .with_bounds(least, most)
                .like_daemon(plan.recorded.is_some());
        let mut run = Self {
            plan,
            block,
            profile,
            control,
            followed: Followed::new(plan.recorded.as_ref()),
            store,
            machine: Machine::new(plan, block.bytes()),
            guests: Vec::with_capacity(count),
            events: BinaryHeap::new(),
            keys: Keys::new(),
            owners: Vec::new(),
            volumes: HashMap::new(),
            last_volume: ((usize::MAX, 0), 0),
            buffer: Vec::new(),
            traffic: Traffic::default(),
            rows: Vec::new(),
            open_rows: vec![None; count],
            now: 0,
            written_back: 0,
            idle: Idle::default(),
            by_day: Vec::new(),
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
        if let Some(recorded) = &self.plan.recorded {
            self.guests.iter_mut().for_each(|guest| guest.arrivals.clock_begins(ns(recorded.begins_seconds)));
        } else if self.plan.aligned {
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
                if !self.passes_over(due, at.min(end)) {
                    self.now = due;
                    self.decide();
                }
                due = self.due();
            }
            // What was to come of those who are gone makes no run longer.
            let is_for_nobody = !matches!(event, Event::Come(_) | Event::Request(_))
                && self.guests.iter().all(|guest| guest.gone);
            if is_for_nobody {
                // Dirty blocks are written back all the same.
                if at < end && self.write_back_at(event, at) {
                    self.written_back = at;
                }
                continue;
            }
            if at >= end {
                self.now = end;
                break;
            }
            // What a decision writes back may begin before an event that was known earlier.
            self.now = self.now.max(at);
            self.idle.event(event, at);
            match event {
                Event::Come(tenant) => {
                    self.come(tenant, sources)?;
                    due = self.due();
                }
                Event::Leave(tenant) => self.leave(tenant),
                Event::Mover => self.start_movers(),
                Event::Moved(tenant) => self.go_on_moving(tenant),
                Event::WriteBack(..) | Event::Cleaned(_) => _ = self.write_back_at(event, at),
                Event::Request(tenant) => {
                    self.request(tenant, sources)?;
                    if self.requests.is_multiple_of(PROGRESS) {
                        progress(Progress { requests: self.requests });
                    }
                }
            }
        }
        while self.followed.is_followed() && due <= end.min(u64::MAX - 1) {
            self.now = due;
            self.decide();
            due = self.due();
        }
        progress(Progress { requests: self.requests });
        Ok(())
    }

    /// True if the event is one of writing back, which is done.
    fn write_back_at(&mut self, event: Event, at: u64) -> bool {
        let (tenant, go_on) = match event {
            Event::WriteBack(tenant, place, length) => {
                (tenant, self.machine.clean(tenant, at, (place, length)))
            }
            Event::Cleaned(tenant) => (tenant, self.machine.go_on_cleaning(tenant, at)),
            _ => return false,
        };
        if let Some(then) = go_on {
            self.events.push(Reverse((then, Event::Cleaned(tenant))));
        }
        true
    }

    fn due(&self) -> u64 {
        match self.followed.decision_seconds() {
            Some(seconds) => ns(seconds.min(self.control.look_seconds())),
            None if self.followed.is_followed() => u64::MAX,
            None => ns(self.control.due_seconds()),
        }
    }

    fn seconds(&self) -> f64 {
        self.now as f64 / 1e9
    }

    fn is_somebody_left(&self) -> bool {
        let stays = self.plan.recorded.is_some();
        self.guests.iter().any(|guest| !(guest.gone || stays && guest.ended))
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
        self.followed.take_stand(&mut self.control);
        self.stand();
        for tenant in new {
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
        self.close_rows();
        self.control.leave(tenant);
        self.traffic.clear();
        self.store.drop_all(tenant, &self.owners, &mut self.traffic);
        self.store.apply(self.control.positions(), &self.plan.tenants, &mut self.traffic);
        self.write_back();
        self.begin_rows();
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
            // Its guest may be idle, and the daemon knows of no end.
            None if self.plan.recorded.is_some() => self.guests[tenant].ended = true,
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
}
