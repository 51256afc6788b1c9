//! Seeded workloads: phases of Zipf, uniform or sequential requests, one after the other.

use crate::{Request, RequestKind, Rng, Zipf};

/// Most places that a Zipf pattern chooses from: its preparation takes time in their number.
const ZIPF_PLACES_MAX: u64 = 1 << 30;

/// Where requests go. The volume is divided into places, each as long as a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Popular places and unpopular ones, scattered over the volume; `theta` between 0 and 1 as in YCSB (0.99 there).
    Zipf {
        /// The larger, the more requests go to the popular places.
        theta: f64,
    },
    /// Each place equally often.
    Uniform,
    /// One place after the other, from the first again after the last.
    Sequential,
}

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
        "a Zipf pattern takes a theta between 0 and 1 (excluded) and at most 2^30 places, not {theta} and {places}"
    )]
    Zipf {
        /// The parameter.
        theta: f64,
        /// Requests that fit side by side.
        places: u64,
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
    count: u64,
    left: u64,
}

/// How the next place is chosen.
#[derive(Clone, Debug)]
enum Places {
    /// A rank is drawn, and multiplied by a number that has no divisor in common with the number of places: every
    /// place has one rank, and neighbours in rank lie far apart.
    Zipf {
        zipf: Box<Zipf>,
        stride: u64,
    },
    Uniform,
    Sequential {
        next: u64,
    },
}

impl Phase {
    fn new(workload: &Workload) -> Result<Self, WorkloadError> {
        let Workload { first_byte, bytes, request_bytes, read_share, requests, .. } = *workload;
        let count = match request_bytes {
            0 => 0,
            len => bytes / u64::from(len),
        };
        if count == 0 {
            return Err(WorkloadError::Size { request_bytes, bytes });
        }
        if first_byte.checked_add(bytes).is_none_or(|end| end > 1 << 63) {
            return Err(WorkloadError::Range { first_byte, bytes });
        }
        if !(0.0..=1.0).contains(&read_share) {
            return Err(WorkloadError::ReadShare(read_share));
        }
        Ok(Self { workload: *workload, places: Places::new(workload.pattern, count)?, count, left: requests })
    }

    fn draw(&mut self, rng: &mut Rng) -> (RequestKind, u64) {
        self.left -= 1;
        let kind = match rng.unit() < self.workload.read_share {
            true => RequestKind::Read,
            false => RequestKind::Write,
        };
        let place = self.places.draw(self.count, rng);
        (kind, self.workload.first_byte + place * u64::from(self.workload.request_bytes))
    }
}

impl Places {
    fn new(pattern: Pattern, count: u64) -> Result<Self, WorkloadError> {
        match pattern {
            Pattern::Uniform => Ok(Self::Uniform),
            Pattern::Sequential => Ok(Self::Sequential { next: 0 }),
            Pattern::Zipf { theta } => {
                let zipf = (count <= ZIPF_PLACES_MAX).then(|| Zipf::new(count, theta)).flatten();
                let zipf = zipf.ok_or(WorkloadError::Zipf { theta, places: count })?;
                Ok(Self::Zipf { zipf: Box::new(zipf), stride: coprime_stride(count) })
            }
        }
    }

    fn draw(&mut self, count: u64, rng: &mut Rng) -> u64 {
        match self {
            // Both factors are at most 2^30.
            Self::Zipf { zipf, stride } => zipf.draw(rng) * *stride % count,
            Self::Uniform => rng.below(count),
            Self::Sequential { next } => {
                let place = *next;
                *next = (place + 1) % count;
                place
            }
        }
    }
}

/// A number near the golden section of `count` (at most 2^30) that has no divisor in common with it.
fn coprime_stride(count: u64) -> u64 {
    let golden = (count * 618 / 1000).max(1);
    // Ends at the latest at the next prime, or at count - 1 and then 1.
    (golden..count).find(|&stride| gcd(stride, count) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
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
    fn popular_places_are_scattered_and_all_places_are_reached() {
        let zipf = workload(Pattern::Zipf { theta: 0.5 }, 50_000);
        let requests = generate(&[zipf], 1);
        let places: BTreeSet<_> = requests.iter().map(|request| request.offset).collect();
        assert_eq!(places.len(), 256);
        let mut counts = [0u32; 256];
        requests.iter().for_each(|request| counts[((request.offset - MIB) / 4096) as usize] += 1);
        let mut order: Vec<_> = (0..256usize).collect();
        order.sort_by_key(|&place| std::cmp::Reverse(counts[place]));
        assert_eq!(order[0], 0, "rank 0 is place 0");
        assert!(order[0].abs_diff(order[1]) > 10, "the two most popular places are neighbours");
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
        assert!(matches!(error(workload(Pattern::Zipf { theta: 1.0 }, 1)), WorkloadError::Zipf { .. }));
        let large = Workload { first_byte: 0, bytes: 1 << 62, ..workload(Pattern::Zipf { theta: 0.5 }, 1) };
        assert!(matches!(error(large), WorkloadError::Zipf { .. }));
    }

    proptest! {
        #[test]
        fn requests_stay_in_their_part_and_a_seed_repeats(
            which in 0usize..3, places in 1u64..600, first_byte in 0u64..1 << 40, seed in any::<u64>(),
        ) {
            let pattern = [Pattern::Zipf { theta: 0.9 }, Pattern::Uniform, Pattern::Sequential][which];
            let workload = Workload { first_byte, bytes: places * 4096 + 7, ..workload(pattern, 200) };
            let requests = generate(&[workload], seed);
            for request in &requests {
                prop_assert!(request.offset >= first_byte);
                prop_assert!(request.offset + 4096 <= first_byte + places * 4096);
            }
            prop_assert_eq!(&requests, &generate(&[workload], seed));
            if places > 10 && which < 2 {
                prop_assert_ne!(&requests, &generate(&[workload], seed ^ 1));
            }
        }

        #[test]
        fn every_place_has_one_rank(count in 1u64..5000) {
            prop_assert_eq!(gcd(coprime_stride(count), count), 1);
        }
    }
}
