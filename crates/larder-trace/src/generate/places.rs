//! Where the requests of a phase go: popular places, places around a centre, one after the other.

use crate::{Rng, WorkloadError, Zipf};

/// Most places that a Zipf pattern scatters its ranks over: the product of a rank and the stride fits in 64 bits.
const SCATTERED_MAX: u64 = 1 << 32;

/// Most places that a Gaussian pattern chooses from: beyond, a double does not hold every whole number.
const GAUSSIAN_PLACES_MAX: u64 = 1 << 53;

/// Tries of a Gaussian draw that may fall outside of the range. With the widest deviation around its edge, one in
/// three falls inside: the last is not reached but for one draw in 10^22.
const GAUSSIAN_TRIES: u32 = 128;

/// Where requests go. The used part of the volume is divided into places, each as long as a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Popular places and unpopular ones, scattered over the part: the place of rank `r` (from 1) is drawn in
    /// proportion to `1 / r^theta`, exactly ([`Zipf::new`]). At most 2^32 places.
    Zipf {
        /// The larger, the more requests go to the popular places; above 0, at most 100.
        theta: f64,
    },
    /// The same with the approximation that YCSB draws ([`Zipf::ycsb`]): to compare with results of YCSB, which takes a
    /// `theta` of 0.99. Not with its hash: YCSB's scrambled generator lets places collide, and misses some. At most
    /// 2^32 places.
    Ycsb {
        /// Between 0 and 1, both excluded.
        theta: f64,
    },
    /// Each place equally often.
    Uniform,
    /// Places around a centre, by the normal law: the workloads of Rao, "Differentiated SSD Caching for Container-based
    /// Hosting" (IIT Bombay, 2017), section 4.2, which reads a file of 10 GB with deviations of 50,000 to 500,000
    /// blocks (shares of 0.02 to 0.19). What falls outside of the part is drawn again. At most 2^53 places.
    Gaussian {
        /// The most popular place, as a share of the part: from 0 (its first) to 1 (its last).
        centre: f64,
        /// The standard deviation, as a share of the part: above 0, at most 1.
        deviation: f64,
    },
    /// A scan: one place after the other, to the end of the part, and from its first again.
    Sequential,
    /// A scan of the first places only, again and again: every reuse distance is `places - 1`. A cache that holds fewer
    /// blocks and replaces the least recently used has no hit.
    Loop {
        /// How many places; at least one, at most those of the part.
        places: u64,
    },
}

/// How the next place is chosen.
#[derive(Clone, Debug)]
pub(super) enum Places {
    /// A rank is drawn, and multiplied by a number that has no divisor in common with the number of places: every
    /// place has one rank, and neighbours in rank lie far apart.
    Zipf {
        zipf: Box<Zipf>,
        stride: u64,
        count: u64,
    },
    Uniform {
        count: u64,
    },
    Gaussian {
        centre: f64,
        deviation: f64,
        count: u64,
    },
    Cycle {
        next: u64,
        count: u64,
    },
}

impl Places {
    /// For a part of `count` places.
    pub(super) fn new(pattern: Pattern, count: u64) -> Result<Self, WorkloadError> {
        match pattern {
            Pattern::Uniform => Ok(Self::Uniform { count }),
            Pattern::Sequential => Ok(Self::Cycle { next: 0, count }),
            Pattern::Loop { places } if (1..=count).contains(&places) => {
                Ok(Self::Cycle { next: 0, count: places })
            }
            Pattern::Loop { places } => Err(WorkloadError::Loop { places, count }),
            Pattern::Gaussian { centre, deviation } => Self::gaussian(centre, deviation, count),
            Pattern::Zipf { theta } => {
                let zipf = (count <= SCATTERED_MAX).then(|| Zipf::new(count, theta)).flatten();
                Ok(Self::scattered(zipf.ok_or(WorkloadError::Zipf { theta, places: count })?, count))
            }
            Pattern::Ycsb { theta } => {
                let zipf = (count <= SCATTERED_MAX).then(|| Zipf::ycsb(count, theta)).flatten();
                Ok(Self::scattered(zipf.ok_or(WorkloadError::Ycsb { theta, places: count })?, count))
            }
        }
    }

    fn scattered(zipf: Zipf, count: u64) -> Self {
        Self::Zipf { zipf: Box::new(zipf), stride: coprime_stride(count), count }
    }

    fn gaussian(centre: f64, deviation: f64, count: u64) -> Result<Self, WorkloadError> {
        let possible = (0.0..=1.0).contains(&centre) && deviation > 0.0 && deviation <= 1.0;
        match possible && count <= GAUSSIAN_PLACES_MAX {
            true => Ok(Self::Gaussian { centre, deviation, count }),
            false => Err(WorkloadError::Gaussian { centre, deviation, places: count }),
        }
    }

    /// The next place, from 0.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u64 {
        match self {
            // Both factors are at most 2^32, the rank below it.
            Self::Zipf { zipf, stride, count } => zipf.draw(rng) * *stride % *count,
            Self::Uniform { count } => rng.below(*count),
            Self::Gaussian { centre, deviation, count } => draw_normal(*centre, *deviation, *count, rng),
            Self::Cycle { next, count } => {
                let place = *next;
                *next = (place + 1) % *count;
                place
            }
        }
    }
}

fn draw_normal(centre: f64, deviation: f64, count: u64, rng: &mut Rng) -> u64 {
    let inside = |share: &f64| (0.0..1.0).contains(share);
    let share = (0..GAUSSIAN_TRIES).map(|_| centre + deviation * rng.normal()).find(inside);
    let place = share.unwrap_or(centre) * count as f64;
    (place as u64).min(count - 1)
}

/// A number near the golden section of `count` (at most 2^32) that has no divisor in common with it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

    fn counts(pattern: Pattern, count: u64, draws: u32) -> Vec<u32> {
        let mut places = Places::new(pattern, count).unwrap();
        let mut rng = Rng::new(1);
        let mut counts = vec![0; count as usize];
        (0..draws).for_each(|_| counts[places.draw(&mut rng) as usize] += 1);
        counts
    }

    #[test]
    fn popular_places_are_scattered_and_all_places_are_reached() {
        for pattern in
            [Pattern::Zipf { theta: 0.5 }, Pattern::Zipf { theta: 1.0 }, Pattern::Ycsb { theta: 0.5 }]
        {
            let counts = counts(pattern, 256, 50_000);
            assert!(counts.iter().all(|&count| count > 0), "{pattern:?}");
            let mut order: Vec<_> = (0..256usize).collect();
            order.sort_by_key(|&place| std::cmp::Reverse(counts[place]));
            assert_eq!(order[0], 0, "rank 0 is place 0");
            assert!(order[0].abs_diff(order[1]) > 10, "the two most popular places are neighbours");
        }
    }

    #[test]
    fn uniform_places_pass_a_chi_square_test() {
        let sum: f64 = counts(Pattern::Uniform, 1000, 100_000)
            .iter()
            .map(|&count| (f64::from(count) - 100.0).powi(2) / 100.0)
            .sum();
        // 999 degrees of freedom, four standard deviations to either side.
        assert!((820.0..1178.0).contains(&sum), "{sum}");
    }

    /// Mean and deviation of the places, as shares of 1,000.
    fn moments(centre: f64, deviation: f64) -> (f64, f64) {
        let counts = counts(Pattern::Gaussian { centre, deviation }, 1000, 100_000);
        let mean_of = |of: &dyn Fn(f64) -> f64| {
            let each = counts.iter().enumerate();
            each.map(|(at, &n)| of((at as f64 + 0.5) / 1000.0) * f64::from(n)).sum::<f64>() / 100_000.0
        };
        let mean = mean_of(&|x| x);
        (mean, mean_of(&|x| (x - mean).powi(2)).sqrt())
    }

    #[test]
    fn gaussian_places_have_their_centre_and_deviation() {
        let (mean, deviation) = moments(0.4, 0.05);
        assert!((mean - 0.4).abs() < 0.001 && (deviation - 0.05).abs() < 0.001, "{mean} {deviation}");
        // Half of the law, folded by nobody: mean sqrt(2 / pi) deviations, deviation sqrt(1 - 2 / pi).
        let (mean, deviation) = moments(0.0, 0.1);
        assert!((mean - 0.0798).abs() < 0.001 && (deviation - 0.0603).abs() < 0.001, "{mean} {deviation}");
        let (mean, _) = moments(1.0, 0.1);
        assert!((mean - 0.9202).abs() < 0.001, "{mean}");
    }

    #[test]
    fn gaussian_places_within_one_two_and_three_deviations() {
        let counts = counts(Pattern::Gaussian { centre: 0.5, deviation: 0.1 }, 1000, 100_000);
        let within =
            |places: usize| counts[500 - places..500 + places].iter().sum::<u32>() as f64 / 100_000.0;
        assert!((within(100) - 0.6827).abs() < 0.006, "{}", within(100));
        assert!((within(200) - 0.9545).abs() < 0.003, "{}", within(200));
        assert!((within(300) - 0.9973).abs() < 0.001, "{}", within(300));
    }

    #[test]
    fn a_loop_stays_within_its_places() {
        let mut places = Places::new(Pattern::Loop { places: 3 }, 10).unwrap();
        let mut rng = Rng::new(1);
        let drawn: Vec<_> = (0..7).map(|_| places.draw(&mut rng)).collect();
        assert_eq!(drawn, [0, 1, 2, 0, 1, 2, 0]);
        for places in [0, 11] {
            let error = Places::new(Pattern::Loop { places }, 10).err();
            assert_eq!(error, Some(WorkloadError::Loop { places, count: 10 }));
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let refused = |pattern, count| Places::new(pattern, count).is_err();
        for theta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refused(Pattern::Zipf { theta }, 5) && refused(Pattern::Ycsb { theta }, 5));
        }
        assert!(refused(Pattern::Ycsb { theta: 1.0 }, 5));
        assert!(refused(Pattern::Zipf { theta: 1.0 }, SCATTERED_MAX + 1));
        assert!(refused(Pattern::Ycsb { theta: 0.5 }, SCATTERED_MAX + 1));
        for (centre, deviation) in
            [(-0.1, 0.1), (1.1, 0.1), (f64::NAN, 0.1), (0.5, 0.0), (0.5, 1.5), (0.5, f64::NAN)]
        {
            assert!(refused(Pattern::Gaussian { centre, deviation }, 5), "{centre} {deviation}");
        }
        assert!(refused(Pattern::Gaussian { centre: 0.5, deviation: 0.1 }, 1 << 54));
    }

    proptest! {
        #[test]
        fn every_place_has_one_rank(count in 1u64..5000) {
            prop_assert_eq!(gcd(coprime_stride(count), count), 1);
        }

        #[test]
        fn places_are_in_range_up_to_the_largest_part(
            bits in 0u32..33, centre in 0.0f64..=1.0, deviation in 1e-9f64..=1.0, theta in 0.01f64..3.0, seed: u64,
        ) {
            let count = SCATTERED_MAX >> bits;
            for pattern in [Pattern::Gaussian { centre, deviation }, Pattern::Zipf { theta }, Pattern::Uniform] {
                let mut places = Places::new(pattern, count).unwrap();
                let mut rng = Rng::new(seed);
                prop_assert!((0..50).all(|_| places.draw(&mut rng) < count));
            }
        }
    }
}
