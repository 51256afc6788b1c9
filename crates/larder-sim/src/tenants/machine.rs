//! The devices of the host, and what requests wait for.

use std::collections::VecDeque;

use super::device::{Device, Op};
use super::{Backing, DeviceSpec, DeviceUse, TenantsPlan};

/// One of so many parts of the cache may wait for being written back, for each tenant; a request that makes more leave waits until it is less.
const BACKLOG_PART: u64 = 16;

/// One of so many parts of what a backing serves at a time writes back for one tenant: reads are not to wait for all that left at once.
const CLEANER_PART: u32 = 2;

/// What a cleaner writes at once, at most, as the daemon's does.
const RUN_BYTES: u64 = 1 << 20;

/// Cached blocks between missing ones that are read from the backing with these, at most, as the daemon does.
const BRIDGED_BYTES: u64 = 16 << 10;

/// The devices.
pub(super) struct Machine {
    ssd: Device,
    backings: Vec<Device>,
    shared: bool,
    block_bytes: u64,
    backing: DeviceSpec,
    /// What waits for being written back, by tenant: when each run is done, and those of its blocks that leave; and these blocks in all.
    backlogs: Vec<VecDeque<(u64, u64)>>,
    waiting: Vec<u64>,
    backlog_max: u64,
}

impl Machine {
    pub(super) fn new(plan: &TenantsPlan, block_bytes: u32) -> Self {
        let shared = plan.backings == Backing::Shared;
        let backings = if shared { 1 } else { plan.tenants.len().max(1) };
        Self {
            ssd: Device::new(plan.ssd),
            backings: (0..backings).map(|_| Device::new(plan.backing)).collect(),
            shared,
            block_bytes: block_bytes.into(),
            backing: plan.backing,
            backlogs: vec![VecDeque::new(); plan.tenants.len()],
            waiting: vec![0; plan.tenants.len()],
            backlog_max: (plan.cache_bytes / u64::from(block_bytes) / BACKLOG_PART).max(1),
        }
    }

    pub(super) fn ssd(&mut self, now: u64, op: Op, place: u64, blocks: u64) -> u64 {
        self.ssd.submit(now, op, place, blocks, self.block_bytes)
    }

    pub(super) fn backing(&mut self, tenant: usize, now: u64, op: Op, place: u64, blocks: u64) -> u64 {
        let at = if self.shared { 0 } else { tenant };
        self.backings[at].submit(now, op, place, blocks, self.block_bytes)
    }

    /// Dirty blocks that a cleaner writes at once, at most.
    pub(super) fn run_blocks(&self) -> u64 {
        RUN_BYTES / self.block_bytes
    }

    /// Cached blocks between missing ones that are read with these, at most.
    pub(super) fn bridged_blocks(&self) -> usize {
        (BRIDGED_BYTES / self.block_bytes) as usize
    }

    /// A run of dirty blocks is written back since so many of them leave. Returns when they are to be read from the SSD and written to the backing: not all at once, but at the pace of a part of the backing.
    pub(super) fn write_back(&mut self, tenant: usize, now: u64, blocks: u64, leaving: u64) -> u64 {
        let seconds = self.backing.seconds(Op::Write, false, blocks * self.block_bytes);
        let cleaners = (self.backing.parallel / CLEANER_PART).max(1);
        let backlog = &mut self.backlogs[tenant];
        let begin = backlog.back().map_or(now, |&(last, _)| last.max(now));
        backlog.push_back((begin + (seconds * 1e9 / f64::from(cleaners)) as u64, leaving));
        self.waiting[tenant] += leaving;
        begin
    }

    /// When so few of a tenant's blocks wait for being written back that others may leave.
    pub(super) fn when_cleaned(&mut self, tenant: usize, now: u64) -> u64 {
        let (backlog, waiting) = (&mut self.backlogs[tenant], &mut self.waiting[tenant]);
        while let Some(&(_, blocks)) = backlog.front().filter(|(done, _)| *done <= now) {
            backlog.pop_front();
            *waiting -= blocks;
        }
        let mut over = waiting.saturating_sub(self.backlog_max);
        let mut clean = now;
        for &(done, blocks) in backlog.iter() {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(blocks);
            clean = done;
        }
        clean
    }

    pub(super) fn used(&self, now: u64, names: &[String]) -> Vec<DeviceUse> {
        let tell = |name: String, device: &Device| DeviceUse {
            name,
            operations: device.operations(),
            seconds: now as f64 / 1e9,
            busy: device.busy(now),
        };
        let backings = self.backings.iter().enumerate().map(|(at, device)| {
            let name = if self.shared { "backing".to_owned() } else { format!("backing of {}", names[at]) };
            tell(name, device)
        });
        std::iter::once(tell("ssd".to_owned(), &self.ssd)).chain(backings).collect()
    }
}

/// What a request takes where nothing else is going on, in seconds.
pub(super) fn nominal(ssd: &DeviceSpec, backing: &DeviceSpec, bytes: u64) -> larder_alloc::Latencies {
    larder_alloc::Latencies {
        read_hit: ssd.seconds(Op::Read, false, bytes),
        read_miss: backing.seconds(Op::Read, false, bytes),
        cached_write: ssd.seconds(Op::Write, false, bytes),
        backing_write: backing.seconds(Op::Write, false, bytes),
        write_back: 0.0,
    }
}
