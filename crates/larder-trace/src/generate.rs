//! Seeded workloads: phases of requests to the places that a pattern chooses, one phase after the other.

mod mix;
mod places;
mod spec;

pub use mix::{ClassMix, ClassShares, Distances, MixError, MixWorkload};
pub use places::Pattern;
pub use spec::{Generated, GeneratorSpec, SpecError, SpecProblem};

use crate::{Request, RequestKind, Rng};
use places::Places;

/// The end of the largest volume.
const VOLUME_BYTES_MAX: u64 = 1 << 63;

/// One phase of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Where requests go.
    pub pattern: Pattern,
    /// How many.
    pub requests: u64,
    /// First byte of the part of the volume that is used.
    pub first_byte: u64,
    /// Bytes of that part; what is less than a request at its end is left out.
    pub bytes: u64,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Share of reads, from 0 to 1; the others are writes.
    pub read_share: f64,
    /// Nanoseconds from one request to the next.
    pub interval_ns: u64,
}

/// Why a workload makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// Not a single request fits.
    #[error("requests of {request_bytes} bytes do not fit in {bytes} bytes")]
    Size {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes to use.
        bytes: u64,
    },
    /// The end of the used part is beyond what a 64-bit offset reaches.
    #[error("{bytes} bytes from byte {first_byte} on pass the end of any volume (2^63 bytes)")]
    Range {
        /// First byte to use.
        first_byte: u64,
        /// Bytes to use.
        bytes: u64,
    },
    /// Not a share.
    #[error("a share of {0} reads is not between 0 and 1")]
    ReadShare(f64),
    /// Not a parameter that the distribution can take.
    #[error(
        "a Zipf pattern takes a theta above 0, at most 100, and at most 2^32 places, not {theta} and {places}"
    )]
    Zipf {
        /// The parameter.
        theta: f64,
        /// Requests that fit side by side.
        places: u64,
    },
    /// Not a parameter that YCSB's approximation can take.
    #[error(
        "YCSB's Zipf takes a theta between 0 and 1 (excluded) and at most 2^32 places, not {theta} and {places}"
    )]
    Ycsb {
        /// The parameter.
        theta: f64,
        /// Requests that fit side by side.
        places: u64,
    },
    /// Not parameters that the distribution can take.
    #[error(
        "a Gaussian pattern takes a centre from 0 to 1, a deviation above 0, at most 1, and at most 2^53 places, \
         not {centre}, {deviation} and {places}"
    )]
    Gaussian {
        /// The centre, as a share.
        centre: f64,
        /// The deviation, as a share.
        deviation: f64,
        /// Requests that fit side by side.
        places: u64,
    },
    /// The loop is empty, or longer than its part.
    #[error("a loop over {places} places does not fit in a part of {count}; at least 1")]
    Loop {
        /// The length asked for.
        places: u64,
        /// Requests that fit side by side.
        count: u64,
    },
}

/// Generates the requests of one volume: phase after phase, the time running on.
#[derive(Clone, Debug)]
pub struct Generator {
    phases: std::vec::IntoIter<Phase>,
    current: Option<Phase>,
    rng: Rng,
    volume: u32,
    time_ns: u64,
}

impl Generator {
    /// The requests of `phases` for `volume` (it becomes [`Request::volume`]), starting at time 0.
    pub fn new(phases: &[Workload], volume: u32, seed: u64) -> Result<Self, WorkloadError> {
        let phases: Vec<_> = phases.iter().map(Phase::new).collect::<Result<_, _>>()?;
        let mut phases = phases.into_iter();
        Ok(Self { current: phases.next(), phases, rng: Rng::new(seed), volume, time_ns: 0 })
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        while self.current.as_ref()?.left == 0 {
            self.current = self.phases.next();
        }
        let phase = self.current.as_mut()?;
        let (kind, offset) = phase.draw(&mut self.rng);
        let time_ns = self.time_ns;
        self.time_ns = time_ns.saturating_add(phase.workload.interval_ns);
        Some(Request { time_ns, volume: self.volume, kind, offset, len: phase.workload.request_bytes })
    }
}

/// A phase under way.
#[derive(Clone, Debug)]
struct Phase {
    workload: Workload,
    places: Places,
    left: u64,
}

impl Phase {
    fn new(workload: &Workload) -> Result<Self, WorkloadError> {
        let Workload { pattern, first_byte, bytes, request_bytes, read_share, requests, .. } = *workload;
        let count = bytes.checked_div(request_bytes.into()).unwrap_or(0);
        if count == 0 {
            return Err(WorkloadError::Size { request_bytes, bytes });
        }
        if first_byte.checked_add(bytes).is_none_or(|end| end > VOLUME_BYTES_MAX) {
            return Err(WorkloadError::Range { first_byte, bytes });
        }
        if !(0.0..=1.0).contains(&read_share) {
            return Err(WorkloadError::ReadShare(read_share));
        }
        Ok(Self { workload: *workload, places: Places::new(pattern, count)?, left: requests })
    }

    fn draw(&mut self, rng: &mut Rng) -> (RequestKind, u64) {
        self.left -= 1;
        let kind = match rng.unit() < self.workload.read_share {
            true => RequestKind::Read,
            false => RequestKind::Write,
        };
        let place = self.places.draw(rng);
        (kind, self.workload.first_byte + place * u64::from(self.workload.request_bytes))
    }
}

/// A workload of two phases with opposite wants, each half of `requests` of 4 KiB, 1 ms apart: first Zipf (0.99) over a
/// quarter of the volume, nine reads in ten, which a cache serves well; then sequential over the whole volume, half of
/// it writes, to which a cache is of little use.
pub fn two_phase(
    volume_bytes: u64,
    requests: u64,
    volume: u32,
    seed: u64,
) -> Result<Generator, WorkloadError> {
    let popular = Workload {
        pattern: Pattern::Zipf { theta: 0.99 },
        requests: requests / 2,
        first_byte: 0,
        bytes: volume_bytes / 4,
        request_bytes: 4096,
        read_share: 0.9,
        interval_ns: 1_000_000,
    };
    let scan = Workload {
        pattern: Pattern::Sequential,
        requests: requests - requests / 2,
        bytes: volume_bytes,
        read_share: 0.5,
        ..popular
    };
    Generator::new(&[popular, scan], volume, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const MIB: u64 = 1 << 20;

    fn workload(pattern: Pattern, requests: u64) -> Workload {
        Workload {
            pattern,
            requests,
            first_byte: MIB,
            bytes: MIB,
            request_bytes: 4096,
            read_share: 0.7,
            interval_ns: 50,
        }
    }

    fn generate(phases: &[Workload], seed: u64) -> Vec<Request> {
        Generator::new(phases, 3, seed).unwrap().collect()
    }

    #[test]
    fn sequential_requests_follow_each_other_and_wrap() {
        let offsets: Vec<_> =
            generate(&[workload(Pattern::Sequential, 300)], 1).iter().map(|r| r.offset).collect();
        let expected: Vec<_> = (0..300).map(|at| MIB + at % 256 * 4096).collect();
        assert_eq!(offsets, expected);
    }

    #[test]
    fn a_read_share_is_kept() {
        let requests = generate(&[workload(Pattern::Uniform, 10_000)], 1);
        let reads = requests.iter().filter(|request| request.kind == RequestKind::Read).count();
        assert!((6800..7200).contains(&reads), "{reads}");
        let writes = Workload { read_share: 0.0, ..workload(Pattern::Uniform, 1000) };
        assert!(generate(&[writes], 1).iter().all(|request| request.kind == RequestKind::Write));
    }

    #[test]
    fn phases_follow_each_other_in_time() {
        let requests = generate(&[workload(Pattern::Uniform, 10), workload(Pattern::Sequential, 5)], 9);
        assert_eq!(requests.len(), 15);
        let times: Vec<_> = requests.iter().map(|request| request.time_ns).collect();
        assert_eq!(times, (0..15).map(|at| at * 50).collect::<Vec<_>>());
        assert!(requests.iter().all(|request| request.volume == 3));
        assert!(requests[10..].is_sorted_by_key(|request| request.offset));
    }

    #[test]
    fn the_two_phases_of_the_mix_differ() {
        let requests: Vec<_> = two_phase(64 * MIB, 2001, 0, 5).unwrap().collect();
        assert_eq!(requests.len(), 2001);
        assert!(requests[..1000].iter().all(|request| request.offset < 16 * MIB));
        let distinct =
            |part: &[Request]| part.iter().map(|request| request.offset).collect::<BTreeSet<_>>().len();
        assert!(distinct(&requests[..1000]) < 800);
        assert_eq!(distinct(&requests[1000..]), 1001);
    }

    #[test]
    fn senseless_workloads_are_refused() {
        let good = workload(Pattern::Uniform, 1);
        let error = |workload: Workload| Generator::new(&[workload], 0, 0).err().unwrap();
        assert!(matches!(error(Workload { request_bytes: 0, ..good }), WorkloadError::Size { .. }));
        assert!(matches!(error(Workload { bytes: 4095, ..good }), WorkloadError::Size { .. }));
        assert!(matches!(error(Workload { first_byte: u64::MAX, ..good }), WorkloadError::Range { .. }));
        assert!(matches!(error(Workload { read_share: 1.1, ..good }), WorkloadError::ReadShare(_)));
        assert!(matches!(error(Workload { read_share: f64::NAN, ..good }), WorkloadError::ReadShare(_)));
        assert!(matches!(error(workload(Pattern::Zipf { theta: 0.0 }, 1)), WorkloadError::Zipf { .. }));
        assert!(matches!(error(workload(Pattern::Ycsb { theta: 1.0 }, 1)), WorkloadError::Ycsb { .. }));
        let large = Workload { first_byte: 0, bytes: 1 << 62, ..workload(Pattern::Zipf { theta: 0.5 }, 1) };
        assert!(matches!(error(large), WorkloadError::Zipf { .. }));
    }

    fn patterns() -> [Pattern; 6] {
        [
            Pattern::Zipf { theta: 1.0 },
            Pattern::Ycsb { theta: 0.9 },
            Pattern::Uniform,
            Pattern::Gaussian { centre: 0.3, deviation: 0.2 },
            Pattern::Sequential,
            Pattern::Loop { places: 1 },
        ]
    }

    proptest! {
        #[test]
        fn requests_stay_in_their_part_and_a_seed_repeats(
            which in 0usize..6, places in 1u64..600, first_byte in 0u64..1 << 40, seed in any::<u64>(),
        ) {
            let workload = workload(patterns()[which], 200);
            let workload = Workload { first_byte, bytes: places * 4096 + 7, ..workload };
            let requests = generate(&[workload], seed);
            for request in &requests {
                prop_assert!(request.offset >= first_byte);
                prop_assert!(request.offset + 4096 <= first_byte + places * 4096);
            }
            prop_assert_eq!(&requests, &generate(&[workload], seed));
            // Reads and writes are drawn in every pattern.
            prop_assert_ne!(&requests, &generate(&[workload], seed ^ 1));
        }
    }
}
