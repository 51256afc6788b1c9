//! The loop. A turn takes what has ended, lets the engine and the frontend act on it, and enters the kernel once to submit and to
//! collect; where nothing is left to do it polls for a moment, then sleeps.

use super::ReactorError;
use super::stop::{Late, Phase};
use super::swap::Swap;
use super::volumes::Volumes;
use crate::Context;
use crate::driver::slow::LOOK_EVERY;
use crate::frontend::Frontend;
use crate::lane::Operation;
use crate::mailbox::{DrainCommand, Inbox, ReactorCommand};
use crate::ring::Completion;
use crate::spin::Spins;
use crate::stats::{LostSize, ReactorSnapshot, TenantSnapshot, VolumeSnapshot};
use io_uring::{opcode, types};
use larder_engine::{TenantId, VolumeId};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Completions handled in one turn.
const COMPLETIONS_PER_TURN: usize = 256;
/// Completions after which what came of them is handed on, and a frontend may have its turn: fewer take more system calls, with more the device rests. (Random reads of a
/// disk at queue depth 32 over vhost-user: with 64 a fifth fewer a second than with 2, with 8 a tenth, with 4 a twentieth.)
pub(super) const COMPLETIONS_AT_ONCE: usize = 2;
/// Replies, events and inline completions handed on in one turn.
const DELIVERIES_PER_TURN: usize = 4096;
/// Blocks that a shrinking tenant gives up in one turn, so that guests never wait for it.
const TRIM_PER_TURN: usize = 64;
/// Between calls of the engine's tick, and the frontend's.
const TICK: Duration = Duration::from_secs(1);
/// Longest sleep of a reactor that has no socket, and no cache to keep.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Looks at the ring between two looks at the clock while polling.
const LOOKS_PER_CLOCK: u32 = 16;

/// The state of the loop, on its own thread.
pub(super) struct Reactor<F: Frontend> {
    pub frontend: F,
    /// Dropped only where no operation is in flight, and never after a panic: else the memory that the kernel may still use
    /// stays.
    pub cx: ManuallyDrop<Context>,
    pub inbox: Inbox<F::Command>,
    pub phase: Phase,
    pub late: Option<Late>,
    pub tenants: u16,
    spins: Spins,
    began: Instant,
    next_tick: Instant,
    next_look: Instant,
    completions: Vec<Completion>,
    pub trim_due: bool,
    /// The frontend had its turn before all that has ended was handled.
    cut_short: bool,
    pub swap: Swap,
    pub volumes: Volumes,
}

impl<F: Frontend> Reactor<F> {
    pub fn new(
        frontend: F,
        mut cx: Context,
        inbox: Inbox<F::Command>,
        tenants: u16,
        spin: Option<Duration>,
    ) -> Self {
        let began = cx.now;
        cx.driver.monitor.set_began(began);
        Self {
            frontend,
            cx: ManuallyDrop::new(cx),
            inbox,
            phase: Phase::Running,
            late: None,
            tenants,
            spins: Spins::new(spin),
            began,
            next_tick: began + TICK,
            next_look: began + LOOK_EVERY,
            completions: Vec::with_capacity(COMPLETIONS_PER_TURN),
            trim_due: false,
            cut_short: false,
            swap: Swap::default(),
            volumes: Volumes::default(),
        }
    }

    /// Run until stopped.
    pub fn run(mut self) -> Result<(), ReactorError> {
        self.listen_for_wakeups();
        self.frontend.start(&mut self.cx);
        loop {
            self.read_mail();
            let mut deliveries = DELIVERIES_PER_TURN;
            self.handle_completions(&mut deliveries);
            self.deliver(&mut deliveries);
            self.background();
            if let Some(result) = self.advance_phase() {
                return result;
            }
            self.wait()?;
        }
    }

    /// Keep a read of the event counter on the ring.
    fn listen_for_wakeups(&mut self) {
        let waker = self.inbox.waker();
        let fd = types::Fd(waker.event().as_raw_fd());
        let mut bytes = Box::new([0; 8]);
        let entry = opcode::Read::new(fd, bytes.as_mut_ptr(), 8).build();
        // SAFETY: the box belongs to the operation; the counter's descriptor lives as long as the inbox.
        unsafe { self.cx.lane.start_plain(Operation::Wake { _count: bytes }, entry) };
    }

    fn read_mail(&mut self) {
        if !self.inbox.waker().take_pending() {
            return;
        }
        while let Some(command) = self.inbox.take() {
            self.obey(command);
        }
    }

    fn obey(&mut self, command: ReactorCommand<F::Command>) {
        match command {
            ReactorCommand::Partitions(command) => self.run_partitions(command),
            ReactorCommand::Drain { volume, how } => self.drain(volume, how),
            ReactorCommand::Snapshot(asker) => {
                self.cx.driver.monitor.flush();
                // An asker that has gone meanwhile does not need the answer.
                let _ = asker.send(self.snapshot());
            }
            ReactorCommand::LostRanges { volume, answer } => {
                // As above.
                let _ = answer.send(self.cx.driver.engine.lost_ranges(volume));
            }
            ReactorCommand::GrowVolume { volume, answer } => self.grow_volume(volume, answer),
            ReactorCommand::AddTenant { new, answer } => _ = answer.send(self.add_tenant(&new)),
            ReactorCommand::JoinVolume { new, answer } => self.join_volume(*new, answer),
            ReactorCommand::LeaveVolume { volume, answer } => self.leave_volume(volume, answer),
            ReactorCommand::ForgetVolume { volume, answer } => self.forget_volume(volume, answer),
            ReactorCommand::Quiesce { volume, within, hold, answer } => {
                self.quiesce(volume, within, hold, answer);
            }
            ReactorCommand::Thaw { volume, answer } => _ = answer.send(self.thaw(volume)),
            ReactorCommand::DetachCache => self.detach_cache(),
            ReactorCommand::AttachCache { another, answer } => self.attach_cache(another, answer),
            ReactorCommand::Frontend(command) => self.frontend.command(&mut self.cx, command),
            ReactorCommand::Stop { within } => self.begin_stop(within),
        }
    }

    fn drain(&mut self, volume: VolumeId, how: DrainCommand) {
        let Context { lane, driver, .. } = &mut *self.cx;
        if !driver.has(volume) {
            return tracing::warn!(?volume, "a command for a volume that this reactor does not have");
        }
        if self.volumes.note_drain(volume, how) {
            return;
        }
        match how {
            DrainCommand::Once => driver.engine.drain_once(volume),
            DrainCommand::On => driver.engine.drain(volume, true),
            DrainCommand::Off => driver.engine.drain(volume, false),
        }
        driver.act(lane);
    }

    /// Handle what has ended, and hand on what comes of it.
    fn handle_completions(&mut self, deliveries: &mut usize) {
        let mut completions = std::mem::take(&mut self.completions);
        let mut left = COMPLETIONS_PER_TURN;
        self.cut_short = false;
        while left > 0 && *deliveries > 0 && !self.cut_short {
            self.cx.lane.ring.collect(&mut completions, COMPLETIONS_AT_ONCE.min(left));
            if completions.is_empty() {
                break;
            }
            left -= completions.len();
            for completion in completions.drain(..) {
                self.handle(completion);
            }
            self.deliver(deliveries);
            self.cut_short = self.frontend.wants_turn();
        }
        self.completions = completions;
    }

    #[inline]
    fn handle(&mut self, Completion { key, result }: Completion) {
        let Some(operation) = self.cx.lane.finish(key) else { return };
        match self.cx.event_of(operation, result) {
            Ok(event) => self.frontend.event(&mut self.cx, event),
            Err(Operation::Wake { .. }) if !self.phase.is_closing() => self.listen_for_wakeups(),
            Err(Operation::Wake { .. } | Operation::Cancel) => {}
            Err(Operation::Waited { socket }) => self.cx.lane.end(socket),
            Err(operation) => {
                let Context { lane, driver, .. } = &mut *self.cx;
                driver.completed(lane, operation, result);
            }
        }
    }

    /// Hand on replies and events until nothing is left, or the turn has done its share.
    fn deliver(&mut self, deliveries: &mut usize) {
        while *deliveries > 0 {
            *deliveries -= 1;
            let Context { lane, driver, events, .. } = &mut *self.cx;
            if let Some(reply) = driver.next_reply() {
                self.frontend.reply(&mut self.cx, reply.cookie, reply.result, reply.buffer);
            } else if let Some(event) = events.pop_front() {
                self.frontend.event(&mut self.cx, event);
            } else if !driver.end_next(lane) {
                return;
            }
        }
    }

    /// What a turn does beside answering: shrink, go on with long inline operations, send what was gathered, keep time.
    fn background(&mut self) {
        let Context { lane, driver, .. } = &mut *self.cx;
        self.trim_due = driver.engine.trim(TRIM_PER_TURN);
        driver.act(lane);
        driver.continue_inline();
        self.swap_cache();
        self.go_on_with_volumes();
        if self.cx.now >= self.next_tick {
            self.tick();
        }
        if self.cx.now >= self.next_look {
            self.next_look = self.cx.now + LOOK_EVERY;
            self.cx.driver.look_for_slowness();
        }
        self.frontend.end_of_batch(&mut self.cx);
        let Context { lane, driver, .. } = &mut *self.cx;
        driver.poll_nbd(lane);
    }

    fn tick(&mut self) {
        self.next_tick = self.cx.now + TICK;
        let Context { lane, driver, .. } = &mut *self.cx;
        driver.tick(lane);
        self.cx.driver.monitor.flush();
        if !self.cx.lane.sockets.is_empty() {
            let now = self.cx.now;
            self.frontend.tick(&mut self.cx, now);
        }
    }

    /// Enter the kernel: without waiting where there is more to do, else until something happens.
    fn wait(&mut self) -> Result<(), ReactorError> {
        let result = if self.has_work() {
            self.enter_if_useful()
        } else if self.poll().map_err(ReactorError::Ring)? {
            Ok(())
        } else {
            self.sleep()
        };
        self.cx.now = Instant::now();
        let now_ns = self.on_clock(self.cx.now);
        self.cx.driver.now_ns = now_ns;
        self.cx.driver.engine.set_clock(now_ns);
        // Those of a turn that neither polled nor slept.
        self.replies_left(self.cx.now);
        result.map_err(ReactorError::Ring)
    }

    /// A moment on the reactor's clock, in nanoseconds.
    fn on_clock(&self, moment: Instant) -> u64 {
        moment.duration_since(self.began).as_nanos() as u64
    }

    /// The replies of this turn have left, by this moment.
    fn replies_left(&mut self, moment: Instant) {
        let now_ns = self.on_clock(moment);
        self.cx.driver.clocked.end_turn(now_ns);
    }

    fn has_work(&self) -> bool {
        self.trim_due
            || self.cut_short
            || !self.cx.events.is_empty()
            || self.cx.driver.has_work()
            || self.inbox.waker().is_pending()
    }

    fn enter_if_useful(&mut self) -> std::io::Result<()> {
        let lane = &mut self.cx.lane;
        if lane.has_submissions() || lane.ring.has_completions() { lane.enter(None) } else { Ok(()) }
    }

    /// Submit, then look for completions and mail for as long as that has lately paid. True where something came.
    fn poll(&mut self) -> std::io::Result<bool> {
        let operations = self.cx.driver.engine.in_flight();
        let budget = self.spins.of(operations).budget();
        if budget.is_zero() {
            return Ok(false);
        }
        self.enter_if_useful()?;
        let began = Instant::now();
        self.replies_left(began);
        while began.elapsed() < budget {
            for _ in 0..LOOKS_PER_CLOCK {
                if self.cx.lane.ring.has_completions()
                    || self.inbox.waker().is_pending()
                    || self.frontend.has_news()
                {
                    self.spins.of(operations).paid();
                    self.enter_if_useful()?;
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
        }
        self.spins.of(operations).in_vain();
        Ok(false)
    }

    /// Submit, and sleep until a completion or a command comes.
    fn sleep(&mut self) -> std::io::Result<()> {
        if !self.inbox.waker().may_sleep() {
            return Ok(());
        }
        if self.frontend.before_sleep(&mut self.cx) {
            self.inbox.waker().awake();
            return Ok(());
        }
        let began = Instant::now();
        self.replies_left(began);
        let timed = !self.cx.lane.sockets.is_empty()
            || self.phase != Phase::Running
            || self.swap.is_under_way()
            || self.volumes.is_busy()
            || self.cx.driver.engine.data_offset().is_some();
        let until = |moment: Instant| moment.saturating_duration_since(began);
        let timeout = if timed { until(self.next_tick) } else { SLEEP_MAX };
        let operations = self.cx.driver.engine.in_flight();
        // What does not answer wakes nobody.
        let timeout = if operations > 0 { timeout.min(until(self.next_look)) } else { timeout };
        let result = self.cx.lane.enter(Some(timeout));
        self.inbox.waker().awake();
        self.spins.of(operations).slept(began.elapsed());
        result
    }

    fn snapshot(&self) -> ReactorSnapshot {
        let driver = &self.cx.driver;
        ReactorSnapshot {
            tenants: (0..self.tenants).map(|tenant| self.tenant(TenantId(tenant))).collect(),
            latencies: driver.clocked.snapshot(),
            volumes: (0..driver.volumes.len())
                .filter(|&volume| driver.has(VolumeId(volume as u16)))
                .map(|volume| self.volume(volume))
                .collect(),
            cache: driver.stats[0],
            cache_failed: driver.engine.cache_failed(),
            cache_closed: driver.is_cache_closed(),
            session: driver.engine.session(),
            metadata_bytes: driver.engine.metadata_bytes(),
            in_flight: driver.engine.in_flight(),
            engine_memory_bytes: driver.engine.memory_bytes(),
            buffer_bytes: driver.pool.used_bytes(),
            monitor_dropped: driver.monitor.dropped(),
            monitor_clock_ns: driver.monitor.clock_ns(driver.now_ns),
        }
    }

    fn tenant(&self, tenant: TenantId) -> TenantSnapshot {
        let engine = &self.cx.driver.engine;
        TenantSnapshot {
            tenant,
            stats: engine.stats(tenant),
            quota_blocks: engine.quota(tenant),
            occupied_blocks: engine.occupied(tenant),
            dirty_blocks: engine.dirty(tenant),
            write_policy: engine.write_policy(tenant),
        }
    }

    fn volume(&self, index: usize) -> VolumeSnapshot {
        let driver = &self.cx.driver;
        let crate::driver::Volume { tenant, info, requests, .. } = &driver.volumes[index];
        let (volume, engine) = (VolumeId(index as u16), &driver.engine);
        VolumeSnapshot {
            volume,
            tenant: *tenant,
            info: *info,
            requests: *requests,
            backing: driver.stats[index + 1],
            dirty_blocks: engine.dirty_of(volume),
            draining: engine.draining(volume),
            quiet: self.volumes.is_quiet(volume),
            failed: engine.is_failed(volume),
            slow_cache: engine.passes_slow_cache(volume),
            epochs_behind: engine.epochs_behind(volume),
            backing_failing: engine.backing_failing_for(volume).map(|ticks| TICK * ticks as u32),
            backing_failed_since_asked: engine.backing_failed_since_asked(volume),
            lost: self.lost(volume),
        }
    }

    fn lost(&self, volume: VolumeId) -> LostSize {
        let engine = &self.cx.driver.engine;
        let blocks = engine.lost_of(volume);
        // Of a volume that has failed the ranges are all that is dirty, and slow to find.
        if blocks == 0 || engine.is_failed(volume) {
            return LostSize::default();
        }
        let ranges = engine.lost_ranges(volume);
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        LostSize { blocks, bytes, ranges: ranges.len() as u64 }
    }
}

/// Whichever way the loop ends, the monitor's receiver hears of it: it waits for that, and would wait for ever.
impl<F: Frontend> Drop for Reactor<F> {
    fn drop(&mut self) {
        self.cx.driver.monitor.close();
        if self.cx.lane.in_flight() == 0 && !std::thread::panicking() {
            // SAFETY: `self.cx` is not used again, and no operation can touch its memory.
            unsafe { ManuallyDrop::drop(&mut self.cx) };
        }
    }
}
