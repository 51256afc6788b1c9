//! Zipf-distributed ranks, as YCSB draws them.

use crate::Rng;

/// Draws ranks from 0 (the most popular) to `n - 1`; rank `r` is drawn in proportion to `1 / (r + 1)^theta`.
///
/// The method is that of YCSB's `ZipfianGenerator`, from Gray et al., "Quickly Generating Billion-Record Synthetic
/// Databases" (1994): ranks 0 and 1 are exact, the others follow a continuous approximation.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    zeta: f64,
    zeta_two: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// For `n` ranks, at least one, and `theta` between 0 and 1, both excluded; none for others. Takes time in `n`.
    pub fn new(n: u64, theta: f64) -> Option<Self> {
        if n == 0 || !(theta > 0.0 && theta < 1.0) {
            return None;
        }
        let zeta = |n: u64| (1..=n).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
        let (n_f, zeta_n, zeta_two) = (n as f64, zeta(n), zeta(2));
        // Not a number for two ranks, and then not used: every draw is below zeta_two.
        let eta = (1.0 - (2.0 / n_f).powf(1.0 - theta)) / (1.0 - zeta_two / zeta_n);
        Some(Self { n: n_f, zeta: zeta_n, zeta_two, alpha: 1.0 / (1.0 - theta), eta })
    }

    /// Draw a rank.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_ranks_come_as_often_as_the_law_says() {
        let (n, draws) = (1000u64, 200_000);
        for theta in [0.5, 0.8, 0.99] {
            let zipf = Zipf::new(n, theta).unwrap();
            let mut rng = Rng::new(3);
            let mut counts = vec![0u32; n as usize];
            (0..draws).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
            let zeta: f64 = (1..=n).map(|rank| (rank as f64).powf(-theta)).sum();
            let share = |ranks: &[u32]| f64::from(ranks.iter().sum::<u32>()) / f64::from(draws);
            assert!((share(&counts[..1]) - 1.0 / zeta).abs() < 0.003, "theta {theta}");
            let hundred: f64 = (1..=100).map(|rank| f64::from(rank).powf(-theta)).sum();
            // The approximation itself is off by up to 0.011 here.
            assert!((share(&counts[..100]) - hundred / zeta).abs() < 0.015, "theta {theta}");
        }
    }

    #[test]
    fn few_ranks_and_bad_arguments() {
        let mut rng = Rng::new(1);
        for n in [1, 2, 3] {
            let zipf = Zipf::new(n, 0.9).unwrap();
            let largest = (0..1000).map(|_| zipf.draw(&mut rng)).max();
            assert_eq!(largest, Some(n - 1));
        }
        for (n, theta) in [(0, 0.5), (5, 0.0), (5, 1.0), (5, -1.0), (5, f64::NAN)] {
            assert!(Zipf::new(n, theta).is_none(), "{n} {theta}");
        }
    }
}
