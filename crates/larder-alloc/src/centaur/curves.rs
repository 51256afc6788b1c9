//! What a tenant's cache of any size would do: Centaur's curves (section V).
//!
//! The miss rate curve goes by requests and by batched population (step 1; [`CurvePolicy::Batched`]). From it follow the
//! latency curve, by equation 1, and the curve of 1 / IOPS, by equation 2, with what the tenant's requests took on the
//! SSD and on the disk in the epoch that ended.

use larder_locality::{CurvePolicy, PolicyCurves};

use crate::correction::{Correction, held_blocks};
use crate::{
    Findings, Latencies, Measured, Objective, Prediction, Reservation, SinceDecision, Tenant, Timed,
};

/// Who has fewer requests outstanding than this in the mean paces itself: one at a time, without a pause, makes 1 but for
/// what an epoch cuts off.
const PACED: f64 = 0.95;

/// Equation 1: the mean latency where a share `mr` of the requests misses, in the unit of the latencies.
pub(super) fn latency(mr: f64, ssd: f64, disk: f64) -> f64 {
    (1.0 - mr) * ssd + mr * disk
}

/// Equation 2: requests per second where a share `mr` of them misses, and the disk serves `disk_iops`. Without misses the
/// disk limits nothing.
pub(super) fn iops(mr: f64, disk_iops: f64) -> f64 {
    if mr > 0.0 { disk_iops / mr } else { f64::INFINITY }
}

/// Requests per second that come if each takes `latency` seconds, of a tenant of which `rate` came that took `took` each.
///
/// Equation 2 leaves out what a request takes on the SSD, so that it promises any number where few requests miss. What
/// a tenant has outstanding comes back only after that, by Little's law; one that has less than one outstanding in the
/// mean waits for something else in between, as long as before.
fn answered(latency: f64, rate: f64, took: f64) -> f64 {
    let outstanding = (rate * took).max(1.0);
    outstanding / (outstanding / rate - took + latency)
}

/// Values over the size of a partition: each from its size on, up to the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// `(blocks, value)`, from 0 blocks on, in strictly rising order of size.
    points: Vec<(u64, f64)>,
}

impl Curve {
    /// From points as they are kept, the first at 0 blocks.
    pub(super) fn of(points: impl IntoIterator<Item = (u64, f64)>) -> Self {
        Self { points: points.into_iter().collect() }
    }

    pub(super) fn at(&self, blocks: u64) -> f64 {
        let until = self.points.partition_point(|point| point.0 <= blocks);
        // The first point is at 0 blocks.
        self.points[until.saturating_sub(1)].1
    }

    pub(super) fn points(&self) -> &[(u64, f64)] {
        &self.points
    }

    /// The smallest size with a value of at most `limit`.
    pub(super) fn first_within(&self, limit: f64) -> Option<u64> {
        self.points.iter().find(|point| point.1 <= limit).map(|point| point.0)
    }

    /// The same with all values times a factor.
    pub(super) fn times(&self, factor: f64) -> Self {
        Self::of(self.points.iter().map(|&(blocks, value)| (blocks, value * factor)))
    }

    /// Figure 7: infinite below `needed`, so that no smaller size is ever chosen.
    pub(super) fn reserved(&self, needed: u64) -> Self {
        let below = (needed > 0).then_some((0, f64::INFINITY));
        let above = self.points.iter().copied().filter(|point| point.0 > needed);
        Self::of(below.into_iter().chain([(needed, self.at(needed))]).chain(above))
    }
}

/// What is known of a tenant that did something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vm<'a> {
    curves: &'a PolicyCurves,
    /// Seconds that it was observed.
    seconds: f64,
    /// Its requests per second.
    pub(super) rate: f64,
    /// Mean seconds of a request that the SSD serves alone: `lat_ssd`.
    pub(super) ssd: f64,
    /// Mean seconds of one that needs the disk: `lat_disk`.
    pub(super) disk: f64,
    /// Its requests per second that needed the disk: `IOPS_disk`.
    pub(super) disk_iops: f64,
    /// Mean seconds of its requests in the epoch that ended.
    pub(super) measured_latency: Option<f64>,
    /// Requests per second that were timed; none where none was.
    pub(super) measured_iops: Option<f64>,
    /// What happened since the last decision.
    since_decision: SinceDecision,
    /// Blocks that it holds of its quota.
    held: u64,
    /// Of its miss rates, wherever they are used.
    pub(super) correction: Correction,
}

impl<'a> Vm<'a> {
    /// None for a tenant that was idle, or whose curve was not observed.
    pub(super) fn of(tenant: &Tenant<'a>) -> Option<Self> {
        let findings = tenant.found().filter(|findings| findings.seconds > 0.0)?;
        let curves = findings.curves.iter().find(|curves| curves.policy() == CurvePolicy::Batched)?;
        if curves.counted().requests == 0 {
            return None;
        }
        let (ssd, disk) = measured_latencies(findings, curves);
        let Findings { seconds, measured, .. } = findings;
        let per_second = |count: u64| (count > 0).then(|| count as f64 / seconds);
        let on_disk = per_second(measured.read_misses.count + measured.backing_writes.count);
        let measured_latency = measured.mean_latency();
        let measured_iops = per_second(measured.requests());
        // No request went to the disk: by Little's law so many are outstanding, and all of them would wait there.
        let outstanding = measured_iops.unwrap_or(0.0) * measured_latency.unwrap_or(0.0);
        Some(Self {
            curves,
            seconds: *seconds,
            rate: findings.epoch.requests as f64 / seconds,
            ssd,
            disk,
            disk_iops: on_disk.unwrap_or_else(|| outstanding.max(1.0) / disk),
            measured_latency,
            measured_iops,
            since_decision: findings.under_decision(),
            held: held_blocks(tenant),
            correction: Correction::default(),
        })
    }

    /// The same with all miss rates corrected.
    pub(super) fn corrected(self, correction: Correction) -> Self {
        Self { correction, ..self }
    }

    /// The share of its requests that misses in a partition of `blocks`.
    fn miss_ratio(&self, blocks: u64) -> f64 {
        // An estimate of the hits may pass the requests by a little, and corrected misses may too.
        ((1.0 - self.curves.request_hit_ratio(blocks).min(1.0)) * self.correction.factor()).min(1.0)
    }

    /// What measurement says of the miss rate curve, while the partition went from holding `before` blocks to what it
    /// holds.
    ///
    /// While it was filled it missed more than the curve says of what it holds now, and no more than the curve says of what it held
    /// then: what lies between the two says nothing of the curve.
    pub(super) fn lesson(&self, before: u64) -> Option<Lesson> {
        let SinceDecision { measured, part, .. } = self.since_decision;
        let measured = 1.0 - measured.request_hit_ratio()?;
        let filled = self.miss_ratio(self.held);
        let filling = self.miss_ratio(before.min(self.held));
        let expected = measured.min(filling).max(filled);
        (measured < filled || measured > filling || filled == filling).then_some(Lesson {
            measured,
            expected,
            part,
        })
    }

    /// What is expected of a partition of `blocks`.
    pub(super) fn predict(&self, blocks: u64) -> Prediction {
        let mr = self.miss_ratio(blocks);
        Prediction {
            latency: latency(mr, self.ssd, self.disk),
            request_hit_ratio: 1.0 - mr,
            ssd_writes_per_second: self.curves.at(blocks).ssd_writes() as f64 / self.seconds,
        }
    }

    /// Its term of the sum that is minimised, over its size.
    pub(super) fn cost(&self, objective: Objective) -> Curve {
        match objective {
            Objective::TotalMisses => self.curve(|mr| self.rate * mr),
            Objective::MeanLatency => self.curve(|mr| self.rate * latency(mr, self.ssd, self.disk)),
            Objective::SumOfLatencies => self.latency(),
            Objective::Iops => self.seconds_per_request(),
        }
    }

    /// The latency curve.
    pub(super) fn latency(&self) -> Curve {
        self.curve(|mr| latency(mr, self.ssd, self.disk))
    }

    /// The curve of 1 / IOPS.
    pub(super) fn seconds_per_request(&self) -> Curve {
        self.curve(|mr| iops(mr, self.disk_iops).recip())
    }

    /// The smallest partition that keeps a promise; none where no size does.
    pub(super) fn needed(&self, reservation: Reservation) -> Option<u64> {
        match reservation {
            Reservation::Latency(seconds) => self.latency().first_within(seconds),
            Reservation::Iops(iops) => self.seconds_per_request().first_within(iops.recip()),
        }
    }

    /// What a partition of `blocks` gives of what was promised: seconds or IOPS.
    pub(super) fn gives(&self, reservation: Reservation, blocks: u64) -> f64 {
        let mr = self.miss_ratio(blocks);
        match reservation {
            Reservation::Latency(_) => latency(mr, self.ssd, self.disk),
            Reservation::Iops(_) => iops(mr, self.disk_iops),
        }
    }

    /// The most requests per second that can come with a partition of `blocks`, by what each takes there.
    pub(super) fn iops_max(&self, blocks: u64) -> f64 {
        let (Some(rate), Some(took)) = (self.measured_iops, self.measured_latency) else {
            return f64::INFINITY;
        };
        let answered = answered(latency(self.miss_ratio(blocks), self.ssd, self.disk), rate, took);
        // What it has already a larger partition gives as well, whatever the curve says.
        if blocks >= self.held { answered.max(rate) } else { answered }
    }

    /// The requests per second that came, where that may be all that it sends whatever it gets: it had less than one
    /// outstanding in the mean.
    pub(super) fn paced(&self) -> Option<f64> {
        self.measured_iops.filter(|rate| rate * self.measured_latency.unwrap_or(0.0) < PACED)
    }

    /// What was measured of what was promised.
    pub(super) fn measured(&self, reservation: Reservation) -> Option<f64> {
        match reservation {
            Reservation::Latency(_) => self.measured_latency,
            Reservation::Iops(_) => self.measured_iops,
        }
    }

    fn curve(&self, of_miss_ratio: impl Fn(f64) -> f64) -> Curve {
        let steps = self.curves.counted().request_hits.steps().iter().map(|step| step.0);
        let sizes = std::iter::once(0).chain(steps);
        Curve::of(sizes.map(|blocks| (blocks, of_miss_ratio(self.miss_ratio(blocks)))))
    }
}

/// What was measured of a miss rate curve, and what it says itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lesson {
    /// The share of the requests that missed.
    pub(super) measured: f64,
    /// By the curve.
    pub(super) expected: f64,
    /// In this part of an epoch.
    pub(super) part: f64,
}

/// Mean seconds of a request on the SSD and on the disk: measured in the epoch, or else what the tenant's reads and
/// writes are known to take there.
fn measured_latencies(findings: &Findings, curves: &PolicyCurves) -> (f64, f64) {
    let Measured { read_hits, read_misses, cached_writes, backing_writes, .. } = findings.measured;
    let counted = curves.counted();
    let reads = counted.read_requests as f64 / counted.requests as f64;
    let mixed = |read: f64, write: f64| reads * read + (1.0 - reads) * write;
    let Latencies { read_hit, read_miss, cached_write, backing_write, .. } = findings.latencies;
    let ssd = together(read_hits, cached_writes).unwrap_or_else(|| mixed(read_hit, cached_write));
    let disk = together(read_misses, backing_writes).unwrap_or_else(|| mixed(read_miss, backing_write));
    (ssd, disk)
}

fn together(a: Timed, b: Timed) -> Option<f64> {
    Timed { count: a.count + b.count, seconds: a.seconds + b.seconds }.mean()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::centaur::tests::{Workload, cliff, line};
    use crate::fixtures::tenant;

    #[test]
    fn equation_1_weighs_the_devices_by_the_miss_rate() {
        assert_eq!(latency(0.0, 0.25, 8.0), 0.25);
        assert_eq!(latency(1.0, 0.25, 8.0), 8.0);
        // Three quarters of 1 ms and a quarter of 5 ms.
        assert_eq!(latency(0.25, 1.0, 5.0), 2.0);
    }

    #[test]
    fn equation_2_adds_the_requests_of_the_ssd() {
        // With a quarter of misses the SSD serves three requests beside each of the disk's 100.
        assert_eq!(iops(0.25, 100.0), 400.0);
        assert_eq!(iops(1.0, 100.0), 100.0);
        assert_eq!(iops(0.0, 100.0), f64::INFINITY);
    }

    #[test]
    fn curves_go_by_what_was_measured() {
        // 40 requests in 10 s, half of them on each device: 1 ms and 9 ms.
        let findings = Workload { ssd: 0.001, disk: 0.009, missed: 20, ..line(40, 8) }.findings();
        let vm = Vm::of(&tenant("vm", Some(&findings))).expect("it did something");
        assert_eq!((vm.rate, vm.disk_iops, vm.measured_iops), (4.0, 2.0, Some(4.0)));
        assert!((vm.measured_latency.expect("it was timed") - 0.005).abs() < 1e-12);
        let near = |curve: Curve, expected: [f64; 3]| {
            for (blocks, expected) in [0, 2, 8].into_iter().zip(expected) {
                let value = curve.at(blocks);
                assert!((value - expected).abs() < 1e-12, "{blocks} blocks: {value}, not {expected}");
            }
        };
        // Miss rates of 1, 3/4 and 0.
        near(vm.cost(Objective::TotalMisses), [4.0, 3.0, 0.0]);
        near(vm.cost(Objective::SumOfLatencies), [0.009, 0.007, 0.001]);
        near(vm.cost(Objective::MeanLatency), [0.036, 0.028, 0.004]);
        near(vm.cost(Objective::Iops), [0.5, 0.375, 0.0]);
    }

    #[test]
    fn where_nothing_was_measured_the_known_latencies_stand_in() {
        let mut findings = cliff(100, 5).findings();
        findings.measured = Measured::default();
        findings.latencies = Latencies {
            read_hit: 0.001,
            read_miss: 0.010,
            cached_write: 0.003,
            backing_write: 0.030,
            write_back: 0.0,
        };
        let vm = Vm::of(&tenant("vm", Some(&findings))).expect("it did something");
        // All of its requests are reads. One of them at a time would wait for the disk.
        assert_eq!((vm.ssd, vm.disk), (0.001, 0.010));
        assert_eq!((vm.disk_iops, vm.measured_latency, vm.measured_iops), (100.0, None, None));
    }

    #[test]
    fn who_never_missed_would_have_all_its_outstanding_requests_wait() {
        // 100 requests in 10 s, of 0.4 s each: four at a time. The disk, at 0.5 s, would serve 8 per second.
        let findings = Workload { ssd: 0.4, disk: 0.5, missed: 0, ..cliff(100, 5) }.findings();
        let vm = Vm::of(&tenant("vm", Some(&findings))).expect("it did something");
        assert!((vm.disk_iops - 8.0).abs() < 1e-9, "{}", vm.disk_iops);
    }

    #[test]
    fn a_reservation_makes_all_smaller_sizes_infinite() {
        let findings = Workload { ssd: 1.0, disk: 9.0, ..line(80, 4) }.findings();
        let vm = Vm::of(&tenant("vm", Some(&findings))).expect("it did something");
        // 9, 7, 5, 3, 1 seconds for 0 to 4 blocks.
        assert_eq!(vm.needed(Reservation::Latency(5.5)), Some(2));
        assert_eq!(vm.needed(Reservation::Latency(0.9)), None);
        let modified = vm.latency().reserved(2);
        assert_eq!(modified.points(), [(0, f64::INFINITY), (2, 5.0), (3, 3.0), (4, 1.0)]);
        assert_eq!((modified.at(1), modified.at(2)), (f64::INFINITY, 5.0));
        assert_eq!(vm.latency().reserved(0), vm.latency());
        // Between two steps: the last step's value from the size that is needed on.
        assert_eq!(cliff_at(3).reserved(5).points(), [(0, f64::INFINITY), (5, 1.0)]);
    }

    fn cliff_at(blocks: u64) -> Curve {
        Curve::of([(0, 2.0), (blocks, 1.0)])
    }

    #[test]
    fn a_reservation_of_iops_is_a_miss_rate() {
        // All 80 requests of 10 s missed: 8 per second on the disk, so that 16 need half of the hits.
        let findings = Workload { missed: 80, ..line(80, 4) }.findings();
        let vm = Vm::of(&tenant("vm", Some(&findings))).expect("it did something");
        assert_eq!(vm.needed(Reservation::Iops(8.0)), Some(0));
        assert_eq!(vm.needed(Reservation::Iops(16.0)), Some(2));
        assert_eq!(vm.needed(Reservation::Iops(1e9)), Some(4));
        assert_eq!(vm.gives(Reservation::Iops(1.0), 2), 16.0);
    }
}
