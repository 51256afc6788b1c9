//! Zipf-distributed ranks: exactly, for any exponent, and as YCSB draws them.

use crate::Rng;

/// Exponents above this are refused: already here, all but one draw in 10^30 give the first rank.
const THETA_MAX: f64 = 100.0;

/// Ranks at most: beyond, a double does not hold every whole number.
const RANKS_MAX: u64 = 1 << 53;

/// Tries of a draw by rejection. Each is accepted with a probability above one half, so that the last one is never
/// reached but for one draw in 2^128.
const TRIES: u32 = 128;

/// Draws ranks from 0 (the most popular) to `n - 1`; rank `r` is drawn in proportion to `1 / (r + 1)^theta`.
#[derive(Clone, Debug)]
pub struct Zipf(Method);

#[derive(Clone, Debug)]
enum Method {
    Exact(Exact),
    Ycsb(Ycsb),
}

impl Zipf {
    /// The law itself, for 1 to 2^53 ranks and `theta` above 0 and at most 100 (1 and more included); none for others.
    ///
    /// Drawn by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
    /// discrete distributions", ACM TOMACS 6(3), 1996): no preparation and no table, whatever `n`.
    pub fn new(n: u64, theta: f64) -> Option<Self> {
        let possible = (1..=RANKS_MAX).contains(&n) && theta > 0.0 && theta <= THETA_MAX;
        possible.then(|| Self(Method::Exact(Exact::new(n, theta))))
    }

    /// As YCSB's `ZipfianGenerator`, for 1 to 2^53 ranks and `theta` between 0 and 1, both excluded; none for others.
    ///
    /// The method is from Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (1994): ranks 0 and 1
    /// are exact, the others follow a continuous approximation, which is off by up to 0.011 in the share of the most
    /// popular tenth. To compare with results of YCSB; [`Zipf::new`] for all else.
    pub fn ycsb(n: u64, theta: f64) -> Option<Self> {
        let possible = (1..=RANKS_MAX).contains(&n) && theta > 0.0 && theta < 1.0;
        possible.then(|| Self(Method::Ycsb(Ycsb::new(n, theta))))
    }

    /// Draw a rank.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.0 {
            Method::Exact(exact) => exact.draw(rng),
            Method::Ycsb(ycsb) => ycsb.draw(rng),
        }
    }
}

/// Rejection-inversion. The weights `k^-theta` (`k` from 1) lie under the curve `x^-theta`, whose integral can be
/// inverted: a point is drawn under the curve, rounded to the next `k`, and accepted where it lies under the weight.
#[derive(Clone, Debug)]
struct Exact {
    n: f64,
    theta: f64,
    /// Areas between which points are drawn: from the weight of `k = 1` before 1.5, to the half step after `n`.
    ends: (f64, f64),
    /// A point that lies no further than this below its `k` is under the weight for certain.
    sure: f64,
}

impl Exact {
    fn new(n: u64, theta: f64) -> Self {
        let mut law = Self { n: n as f64, theta, ends: (0.0, 0.0), sure: 0.0 };
        law.ends = (law.integral(1.5) - 1.0, law.integral(law.n + 0.5));
        law.sure = 2.0 - law.inverse(law.integral(2.5) - law.weight(2.0));
        law
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let (low, high) = self.ends;
        for _ in 0..TRIES {
            let area = high + rng.unit() * (low - high);
            let x = self.inverse(area);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.sure || area >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
        0
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The area under `x^-theta` from 1 to `x`: `(x^(1 - theta) - 1) / (1 - theta)`, written so that it holds its
    /// precision near `theta = 1`, where it is the logarithm.
    fn integral(&self, x: f64) -> f64 {
        let ln = x.ln();
        let t = (1.0 - self.theta) * ln;
        if t.abs() > 1e-8 { t.exp_m1() / t * ln } else { (1.0 + t / 2.0) * ln }
    }

    /// The `x` up to which the area is `area`.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding may pass the pole.
        let t = ((1.0 - self.theta) * area).max(-1.0);
        let ln = if t.abs() > 1e-8 { t.ln_1p() / t * area } else { (1.0 - t / 2.0) * area };
        ln.exp()
    }
}

/// YCSB's approximation.
#[derive(Clone, Debug)]
struct Ycsb {
    n: f64,
    zeta: f64,
    zeta_two: f64,
    alpha: f64,
    eta: f64,
}

impl Ycsb {
    fn new(n: u64, theta: f64) -> Self {
        let (n_f, zeta_n, zeta_two) = (n as f64, zeta(n, theta), zeta(2, theta));
        // Not a number for two ranks, and then not used: every draw is below zeta_two.
        let eta = (1.0 - (2.0 / n_f).powf(1.0 - theta)) / (1.0 - zeta_two / zeta_n);
        Self { n: n_f, zeta: zeta_n, zeta_two, alpha: 1.0 / (1.0 - theta), eta }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            0
        } else if uz < self.zeta_two {
            1
        } else {
            let rank = self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha);
            rank.min(self.n - 1.0) as u64
        }
    }
}

/// Weights that are added one by one; what is after them takes no more time.
const SUMMED: u64 = 1 << 16;

/// The sum of `rank^-theta` over the ranks from 1 to `n`, for `theta` below 1: beyond [`SUMMED`] by the formula of Euler
/// and Maclaurin, whose next term is below 10^-17.
fn zeta(n: u64, theta: f64) -> f64 {
    let weight = |rank: f64| rank.powf(-theta);
    let sum = (1..=n.min(SUMMED)).map(|rank| weight(rank as f64)).sum();
    if n <= SUMMED {
        return sum;
    }
    let (from, to) = (SUMMED as f64, n as f64);
    let power = 1.0 - theta;
    let area = from.powf(power) * (power * (to / from).ln()).exp_m1() / power;
    let ends = (weight(to) - weight(from)) / 2.0;
    let slopes = theta / 12.0 * (weight(from) / from - weight(to) / to);
    sum + area + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

    fn counts(zipf: &Zipf, n: usize, draws: u32, seed: u64) -> Vec<u32> {
        let mut rng = Rng::new(seed);
        let mut counts = vec![0u32; n];
        (0..draws).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
        counts
    }

    fn weights(n: usize, theta: f64) -> Vec<f64> {
        let weights: Vec<_> = (1..=n).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    /// Pearson's sum over the ranks, those that are expected less than ten times together; and its degrees of freedom.
    fn chi_square(counts: &[u32], shares: &[f64], draws: u32) -> (f64, f64) {
        let (mut sum, mut bins, mut rest) = (0.0, 0.0, (0.0, 0.0));
        let mut add = |seen: f64, expected: f64| {
            sum += (seen - expected).powi(2) / expected;
            bins += 1.0;
        };
        for (&count, share) in counts.iter().zip(shares) {
            let expected = share * f64::from(draws);
            match expected < 10.0 {
                true => rest = (rest.0 + f64::from(count), rest.1 + expected),
                false => add(f64::from(count), expected),
            }
        }
        if rest.1 >= 10.0 {
            add(rest.0, rest.1);
        }
        (sum, bins - 1.0)
    }

    #[test]
    fn exact_ranks_pass_a_chi_square_test() {
        let draws = 200_000;
        for theta in [0.1, 0.5, 0.99, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1.3, 3.0] {
            for n in [2, 10, 1000] {
                let zipf = Zipf::new(n as u64, theta).unwrap();
                let (sum, freedom) = chi_square(&counts(&zipf, n, draws, 3), &weights(n, theta), draws);
                // Four standard deviations above the mean of the chi-square law (six where it is far from normal).
                let bound = freedom + if freedom < 20.0 { 6.0 } else { 4.0 } * (2.0 * freedom).sqrt();
                assert!(sum < bound, "theta {theta}, {n} ranks: {sum} of at most {bound}");
            }
        }
    }

    #[test]
    fn the_chi_square_test_tells_a_wrong_exponent() {
        let draws = 200_000;
        let zipf = Zipf::new(1000, 1.02).unwrap();
        let (sum, freedom) = chi_square(&counts(&zipf, 1000, draws, 3), &weights(1000, 1.0), draws);
        assert!(sum > freedom + 4.0 * (2.0 * freedom).sqrt(), "{sum}");
    }

    #[test]
    fn ranks_of_ycsb_come_about_as_often_as_the_law_says() {
        let (n, draws) = (1000, 200_000);
        for theta in [0.5, 0.8, 0.99] {
            let counts = counts(&Zipf::ycsb(n as u64, theta).unwrap(), n, draws, 3);
            let share = |ranks: &[u32]| f64::from(ranks.iter().sum::<u32>()) / f64::from(draws);
            let law = weights(n, theta);
            assert!((share(&counts[..1]) - law[0]).abs() < 0.003, "theta {theta}");
            // The approximation itself is off by up to 0.011 here.
            assert!((share(&counts[..100]) - law[..100].iter().sum::<f64>()).abs() < 0.015, "theta {theta}");
        }
    }

    #[test]
    fn the_sum_of_many_weights_is_that_of_adding_them() {
        for theta in [0.01, 0.5, 0.99, 1.0 - 1e-12] {
            for n in [SUMMED, SUMMED + 1, 2 * SUMMED, 500_000] {
                let slow: f64 = (1..=n).rev().map(|rank| (rank as f64).powf(-theta)).sum();
                assert!((zeta(n, theta) / slow - 1.0).abs() < 1e-12, "{n} {theta}");
            }
        }
    }

    #[test]
    fn many_ranks_of_ycsb_take_no_more_time_and_stay_in_range() {
        let zipf = Zipf::ycsb(RANKS_MAX, 0.99).unwrap();
        let mut rng = Rng::new(5);
        let ranks: Vec<_> = (0..10_000).map(|_| zipf.draw(&mut rng)).collect();
        assert!(ranks.iter().all(|&rank| rank < RANKS_MAX));
        // The weight of the first is one part in (2^53^0.01 - 1) / 0.01 + Euler's constant: 44.97.
        let first = ranks.iter().filter(|&&rank| rank == 0).count();
        assert!((180..270).contains(&first), "{first}");
        assert!(Zipf::ycsb(RANKS_MAX + 1, 0.99).is_none());
    }

    #[test]
    fn many_ranks_keep_the_law() {
        // zeta(1) over 2^40 ranks is their logarithm and Euler's constant.
        let zeta = 40.0 * std::f64::consts::LN_2 + 0.577_215_664_9;
        let zipf = Zipf::new(1 << 40, 1.0).unwrap();
        let mut rng = Rng::new(5);
        let ranks: Vec<_> = (0..100_000).map(|_| zipf.draw(&mut rng)).collect();
        let below = |bound: u64| ranks.iter().filter(|&&rank| rank < bound).count() as f64 / 100_000.0;
        assert!((below(1) - 1.0 / zeta).abs() < 0.003);
        let million = 20.0 * std::f64::consts::LN_2 + 0.577_215_664_9;
        assert!((below(1 << 20) - million / zeta).abs() < 0.006);
    }

    #[test]
    fn few_ranks_and_bad_arguments() {
        let mut rng = Rng::new(1);
        for n in [1, 2, 3] {
            for zipf in [Zipf::ycsb(n, 0.9).unwrap(), Zipf::new(n, 0.9).unwrap(), Zipf::new(n, 1.0).unwrap()]
            {
                let largest = (0..1000).map(|_| zipf.draw(&mut rng)).max();
                assert_eq!(largest, Some(n - 1));
            }
        }
        for (n, theta) in [(0, 0.5), (5, 0.0), (5, -1.0), (5, f64::NAN), (5, 101.0), (5, f64::INFINITY)] {
            assert!(Zipf::new(n, theta).is_none(), "{n} {theta}");
            assert!(Zipf::ycsb(n, theta).is_none(), "{n} {theta}");
        }
        assert!(Zipf::ycsb(5, 1.0).is_none());
        assert!(Zipf::new(u64::MAX, 1.0).is_none());
    }

    proptest! {
        #[test]
        fn every_rank_is_in_range(n in 1u64..=RANKS_MAX, bits in 0u32..53, theta in 0.001f64..100.0, seed: u64) {
            let n = (n >> bits).max(1);
            let zipf = Zipf::new(n, theta).unwrap();
            let mut rng = Rng::new(seed);
            prop_assert!((0..50).all(|_| zipf.draw(&mut rng) < n));
        }
    }
}
