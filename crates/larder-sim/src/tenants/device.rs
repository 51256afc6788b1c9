//! How long operations of a device take: a queue before so many servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

/// A kind of device. Its name is what [`FromStr`] reads, alone or with changes: `san`, `san:parallel=8,random-read=4ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSpec {
    /// The preset that it is, or is made from.
    preset: &'static str,
    /// Operations served at a time.
    pub parallel: u32,
    /// Seconds before a read somewhere else begins to flow.
    pub random_read: f64,
    /// Seconds before a write somewhere else begins to flow.
    pub random_write: f64,
    /// Seconds before a read flows that goes on where one of the last operations ended.
    pub sequential_read: f64,
    /// Seconds before such a write flows.
    pub sequential_write: f64,
    /// Bytes read per second, all operations together.
    pub read_bandwidth: f64,
    /// Bytes written per second.
    pub write_bandwidth: f64,
}

impl DeviceSpec {
    /// One hard disk of 10,000 revolutions per minute: 4 ms to seek and 3 ms for half a turn.
    pub const HDD_10K: Self = Self {
        preset: "hdd-10k",
        parallel: 1,
        random_read: 7e-3,
        random_write: 7e-3,
        sequential_read: 1e-4,
        sequential_write: 1e-4,
        read_bandwidth: 150e6,
        write_bandwidth: 150e6,
    };

    /// An array that serves 128 operations at a time, behind a network that carries 3.2 GB/s (Fibre Channel of 32 Gbit/s), with a write cache that outlives power cuts.
    pub const SAN: Self = Self {
        preset: "san",
        parallel: 128,
        random_read: 5e-3,
        random_write: 1.5e-3,
        sequential_read: 8e-4,
        sequential_write: 6e-4,
        read_bandwidth: 3.2e9,
        write_bandwidth: 3.2e9,
    };

    /// An SSD behind SATA: some 65,000 reads of 4 KiB per second.
    pub const SATA_SSD: Self = Self {
        preset: "sata-ssd",
        parallel: 8,
        random_read: 6e-5,
        random_write: 8e-5,
        sequential_read: 5e-5,
        sequential_write: 5e-5,
        read_bandwidth: 530e6,
        write_bandwidth: 450e6,
    };

    /// An SSD on NVMe: some 260,000 reads of 4 KiB per second.
    pub const NVME: Self = Self {
        preset: "nvme",
        parallel: 32,
        random_read: 8e-5,
        random_write: 2.5e-5,
        sequential_read: 6e-5,
        sequential_write: 2e-5,
        read_bandwidth: 3e9,
        write_bandwidth: 1.5e9,
    };

    /// The presets.
    pub const PRESETS: [Self; 4] = [Self::HDD_10K, Self::SAN, Self::SATA_SSD, Self::NVME];

    /// Seconds that an operation takes once it is its turn.
    pub fn seconds(&self, op: Op, sequential: bool, bytes: u64) -> f64 {
        let (before, bandwidth) = match (op, sequential) {
            (Op::Read, false) => (self.random_read, self.read_bandwidth),
            (Op::Read, true) => (self.sequential_read, self.read_bandwidth),
            (Op::Write, false) => (self.random_write, self.write_bandwidth),
            (Op::Write, true) => (self.sequential_write, self.write_bandwidth),
        };
        // All servers together have the bandwidth; each has its part.
        before + bytes as f64 * f64::from(self.parallel) / bandwidth
    }
}

/// Not a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownDevice {
    /// No preset has this name.
    #[error("{0:?} is no device; there are {names}", names = DeviceSpec::PRESETS.map(|spec| spec.preset).join(", "))]
    Preset(String),
    /// A change that means nothing.
    #[error(
        "{0:?} changes no device: write parallel=8, random-read=4ms, random-write=…, sequential-read=…, sequential-write=…, \
         read-bandwidth=100000000 or write-bandwidth=… (bytes per second)"
    )]
    Change(String),
}

impl FromStr for DeviceSpec {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let (name, changes) = text.split_once(':').unwrap_or((text, ""));
        let known = Self::PRESETS.into_iter().find(|spec| spec.preset == name);
        let mut spec = known.ok_or_else(|| UnknownDevice::Preset(name.to_owned()))?;
        for change in changes.split(',').filter(|change| !change.is_empty()) {
            spec.change(change).ok_or_else(|| UnknownDevice::Change(change.to_owned()))?;
        }
        Ok(spec)
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.preset)?;
        let same = Self::PRESETS.into_iter().find(|spec| spec.preset == self.preset).unwrap_or(*self);
        let mut mark = ":";
        let mut tell = |key: &str, value: String, changed: bool| {
            if changed {
                write!(f, "{mark}{key}={value}")?;
                mark = ",";
            }
            Ok(())
        };
        tell("parallel", self.parallel.to_string(), self.parallel != same.parallel)?;
        for (key, value, before) in [
            ("random-read", self.random_read, same.random_read),
            ("random-write", self.random_write, same.random_write),
            ("sequential-read", self.sequential_read, same.sequential_read),
            ("sequential-write", self.sequential_write, same.sequential_write),
        ] {
            tell(key, format!("{value}s"), value != before)?;
        }
        tell("read-bandwidth", self.read_bandwidth.to_string(), self.read_bandwidth != same.read_bandwidth)?;
        tell(
            "write-bandwidth",
            self.write_bandwidth.to_string(),
            self.write_bandwidth != same.write_bandwidth,
        )
    }
}

impl DeviceSpec {
    fn change(&mut self, change: &str) -> Option<()> {
        let (key, value) = change.split_once('=')?;
        match key {
            "parallel" => self.parallel = value.parse().ok().filter(|&parallel| parallel > 0)?,
            "random-read" => self.random_read = seconds(value)?,
            "random-write" => self.random_write = seconds(value)?,
            "sequential-read" => self.sequential_read = seconds(value)?,
            "sequential-write" => self.sequential_write = seconds(value)?,
            "read-bandwidth" => self.read_bandwidth = above_zero(value)?,
            "write-bandwidth" => self.write_bandwidth = above_zero(value)?,
            _ => return None,
        }
        Some(())
    }
}

/// `4ms`, `80us`, `0.002s`.
fn seconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

fn above_zero(text: &str) -> Option<f64> {
    text.parse().ok().filter(|&number: &f64| number.is_finite() && number > 0.0)
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// Bytes that one server takes of an operation: larger ones are spread over several disks, or chips.
pub(super) const STRIPE: u64 = 64 << 10;

/// Ends of operations that are remembered: streams that are told from random accesses.
const STREAMS: usize = 32;

/// A device at work. Times are nanoseconds.
#[derive(Debug)]
pub(super) struct Device {
    spec: DeviceSpec,
    /// When each server is free.
    free: BinaryHeap<Reverse<u64>>,
    streams: Streams,
    operations: u64,
    busy_ns: u64,
}

impl Device {
    pub(super) fn new(spec: DeviceSpec) -> Self {
        let free = (0..spec.parallel).map(|_| Reverse(0)).collect();
        Self { spec, free, streams: Streams::default(), operations: 0, busy_ns: 0 }
    }

    /// An operation comes at `now`: when it is done. Its place is that of its first block on the device, its length in blocks.
    pub(super) fn submit(&mut self, now: u64, op: Op, place: u64, blocks: u64, block_bytes: u64) -> u64 {
        let sequential = self.streams.go_on(place, blocks);
        self.operations += 1;
        let (mut left, mut done) = (blocks * block_bytes, now);
        loop {
            let bytes = left.min(STRIPE);
            done = done.max(self.stripe(now, self.spec.seconds(op, sequential, bytes)));
            left -= bytes;
            if left == 0 {
                return done;
            }
        }
    }

    /// One server is at work for so many seconds.
    fn stripe(&mut self, now: u64, seconds: f64) -> u64 {
        let service = (seconds * 1e9) as u64;
        let free = self.free.pop().map_or(0, |Reverse(free)| free);
        let done = now.max(free) + service;
        self.free.push(Reverse(done));
        self.busy_ns += service;
        done
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    /// The share of its capacity that was used until `now`.
    pub(super) fn busy(&self, now: u64) -> f64 {
        let capacity = now.max(1) as f64 * f64::from(self.spec.parallel);
        (self.busy_ns as f64 / capacity).min(1.0)
    }
}

/// Where the last operations ended.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    ends: [u64; STREAMS],
    next: usize,
}

impl Default for Streams {
    fn default() -> Self {
        Self { ends: [u64::MAX; STREAMS], next: 0 }
    }
}

impl Streams {
    /// An operation on so many blocks from `place` on: does it go on where one of the last ones ended?
    pub(super) fn go_on(&mut self, place: u64, blocks: u64) -> bool {
        let end = place.wrapping_add(blocks);
        match self.ends.iter().position(|&known| known == place) {
            Some(stream) => {
                self.ends[stream] = end;
                true
            }
            None => {
                self.ends[self.next] = end;
                self.next = (self.next + 1) % STREAMS;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: DeviceSpec = DeviceSpec {
        parallel: 2,
        random_read: 1e-3,
        random_write: 2e-3,
        sequential_read: 1e-4,
        sequential_write: 1e-4,
        read_bandwidth: 8192e3,
        write_bandwidth: 8192e3,
        ..DeviceSpec::SAN
    };

    #[test]
    fn operations_queue_for_servers() {
        let mut device = Device::new(SLOW);
        // A block of 4096 bytes takes a server with half of the bandwidth 1 ms.
        let mut submit = |place| device.submit(0, Op::Read, place, 1, 4096) / 1000;
        assert_eq!([submit(10), submit(20), submit(30)], [2000, 2000, 4000]);
        assert_eq!(device.submit(9_000_000, Op::Write, 50, 1, 4096), 12_000_000);
        assert_eq!(device.operations(), 4);
        assert!((device.busy(12_000_000) - 9.0 / 24.0).abs() < 1e-9);
    }

    #[test]
    fn streams_are_told_from_random_accesses() {
        let mut device = Device::new(SLOW);
        let mut time = |place, blocks| {
            let now = 1 << 40;
            let mut fresh = Device::new(SLOW);
            std::mem::swap(&mut fresh.streams, &mut device.streams);
            let took = fresh.submit(now, Op::Read, place, blocks, 4096) - now;
            std::mem::swap(&mut fresh.streams, &mut device.streams);
            took / 1000
        };
        assert_eq!(
            [time(0, 2), time(500, 1), time(2, 1), time(501, 1), time(3, 1)],
            [3000, 2000, 1100, 1100, 1100]
        );
        assert_eq!(time(2, 1), 2000);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "hdd-10k",
            "san",
            "sata-ssd",
            "nvme",
            "san:parallel=8,random-read=0.004s",
            "hdd-10k:read-bandwidth=9",
        ] {
            assert_eq!(text.parse::<DeviceSpec>().map(|spec| spec.to_string()), Ok(text.to_owned()));
        }
        let spec: DeviceSpec = "san:random-read=4ms,sequential-write=80us".parse().expect("known");
        assert_eq!((spec.random_read, spec.parallel), (0.004, 128));
        assert!((spec.sequential_write - 8e-5).abs() < 1e-12);
        for text in [
            "",
            "disk",
            "san:parallel=0",
            "san:seek=4ms",
            "san:random-read=4",
            "san:random-read=-1ms",
            "san:parallel",
        ] {
            assert!(text.parse::<DeviceSpec>().is_err(), "{text}");
        }
    }
}
