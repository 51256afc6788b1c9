//! The devices of the host: what requests wait for, and at what pace dirty blocks are written back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::device::{Device, Op};
use super::{Backing, DeviceSpec, DeviceUse, TenantsPlan};

/// One of so many parts of the cache may wait for being written back, for each tenant; who makes more leave has no room for others until it is less.
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
    cleaners: Vec<Cleaner>,
}

/// A run of dirty blocks: the first, and how many.
pub(super) type DirtyRun = (u64, u64);

/// What writes one tenant's dirty blocks back: no more runs at a time than its part of the backing, however long those take that lie behind guests' requests there.
#[derive(Default)]
struct Cleaner {
    /// When each run that is under way is done.
    under_way: BinaryHeap<Reverse<u64>>,
    /// Runs that wait for one of these to be done, and since when.
    due: VecDeque<(DirtyRun, u64)>,
    /// How much later the last run began than the pace would have it.
    late: u64,
}

impl Cleaner {
    /// When another run may begin.
    fn free_at(&mut self, now: u64, most: u32) -> u64 {
        while self.under_way.peek().is_some_and(|Reverse(done)| *done <= now) {
            self.under_way.pop();
        }
        match self.under_way.peek() {
            Some(&Reverse(done)) if self.under_way.len() >= most as usize => done,
            _ => now,
        }
    }
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
            cleaners: plan.tenants.iter().map(|_| Cleaner::default()).collect(),
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
        let cleaners = self.runs_at_a_time();
        let backlog = &mut self.backlogs[tenant];
        let begin = backlog.back().map_or(now, |&(last, _)| last.max(now));
        backlog.push_back((begin + (seconds * 1e9 / f64::from(cleaners)) as u64, leaving));
        self.waiting[tenant] += leaving;
        begin
    }

    /// Runs of one tenant that are written back at a time.
    fn runs_at_a_time(&self) -> u32 {
        (self.backing.parallel / CLEANER_PART).max(1)
    }

    /// It is time for a run to be written back. Where too many of the tenant's are under way it waits: if it is the first that does, until when is told ([`Self::go_on_cleaning`]).
    pub(super) fn clean(&mut self, tenant: usize, now: u64, run: DirtyRun) -> Option<u64> {
        let most = self.runs_at_a_time();
        let cleaner = &mut self.cleaners[tenant];
        let free = cleaner.free_at(now, most);
        if free == now && cleaner.due.is_empty() {
            cleaner.late = 0;
            self.begin_run(tenant, now, run);
            return None;
        }
        cleaner.due.push_back((run, now));
        (cleaner.due.len() == 1).then_some(free)
    }

    /// Runs that waited begin, as far as others are done. When to go on, if some still wait.
    pub(super) fn go_on_cleaning(&mut self, tenant: usize, now: u64) -> Option<u64> {
        let most = self.runs_at_a_time();
        loop {
            let cleaner = &mut self.cleaners[tenant];
            let &(run, since) = cleaner.due.front()?;
            let free = cleaner.free_at(now, most);
            if free > now {
                return Some(free);
            }
            cleaner.due.pop_front();
            cleaner.late = now.saturating_sub(since);
            self.begin_run(tenant, now, run);
        }
    }

    fn begin_run(&mut self, tenant: usize, now: u64, (place, length): DirtyRun) {
        self.ssd(now, Op::Read, place, length);
        let done = self.backing(tenant, now, Op::Write, place, length);
        self.cleaners[tenant].under_way.push(Reverse(done));
    }

    /// When so few of a tenant's blocks wait for being written back that others may leave.
    pub(super) fn when_cleaned(&mut self, tenant: usize, now: u64) -> u64 {
        let late = self.cleaners[tenant].late;
        let (backlog, waiting) = (&mut self.backlogs[tenant], &mut self.waiting[tenant]);
        while let Some(&(_, blocks)) = backlog.front().filter(|(done, _)| *done + late <= now) {
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
            clean = done + late;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::TenantPlan;

    const SECOND: u64 = 1_000_000_000;

    /// A cache of 16 blocks, of which one may wait for being written back, before a disk that serves one request at a time, in a second each.
    fn machine() -> Machine {
        let mut plan = TenantsPlan::new(vec![TenantPlan::new("a")], "static", 16 * 4096);
        let disk = "hdd-10k:random-read=1s,random-write=1s,sequential-read=1s,sequential-write=1s,read-bandwidth=1e30,write-bandwidth=1e30";
        plan.backing = disk.parse().expect("a device");
        Machine::new(&plan, 4096)
    }

    #[test]
    fn dirty_blocks_are_written_back_one_run_after_the_other() {
        let mut machine = machine();
        let begins = [1, 2, 3].map(|place| (place, machine.write_back(0, 0, 1, 1)));
        assert_eq!(begins, [(1, 0), (2, SECOND), (3, 2 * SECOND)]);
        assert_eq!(machine.when_cleaned(0, 0), 2 * SECOND);
        for (place, begin) in begins {
            assert_eq!(machine.clean(0, begin, (place, 1)), None);
        }
        assert_eq!((machine.when_cleaned(0, 2 * SECOND), machine.backings[0].operations()), (2 * SECOND, 3));
    }

    #[test]
    fn a_busy_disk_has_no_more_runs_at_a_time() {
        let mut machine = machine();
        let begins = [1, 2, 3].map(|place| (place, machine.write_back(0, 0, 1, 1)));
        assert_eq!(machine.clean(0, begins[0].1, (1, 1)), None);
        // Five seconds of work for guests come before the second run, behind which the third one waits.
        (0..5).for_each(|place| _ = machine.backing(0, SECOND / 2, Op::Read, 100 * place, 1));
        assert_eq!(machine.clean(0, begins[1].1, (2, 1)), None);
        assert_eq!(machine.clean(0, begins[2].1, (3, 1)), Some(7 * SECOND));
        assert_eq!(machine.backings[0].operations(), 7);
        // Another that is due meanwhile waits behind it, and a guest's read for no more than what is in the queue.
        assert_eq!(machine.clean(0, 6 * SECOND, (4, 1)), None);
        assert_eq!(machine.backing(0, 6 * SECOND, Op::Read, 1000, 1), 8 * SECOND);
        assert_eq!(machine.go_on_cleaning(0, 7 * SECOND), Some(9 * SECOND));
        assert_eq!(machine.go_on_cleaning(0, 9 * SECOND), None);
        assert_eq!(machine.backings[0].operations(), 10);
    }

    #[test]
    fn what_is_written_back_late_leaves_late() {
        let mut machine = machine();
        let begins = [1, 2, 3].map(|place| (place, machine.write_back(0, 0, 1, 1)));
        machine.clean(0, begins[0].1, (1, 1));
        (0..5).for_each(|place| _ = machine.backing(0, SECOND / 2, Op::Read, 100 * place, 1));
        machine.clean(0, begins[1].1, (2, 1));
        machine.clean(0, begins[2].1, (3, 1));
        machine.go_on_cleaning(0, 7 * SECOND);
        // The third began five seconds later than at its pace: it is done at 8 s, not at 3.
        assert_eq!(machine.write_back(0, 7 * SECOND, 1, 1), 7 * SECOND);
        assert_eq!(machine.when_cleaned(0, 7 * SECOND), 8 * SECOND);
    }
}
