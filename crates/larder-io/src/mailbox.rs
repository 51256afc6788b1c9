//! How other threads reach a reactor: a bounded queue of commands, and a wake-up only where the reactor sleeps.

use crate::driver::Another;
use crate::frontend::VolumeInfo;
use crate::stats::{ReactorSnapshot, Spending, TenantOffers, TenantUse};
use crate::{Backing, CacheDevice, SharedPool, sys};
use larder_engine::format::{Recovered, Volume};
use larder_engine::{
    CachingSpec, DirtyLimits, GrowError, JoinError, OpenError, Resumed, Sharing, TenantId, Terms, VolumeId,
    Watermarks, WriteLimit, WritePolicy,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// Commands that wait at most.
const COMMANDS_MAX: usize = 4096;

/// What a reactor can be told. `C` is its frontend's own command.
#[derive(Debug)]
pub(crate) enum ReactorCommand<C> {
    Partitions(PartitionCommand),
    Drain {
        volume: VolumeId,
        how: DrainCommand,
    },
    Snapshot(mpsc::Sender<ReactorSnapshot>),
    LostRanges {
        volume: VolumeId,
        answer: mpsc::Sender<Vec<Range<u64>>>,
    },
    GrowVolume {
        volume: VolumeId,
        answer: mpsc::Sender<Result<VolumeInfo, VolumeError>>,
    },
    AddTenant {
        new: Box<NewTenant>,
        answer: mpsc::Sender<Result<TenantId, VolumeError>>,
    },
    JoinVolume {
        new: Box<NewVolume>,
        answer: mpsc::Sender<Result<(VolumeId, VolumeInfo), VolumeError>>,
    },
    LeaveVolume {
        volume: VolumeId,
        answer: mpsc::Sender<Result<(), VolumeError>>,
    },
    ForgetVolume {
        volume: VolumeId,
        answer: mpsc::Sender<Result<(), VolumeError>>,
    },
    Quiesce {
        volume: VolumeId,
        within: Duration,
        hold: Duration,
        answer: mpsc::Sender<Result<(), VolumeError>>,
    },
    Thaw {
        volume: VolumeId,
        answer: mpsc::Sender<bool>,
    },
    DetachCache,
    AttachCache {
        another: Box<Another>,
        answer: mpsc::Sender<Result<Resumed, AttachError>>,
    },
    Frontend(C),
    Stop {
        within: Duration,
    },
}

/// How partitions are run, and used.
#[derive(Debug)]
pub(crate) enum PartitionCommand {
    Quota { tenant: TenantId, blocks: u32 },
    Bounds { tenant: TenantId, least: u32, most: u32 },
    WritePolicy { tenant: TenantId, policy: WritePolicy },
    Caching { tenant: TenantId, caching: CachingSpec },
    Lending(bool),
    Watermarks(Option<Watermarks>),
    Sharing(Sharing),
    StreamBypass(Option<u64>),
    WatchHits(bool),
    Mover { tenant: TenantId, moves: bool },
    MoveIn,
    Use(mpsc::Sender<Vec<TenantUse>>),
    WriteLimits(Vec<(TenantId, Option<WriteLimit>)>),
    Spent(mpsc::Sender<Spending>),
    CommonLimit(Option<u64>),
    Doors(Option<u32>),
    OpenDoors(Vec<(TenantId, Box<Terms>)>),
    Offers(mpsc::Sender<Vec<Option<Box<TenantOffers>>>>),
}

/// A tenant that comes while the reactor works.
#[derive(Clone, Copy, Debug)]
pub struct NewTenant {
    /// Blocks that it may hold.
    pub quota_blocks: u32,
    /// How its writes are treated.
    pub policy: WritePolicy,
    /// How its blocks are replaced and admitted.
    pub caching: CachingSpec,
    /// How much may be dirty.
    pub dirty: DirtyLimits,
}

/// A volume that comes while the reactor works.
#[derive(Debug)]
pub struct NewVolume {
    /// Whose it is; one of this reactor.
    pub tenant: TenantId,
    /// Opened, and checked.
    pub backing: Backing,
    /// Whether its writes reach the backing in the order of its flushes.
    pub ordered: bool,
    /// What a cache that is kept is to know it by; its number and size are chosen here.
    pub known: Volume,
}

/// What is to become of a volume's dirty blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainCommand {
    /// All of them are written back once.
    Once,
    /// They are written back, and there are none from then on.
    On,
    /// As before.
    Off,
}

/// A command did not reach the reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// The reactor has ended.
    #[error("the reactor has ended")]
    Ended,
    /// Too many commands wait.
    #[error("the reactor is behind: {COMMANDS_MAX} commands wait")]
    Full,
}

/// A reactor cannot go on with a cache. It goes on without.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// It still has another one.
    #[error("the cache device is in use, or operations on it have not ended yet")]
    InUse,
    /// It is about to end.
    #[error("the daemon is stopping")]
    Stopping,
    /// Guests' requests did not end in time.
    #[error("requests on the backings did not end in time: a backing is slow, or hangs")]
    Busy,
    /// The device cannot write so small pieces as the one before.
    #[error("the cache device's sectors are larger than those of the one before")]
    Sectors,
    /// There is no other handle on the device.
    #[error("cannot open the cache device for a reactor: {0}")]
    Clone(#[source] io::Error),
    /// What the cache holds cannot be gone on with.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The reactor does not take commands.
    #[error(transparent)]
    Handle(#[from] HandleError),
}

/// Something cannot be done to a volume that is in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// There is none of this number.
    #[error("the reactor has no such volume")]
    Unknown,
    /// Its backing cannot be asked, or is one that keeps its size.
    #[error("cannot tell the size of {backing}: {why}")]
    Measure {
        /// Its path or URI.
        backing: String,
        /// Why.
        why: String,
    },
    /// See there.
    #[error(transparent)]
    Grow(#[from] GrowError),
    /// See there.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Its backing cannot be driven.
    #[error("cannot use {backing}: {why}")]
    Start {
        /// Its path or URI.
        backing: String,
        /// Why.
        why: String,
    },
    /// A reactor has only so many tenants.
    #[error("65,534 tenants have been here since the start: no other can come before the next")]
    Tenants,
    /// The cache device alone has some of it.
    #[error("some of the volume is dirty")]
    Dirty,
    /// The cache device alone had some of it, and cannot give it.
    #[error("dirty blocks of the volume are lost ({blocks}): their data on the cache device is damaged")]
    Lost {
        /// How many.
        blocks: u32,
    },
    /// The cache device has failed with data of it.
    #[error("the volume has failed: the cache device alone has some of its data")]
    Failed,
    /// Somebody quiesces it already.
    #[error("the volume is being kept quiet already")]
    Quiet,
    /// It was thawed before it was quiet.
    #[error("the volume was thawed meanwhile")]
    Thawed,
    /// Something else is being done to it.
    #[error("something else is being done to the volume")]
    Busy,
    /// It took too long.
    #[error("a device did not do its part in time")]
    Slow,
    /// The reactor is about to end.
    #[error("the daemon is stopping")]
    Stopping,
    /// The reactor does not take commands.
    #[error(transparent)]
    Handle(#[from] HandleError),
}

/// Through which comes what has come of something that was to be done to a volume or a tenant; it hangs up if the reactor ends first.
pub type Told<T> = mpsc::Receiver<Result<T, VolumeError>>;

/// Tells a reactor what to do, from any thread. Cheap to clone.
#[derive(Debug)]
pub struct Handle<C> {
    mailbox: Arc<Mailbox<C>>,
}

/// The reactor's end of the mailbox: goes into [`crate::ReactorBuilder::spawn`]. Dropping it ends the mailbox.
#[derive(Debug)]
pub struct Inbox<C> {
    mailbox: Arc<Mailbox<C>>,
}

#[derive(Debug)]
struct Mailbox<C> {
    queue: Mutex<Queue<C>>,
    waker: Arc<Waker>,
}

#[derive(Debug)]
struct Queue<C> {
    commands: VecDeque<ReactorCommand<C>>,
    ended: bool,
}

/// A mailbox for a reactor that is still to be started, so that frontends can know each other's handles.
pub fn mailbox<C>() -> io::Result<(Handle<C>, Inbox<C>)> {
    let queue = Mutex::new(Queue { commands: VecDeque::new(), ended: false });
    let mailbox = Arc::new(Mailbox { queue, waker: Arc::new(Waker::new()?) });
    Ok((Handle { mailbox: Arc::clone(&mailbox) }, Inbox { mailbox }))
}

impl<C> Mailbox<C> {
    /// The queue is whole between statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Queue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self { mailbox: Arc::clone(&self.mailbox) }
    }
}

impl<C> Handle<C> {
    /// Change a tenant's quota, in blocks. Unknown tenants are ignored.
    pub fn set_quota(&self, tenant: TenantId, blocks: u32) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Quota { tenant, blocks })
    }

    /// Change what a tenant may hold where partitions lend, in blocks, however many are free, and what it keeps, however seldom it hits that. Unknown tenants are ignored.
    pub fn set_bounds(&self, tenant: TenantId, least: u32, most: u32) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Bounds { tenant, least, most })
    }

    /// Change a tenant's write policy. Unknown tenants are ignored.
    pub fn set_write_policy(&self, tenant: TenantId, policy: WritePolicy) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::WritePolicy { tenant, policy })
    }

    /// Change a tenant's replacement and admission. Unknown tenants are ignored. Takes the reactor some 0.1 µs for each block that the tenant holds.
    pub fn set_caching(&self, tenant: TenantId, caching: CachingSpec) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Caching { tenant, caching })
    }

    /// Have the reactor's tenants lend each other what they do not use ([`larder_engine::Engine::set_lending`]). Only one that has the whole cache device may.
    pub fn set_lending(&self, lending: bool) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Lending(lending))
    }

    /// Have a cleaner keep blocks free ([`larder_engine::Engine::set_watermarks`]), or no longer. Only a reactor that has the whole cache device may.
    pub fn set_watermarks(&self, watermarks: Option<Watermarks>) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Watermarks(watermarks))
    }

    /// Have the reactor's tenants share a partition, or no longer ([`larder_engine::Engine::set_sharing`]). Tenants of other reactors share theirs. Takes the reactor some
    /// 0.1 µs for each block that its tenants hold.
    pub fn set_sharing(&self, sharing: Sharing) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Sharing(sharing))
    }

    /// Have long sequential streams of reads stay out of the cache, from so many bytes on ([`larder_engine::Engine::set_stream_bypass`]).
    pub fn set_stream_bypass(&self, bytes: Option<u64>) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::StreamBypass(bytes))
    }

    /// Have it watched which blocks are hit: [`TenantUse::effective`].
    pub fn watch_hits(&self, watch: bool) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::WatchHits(watch))
    }

    /// Have a mover fill a tenant's partition ([`larder_engine::Engine::set_mover`]), or every miss. Unknown tenants are ignored.
    pub fn set_mover(&self, tenant: TenantId, moves: bool) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Mover { tenant, moves })
    }

    /// The movers come ([`larder_engine::Engine::move_in`]).
    pub fn move_in(&self) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::MoveIn)
    }

    /// Ask how all tenants use their partitions, in the order of their identities. The monitor's batch is handed on before.
    pub fn tenant_uses(&self) -> Result<mpsc::Receiver<Vec<TenantUse>>, HandleError> {
        let (sender, receiver) = mpsc::channel();
        self.partitions(PartitionCommand::Use(sender))?;
        Ok(receiver)
    }

    /// Limit what tenants write to the cache device ([`larder_engine::Engine::set_write_limit`]), or no longer. Unknown tenants are ignored.
    pub fn set_write_limits(&self, limits: Vec<(TenantId, Option<WriteLimit>)>) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::WriteLimits(limits))
    }

    /// Limit what all tenants together write to the cache device ([`larder_engine::Engine::set_common_limit`]), or no longer.
    pub fn set_common_limit(&self, bytes: Option<u64>) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::CommonLimit(bytes))
    }

    /// Ask what was written to the cache device.
    pub fn spent(&self) -> Result<mpsc::Receiver<Spending>, HandleError> {
        let (sender, receiver) = mpsc::channel();
        self.partitions(PartitionCommand::Spent(sender))?;
        Ok(receiver)
    }

    /// Have doors that remember accesses to so many blocks ([`larder_engine::Engine::set_doors`]), or none.
    pub fn set_doors(&self, remembered: Option<u32>) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::Doors(remembered))
    }

    /// Let tenants' requests enter on these terms ([`larder_engine::Engine::open_doors`]). Unknown tenants are ignored.
    pub fn open_doors(&self, terms: Vec<(TenantId, Box<Terms>)>) -> Result<(), HandleError> {
        self.partitions(PartitionCommand::OpenDoors(terms))
    }

    /// Ask what all tenants have offered to the cache device, in the order of their identities; nothing of one that did not. The monitor's batch is handed on before.
    pub fn offers(&self) -> Result<mpsc::Receiver<Vec<Option<Box<TenantOffers>>>>, HandleError> {
        let (sender, receiver) = mpsc::channel();
        self.partitions(PartitionCommand::Offers(sender))?;
        Ok(receiver)
    }

    fn partitions(&self, command: PartitionCommand) -> Result<(), HandleError> {
        self.send(ReactorCommand::Partitions(command))
    }

    /// Write back a volume's dirty blocks, or no longer. Unknown volumes are ignored.
    pub fn drain(&self, volume: VolumeId, how: DrainCommand) -> Result<(), HandleError> {
        self.send(ReactorCommand::Drain { volume, how })
    }

    /// Ask for a snapshot; it comes through the receiver, which hangs up if the reactor ends first. The monitor's batch is
    /// handed on before.
    pub fn snapshot(&self) -> Result<mpsc::Receiver<ReactorSnapshot>, HandleError> {
        let (sender, receiver) = mpsc::channel();
        self.send(ReactorCommand::Snapshot(sender))?;
        Ok(receiver)
    }

    /// Ask for the byte ranges of a volume that only the cache device has, or had: sorted, apart from each other.
    pub fn lost_ranges(&self, volume: VolumeId) -> Result<mpsc::Receiver<Vec<Range<u64>>>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::LostRanges { volume, answer })?;
        Ok(receiver)
    }

    /// Use the cache device no more, and close it when nothing is in flight on it: [`ReactorSnapshot::cache_closed`] tells. Volumes of which it has
    /// dirty blocks fail.
    pub fn detach_cache(&self) -> Result<(), HandleError> {
        self.send(ReactorCommand::DetachCache)
    }

    /// Go on with a cache that was opened anew, after [`Handle::detach_cache`]. `kept` is what it was recovered to hold (no clean block that could be
    /// used); `None` for a cache that is not kept. Guests wait until all that is under way
    /// has ended. How it went comes through the receiver.
    pub fn attach_cache(
        &self,
        cache: &CacheDevice,
        kept: Option<Box<Recovered>>,
        pool: SharedPool,
    ) -> Result<mpsc::Receiver<Result<Resumed, AttachError>>, AttachError> {
        let device = cache.device().try_clone().map_err(AttachError::Clone)?;
        let (answer, receiver) = mpsc::channel();
        let another = Box::new(Another { device, kept, pool });
        self.send(ReactorCommand::AttachCache { another, answer })?;
        Ok(receiver)
    }

    /// Let a volume have the size that its backing has now, which is larger. What it is like then comes through the receiver, after the frontend was told.
    pub fn grow_volume(&self, volume: VolumeId) -> Result<Told<VolumeInfo>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::GrowVolume { volume, answer })?;
        Ok(receiver)
    }

    /// Add a tenant, without volumes. Its identity comes through the receiver.
    pub fn add_tenant(&self, new: NewTenant) -> Result<Told<TenantId>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::AddTenant { new: Box::new(new), answer })?;
        Ok(receiver)
    }

    /// Add a volume. Its identity, and what it is like, come through the receiver when it may be served: the frontend is to be told of it then.
    pub fn join_volume(&self, new: NewVolume) -> Result<Told<(VolumeId, VolumeInfo)>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::JoinVolume { new: Box::new(new), answer })?;
        Ok(receiver)
    }

    /// Drop everything cached of a volume, flush its backing and let go of it. It has to be drained, and no frontend may have it any more; where it is still
    /// asked for something, or a device is slow, it stays. The receiver tells when it is gone.
    pub fn leave_volume(&self, volume: VolumeId) -> Result<Told<()>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::LeaveVolume { volume, answer })?;
        Ok(receiver)
    }

    /// Drop everything cached of a volume, so that not even a crash brings any of it back. It has to be drained.
    pub fn forget_volume(&self, volume: VolumeId) -> Result<Told<()>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::ForgetVolume { volume, answer })?;
        Ok(receiver)
    }

    /// Have a volume's backing hold, durably, all that its guests were told is written, and let nothing change it: `within` some time, and for at most
    /// `hold`. What would change it waits meanwhile. The receiver tells when that is so.
    pub fn quiesce(
        &self,
        volume: VolumeId,
        within: Duration,
        hold: Duration,
    ) -> Result<Told<()>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::Quiesce { volume, within, hold, answer })?;
        Ok(receiver)
    }

    /// Let a volume go on. The receiver tells whether it was quiet until now.
    pub fn thaw(&self, volume: VolumeId) -> Result<mpsc::Receiver<bool>, HandleError> {
        let (answer, receiver) = mpsc::channel();
        self.send(ReactorCommand::Thaw { volume, answer })?;
        Ok(receiver)
    }

    /// Tell the frontend something.
    pub fn frontend(&self, command: C) -> Result<(), HandleError> {
        self.send(ReactorCommand::Frontend(command))
    }

    /// Wind down: the frontend finishes, what is in flight drains, backings are flushed, the thread ends. What is not done after
    /// `within` is given up.
    pub fn stop(&self, within: Duration) -> Result<(), HandleError> {
        self.send(ReactorCommand::Stop { within })
    }

    fn send(&self, command: ReactorCommand<C>) -> Result<(), HandleError> {
        let mut queue = self.mailbox.lock();
        if queue.ended {
            return Err(HandleError::Ended);
        }
        if queue.commands.len() >= COMMANDS_MAX {
            return Err(HandleError::Full);
        }
        queue.commands.push_back(command);
        drop(queue);
        self.mailbox.waker.wake();
        Ok(())
    }
}

impl<C> Inbox<C> {
    /// The next command.
    pub(crate) fn take(&self) -> Option<ReactorCommand<C>> {
        self.mailbox.lock().commands.pop_front()
    }

    /// Whoever has it can wake the reactor.
    pub(crate) fn waker(&self) -> &Arc<Waker> {
        &self.mailbox.waker
    }
}

impl<C> Drop for Inbox<C> {
    fn drop(&mut self) {
        let mut queue = self.mailbox.lock();
        queue.ended = true;
        queue.commands.clear();
    }
}

/// Wakes a reactor, with a system call only where it sleeps.
///
/// The waker first sets `pending`, then looks at `asleep`; the sleeper first sets `asleep`, then looks at `pending`. Whatever
/// the interleaving, at least one of them sees the other.
#[derive(Debug)]
pub(crate) struct Waker {
    event: File,
    asleep: AtomicBool,
    pending: AtomicBool,
}

impl Waker {
    pub fn new() -> io::Result<Self> {
        Ok(Self { event: sys::eventfd()?, asleep: AtomicBool::new(false), pending: AtomicBool::new(false) })
    }

    /// Something is there for the reactor.
    pub fn wake(&self) {
        self.pending.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.ring_bell();
        }
    }

    /// End the read of the event counter, awake or not.
    pub fn ring_bell(&self) {
        // Fails only where the counter is full, and then the reactor wakes anyway.
        let _ = (&self.event).write(&1_u64.to_ne_bytes());
    }

    /// The reactor is going to sleep. False where something has come in between.
    pub fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let quiet = !self.pending.load(Ordering::SeqCst);
        if !quiet {
            self.awake();
        }
        quiet
    }

    /// The reactor is awake.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// True where something came since the last call.
    #[inline]
    pub fn take_pending(&self) -> bool {
        self.is_pending() && self.pending.swap(false, Ordering::SeqCst)
    }

    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// The event counter, to be read while asleep.
    pub fn event(&self) -> &File {
        &self.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn commands_arrive_in_order_and_are_bounded() {
        let (handle, inbox) = mailbox::<usize>().unwrap();
        for number in 0..COMMANDS_MAX {
            handle.frontend(number).unwrap();
        }
        assert_eq!(handle.frontend(0), Err(HandleError::Full));
        assert!(inbox.waker().take_pending() && !inbox.waker().take_pending());
        for number in 0..COMMANDS_MAX {
            assert!(matches!(inbox.take(), Some(ReactorCommand::Frontend(n)) if n == number));
        }
        assert!(inbox.take().is_none());
    }

    #[test]
    fn a_reactor_that_ended_takes_nothing() {
        let (handle, inbox) = mailbox::<()>().unwrap();
        let snapshot = handle.snapshot().unwrap();
        drop(inbox);
        assert_eq!(handle.stop(Duration::ZERO), Err(HandleError::Ended));
        assert!(snapshot.recv().is_err(), "the asker hears that nobody will answer");
    }

    #[test]
    fn only_a_sleeper_is_woken_by_a_system_call() {
        let waker = Waker::new().unwrap();
        waker.wake();
        assert!(!waker.may_sleep(), "something is pending");
        assert!(waker.take_pending() && waker.may_sleep());
        waker.wake();
        let mut count = [0; 8];
        (&waker.event).read_exact(&mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
    }
}
