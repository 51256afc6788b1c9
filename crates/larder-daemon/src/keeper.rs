//! The thread that looks after the cache device: when a reactor has given it up, everybody lets go of it, and what it alone has is written down; when it is
//! there again, everybody goes on with it. It also tells of dirty blocks that are damaged on it (`Damage`).
//!
//! It looks for the device every few seconds, and at once when it is asked to. A device that fails again soon is given more time before each further try, so
//! that one which works now and then does not keep guests waiting.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use larder_engine::format::Recovered;
use larder_engine::{Resumed, SessionMark};
use larder_io::{
    AttachError, CacheDevice, CacheError, CachePlan, CacheSpec, Handle, HandleError, OpenError,
    ReactorSnapshot, SharedPool,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::collector::{Collector, Silent, answered};
use crate::config::CacheConfig;
use crate::damage::Damage;
use crate::hosted::VolumePlace;
use crate::last_cache;
use crate::loss::{Loss, LostRange, VolumeLoss};

/// Between two looks at the reactors.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Between two looks for a device that is gone.
const TRY_EVERY: Duration = Duration::from_secs(3);
/// The longest rest of a device that has failed again and again.
const REST_MAX: Duration = Duration::from_secs(600);
/// A device that works for so long is as good as new.
const PROVEN: Duration = Duration::from_secs(600);

/// The cache device is in use again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attached {
    /// Dirty blocks that are there again.
    pub dirty_blocks: u64,
    /// Blocks that were written, and not flushed, before the device failed, and are not there.
    pub lost_blocks: u64,
}

/// The cache device cannot be used again.
#[derive(Debug, Error)]
pub enum KeepError {
    /// Nothing is wrong with it.
    #[error("the cache device is in use: there is nothing to attach")]
    InUse,
    /// Operations on it hang.
    #[error("operations on the old cache device have not ended yet")]
    NotClosed,
    /// It is not there, not the one, or damaged.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// It holds another number of blocks.
    #[error("the cache holds {0} blocks, and had {1}")]
    Blocks(u32, u32),
    /// A reactor cannot go on with it.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A reactor says nothing.
    #[error(transparent)]
    Silent(#[from] Silent),
    /// The keeper is gone: the daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

impl KeepError {
    /// What the operator can do.
    pub fn help(&self) -> String {
        match self {
            Self::Cache(error) => error.remedy(),
            Self::InUse => "`larder status` tells how it is".into(),
            Self::NotClosed => "see dmesg: the device does not answer; try again when it does".into(),
            Self::Blocks(..) => "bring back the device as it was".into(),
            Self::Attach(_) | Self::Silent(_) => "try again; if it stays so, look at the daemon's log".into(),
            Self::Stopping => "start it again: `larder serve` goes on with the cache by itself".into(),
        }
    }
}

/// What the keeper can be told.
enum Order {
    Attach(Sender<Result<Attached, KeepError>>),
    Stop,
}

/// Asks the keeper, from any thread.
#[derive(Clone, Debug)]
pub struct KeeperHandle(Sender<Order>);

impl KeeperHandle {
    /// Use the cache device again, now.
    ///
    /// # Errors
    /// Where it is in use, or not there, or cannot be used.
    pub fn attach(&self) -> Result<Attached, KeepError> {
        let (answer, receiver) = mpsc::channel();
        self.0.send(Order::Attach(answer)).map_err(|_| KeepError::Stopping)?;
        receiver.recv().unwrap_or(Err(KeepError::Stopping))
    }
}

/// How it stands with the cache device.
enum State {
    /// It is in use.
    Fine,
    /// It was given up; operations on it have not all ended.
    Leaving,
    /// Nobody has it open. It is looked for at this time.
    Gone(Instant),
}

/// The keeper of a cache device that is in use.
pub struct Keeper<C> {
    collector: Arc<Collector<C>>,
    spec: CacheSpec,
    /// What is cached is kept over stops.
    kept: bool,
    /// Says which cache was used last.
    last_cache: Option<last_cache::Keep>,
    /// Holds the lock.
    cache: Option<CacheDevice>,
    blocks: u32,
    state: State,
    mark: Option<SessionMark>,
    attached: Option<Instant>,
    /// How long a device that was given up rests before the first try.
    rest: Duration,
    /// Why the last try came to nothing.
    told: String,
    damage: Damage,
}

/// The keeper's thread.
pub struct KeeperThread {
    thread: JoinHandle<()>,
    orders: Sender<Order>,
}

impl KeeperThread {
    /// Have it end. It lets go of its handle on the device.
    pub fn stop(self) {
        // It has ended already if it panicked.
        let _ = self.orders.send(Order::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the keeper of the cache device panicked");
        }
    }
}

impl<C: Send + 'static> Keeper<C> {
    /// A keeper for a daemon that is ready now.
    pub fn new(
        collector: Arc<Collector<C>>,
        cache: CacheDevice,
        last_cache: Option<last_cache::Keep>,
    ) -> Self {
        let CacheConfig { path, size_bytes: size, block_bytes, keep: kept, .. } =
            collector.hosted.get().config.cache.clone();
        Self {
            spec: CacheSpec { path, size, block_bytes },
            kept,
            last_cache,
            blocks: cache.blocks(),
            cache: Some(cache),
            collector,
            state: State::Fine,
            mark: None,
            attached: None,
            rest: TRY_EVERY,
            told: String::new(),
            damage: Damage::default(),
        }
    }

    /// Keep watch from a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(mut self) -> io::Result<(KeeperHandle, KeeperThread)> {
        let (sender, orders) = mpsc::channel();
        let thread = thread::Builder::new().name("keeper".into()).spawn(move || self.run(&orders))?;
        Ok((KeeperHandle(sender.clone()), KeeperThread { thread, orders: sender }))
    }

    fn run(&mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(LOOK_EVERY) {
                Ok(Order::Attach(answer)) => {
                    // Nobody may be there to hear it.
                    let _ = answer.send(self.attach());
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look(&mut self) {
        // A reactor that does not answer now will do so later, or is told elsewhere.
        let Ok(snapshots) = self.collector.snapshots() else { return };
        self.damage.look(&self.collector, &snapshots);
        match self.state {
            State::Fine if snapshots.iter().any(|snapshot| snapshot.cache_failed) => self.leave(),
            State::Leaving if snapshots.iter().all(|snapshot| snapshot.cache_closed) => self.left(&snapshots),
            State::Gone(next) if Instant::now() >= next => self.try_again(),
            State::Fine | State::Leaving | State::Gone(_) => {}
        }
    }

    /// A reactor has given the device up: so do all, and what it alone has is written down.
    fn leave(&mut self) {
        tracing::error!(cache = %self.spec.path.display(), "the cache device has failed: it is used no more, and volumes are served by their backings");
        for (index, reactor) in self.collector.reactors.iter().enumerate() {
            if let Err(error) = reactor.detach_cache() {
                return tracing::warn!(index, %error, "a reactor does not let go of the cache device yet");
            }
        }
        // Asked after that, so that each volume which fails is among them.
        let Ok(snapshots) = self.collector.snapshots() else { return };
        self.state = State::Leaving;
        self.mark = snapshots.iter().find_map(|snapshot| snapshot.session);
        self.rest = match self.attached {
            Some(attached) if attached.elapsed() < PROVEN => (self.rest * 2).min(REST_MAX),
            _ => TRY_EVERY,
        };
        self.write_down(&snapshots);
    }

    /// Say in a file what is on the device alone.
    fn write_down(&self, snapshots: &[ReactorSnapshot]) {
        let Some(mark) = self.mark else { return };
        let mut loss = Loss::new(&self.spec.path, mark);
        let hosted = self.collector.hosted.get();
        for (config, place) in hosted.volumes() {
            let volumes = snapshots.get(place.reactor).map_or(&[][..], |snapshot| &snapshot.volumes);
            if volumes.iter().any(|volume| volume.volume == place.volume && volume.failed) {
                let ranges = lost_ranges(&self.collector.reactors[place.reactor], place).unwrap_or_default();
                let (volume, backing) = (config.name.clone(), config.backing.to_string());
                loss.volumes.push(VolumeLoss { volume, backing, ranges });
            }
        }
        let path = hosted.config.loss_file();
        loss.tell(&path);
        // It says more.
        if loss.keep(&path)
            && let Some(Err(error)) = self.last_cache.as_ref().map(last_cache::Keep::given_up)
        {
            tracing::warn!(%error, "the next start will not do without this cache");
        }
        self.collector.loss.set(Some(loss));
    }

    /// Nobody has the device open any more.
    fn left(&mut self, snapshots: &[ReactorSnapshot]) {
        self.mark = snapshots.iter().find_map(|snapshot| snapshot.session);
        self.cache = None;
        self.state = State::Gone(Instant::now() + self.rest);
        let (path, seconds) = (self.spec.path.display(), self.rest.as_secs());
        tracing::info!(cache = %path, "closed; it is looked for from {seconds} s on");
    }

    fn try_again(&mut self) {
        if let Err(error) = self.attach() {
            let error = error.to_string();
            if error != self.told {
                tracing::info!("the cache device cannot be used yet: {error}");
                self.told = error;
            }
            if let State::Gone(next) = &mut self.state {
                *next = Instant::now() + TRY_EVERY;
            }
        }
    }

    /// Use the device again, if it is there.
    fn attach(&mut self) -> Result<Attached, KeepError> {
        match self.state {
            State::Fine => return Err(KeepError::InUse),
            State::Leaving => return Err(KeepError::NotClosed),
            State::Gone(_) => {}
        }
        let resumed = if self.kept { self.attach_kept()? } else { self.attach_cold()? };
        (self.state, self.attached) = (State::Fine, Some(Instant::now()));
        self.told.clear();
        self.collector.loss.set(None);
        if let Some(Err(error)) = self.last_cache.as_ref().map(last_cache::Keep::back) {
            error.tell();
        }
        Loss::remove(&self.collector.hosted.get().config.loss_file());
        let attached = Attached { dirty_blocks: resumed.back.into(), lost_blocks: resumed.lost.len() as u64 };
        tracing::info!(cache = %self.spec.path.display(), dirty = attached.dirty_blocks, "the cache device is in use again");
        if attached.lost_blocks > 0 {
            tracing::error!(
                "{} blocks that were written, and not flushed, before the device failed are not on it",
                attached.lost_blocks
            );
        }
        Ok(attached)
    }

    /// One that is kept goes to the one reactor that has its records.
    fn attach_kept(&mut self) -> Result<Resumed, KeepError> {
        let Some(mark) = self.mark else { return Err(KeepError::NotClosed) };
        let plan = CachePlan::check_again(self.spec.clone(), mark)?;
        check_blocks(&plan, self.blocks)?;
        let mut cache = plan.format()?;
        let Some(recovered) = cache.take_recovered() else { return Err(KeepError::NotClosed) };
        let pool = SharedPool::of_recovered(&recovered);
        self.hand_over(cache, Some(recovered), &pool)
    }

    /// One that is not is empty again, for all.
    fn attach_cold(&mut self) -> Result<Resumed, KeepError> {
        if !self.spec.path.exists() {
            // It would be created.
            return Err(CacheError::from(OpenError::Missing { path: self.spec.path.clone() }).into());
        }
        let plan = CachePlan::check(self.spec.clone())?;
        check_blocks(&plan, self.blocks)?;
        let cache = plan.format()?;
        let pool = SharedPool::new(cache.blocks());
        self.hand_over(cache, None, &pool)
    }

    /// Give a cache to all reactors. Where one does not take it none keeps it: they must not have different pools.
    fn hand_over(
        &mut self,
        cache: CacheDevice,
        mut kept: Option<Box<Recovered>>,
        pool: &SharedPool,
    ) -> Result<Resumed, KeepError> {
        let mut resumed = Resumed::default();
        for index in 0..self.collector.reactors.len() {
            match self.hand_to(index, &cache, kept.take(), pool.clone()) {
                Ok(one) => {
                    resumed.back += one.back;
                    resumed.lost.extend(one.lost);
                }
                Err(error) => {
                    self.take_back();
                    return Err(error);
                }
            }
        }
        self.cache = Some(cache);
        Ok(resumed)
    }

    fn hand_to(
        &self,
        index: usize,
        cache: &CacheDevice,
        kept: Option<Box<Recovered>>,
        pool: SharedPool,
    ) -> Result<Resumed, KeepError> {
        let answer = self.collector.reactors[index].attach_cache(cache, kept, pool)?;
        Ok(answered(index, &answer)??)
    }

    fn take_back(&mut self) {
        self.state = State::Leaving;
        for (index, reactor) in self.collector.reactors.iter().enumerate() {
            if let Err(error) = reactor.detach_cache() {
                tracing::warn!(index, %error, "a reactor does not let go of the cache device");
            }
        }
    }
}

fn check_blocks(plan: &CachePlan, blocks: u32) -> Result<(), KeepError> {
    if plan.blocks() == blocks { Ok(()) } else { Err(KeepError::Blocks(plan.blocks(), blocks)) }
}

/// What of a volume is on the cache device alone.
///
/// # Errors
/// Where its reactor does not answer.
pub fn lost_ranges<C>(reactor: &Handle<C>, place: VolumePlace) -> Result<Vec<LostRange>, HandleError> {
    let answer = reactor.lost_ranges(place.volume)?;
    let ranges = answered(place.reactor, &answer).map_err(|_| HandleError::Ended)?;
    Ok(ranges
        .into_iter()
        .map(|range| LostRange { offset: range.start, len: range.end - range.start })
        .collect())
}
