//! The devices of the host, and what requests wait for.

use std::collections::VecDeque;

use super::device::{Device, Op};
use super::{Backing, DeviceSpec, DeviceUse, TenantsPlan};

/// The part of the cache that may be on its way to the backing for each tenant; what makes more leave waits for the first of it.
const WRITE_BACK_PART: u64 = 64;

/// The devices.
pub(super) struct Machine {
    ssd: Device,
    backings: Vec<Device>,
    shared: bool,
    block_bytes: u64,
    /// When the write-backs of each tenant are done.
    write_backs: Vec<VecDeque<u64>>,
    write_backs_max: usize,
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
            write_backs: vec![VecDeque::new(); plan.tenants.len()],
            write_backs_max: (plan.cache_bytes / u64::from(block_bytes) / WRITE_BACK_PART).max(1) as usize,
        }
    }

    pub(super) fn ssd(&mut self, now: u64, op: Op, place: u64, blocks: u64) -> u64 {
        self.ssd.submit(now, op, place, blocks, self.block_bytes)
    }

    pub(super) fn backing(&mut self, tenant: usize, now: u64, op: Op, place: u64, blocks: u64) -> u64 {
        let at = if self.shared { 0 } else { tenant };
        self.backings[at].submit(now, op, place, blocks, self.block_bytes)
    }

    /// A dirty block leaves: when whoever needs its place may go on.
    pub(super) fn write_back(&mut self, tenant: usize, now: u64, place: u64, blocks: u64) -> u64 {
        self.ssd(now, Op::Read, place, blocks);
        let done = self.backing(tenant, now, Op::Write, place, blocks);
        let under_way = &mut self.write_backs[tenant];
        under_way.push_back(done);
        let over = under_way.len() > self.write_backs_max;
        if over { under_way.pop_front().map_or(now, |first| first.max(now)) } else { now }
    }

    pub(super) fn used(&self, now: u64, names: &[String]) -> Vec<DeviceUse> {
        let tell = |name: String, device: &Device| DeviceUse {
            name,
            operations: device.operations(),
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
