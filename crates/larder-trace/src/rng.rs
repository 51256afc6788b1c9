//! A small random generator of our own: the same seed gives the same numbers, in every version.

/// xoshiro256** (Blackman and Vigna), seeded by splitmix64. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// From a seed; any will do.
    pub fn new(seed: u64) -> Self {
        let mut seed = seed;
        Self { state: std::array::from_fn(|_| splitmix64(&mut seed)) }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        b.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number from 0 to 1, without 1, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`, each equally often but for one part in 2^64 / `bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from the normal law of mean 0 and deviation 1 (Box and Muller, 1958): at most 8.6 away from 0.
    pub fn normal(&mut self) -> f64 {
        // From 2^-53 to 1, so that the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A number from the exponential law of mean 1: at most 36.8.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

fn splitmix64(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_numbers() {
        let mut seed = 1_234_567;
        let numbers: Vec<_> = (0..3).map(|_| splitmix64(&mut seed)).collect();
        assert_eq!(numbers, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn xoshiro_gives_its_published_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let numbers: Vec<_> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(numbers, [11520, 0, 1509978240, 1215971899390074240, 1216172134540287360]);
    }

    #[test]
    fn numbers_stay_in_range_and_spread() {
        let mut rng = Rng::new(7);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[rng.below(10) as usize] += 1);
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
        let mean = (0..10_000).map(|_| rng.unit()).sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        assert_eq!(rng.below(0), 0);
    }

    /// The largest distance between what the sorted `sample` gives and `law`, its distribution function (Kolmogorov).
    fn kolmogorov(mut sample: Vec<f64>, law: impl Fn(f64) -> f64) -> f64 {
        sample.sort_by(f64::total_cmp);
        let len = sample.len() as f64;
        let distance = |(at, &x): (usize, &f64)| (law(x) - at as f64 / len).abs();
        sample.iter().enumerate().map(distance).fold(0.0, f64::max)
    }

    #[test]
    fn exponential_and_normal_numbers_follow_their_laws() {
        let mut rng = Rng::new(11);
        let exponential = (0..20_000).map(|_| rng.exponential()).collect();
        // One sample in a thousand is further off than 1.95 / sqrt(20,000).
        assert!(kolmogorov(exponential, |x| 1.0 - (-x).exp()) < 0.0138);
        let normal: Vec<_> = (0..20_000).map(|_| rng.normal()).collect();
        // The distribution function by the trapezoidal rule, fine enough for four digits.
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let step = |x: f64, at: i32| {
            (density(x * f64::from(at) / 200.0) + density(x * f64::from(at + 1) / 200.0)) / 2.0
        };
        let law = |x: f64| 0.5 + (0..200).map(|at| step(x, at) * x / 200.0).sum::<f64>();
        assert!((law(1.96) - 0.975).abs() < 1e-4);
        assert!(kolmogorov(normal, law) < 0.0138);
    }
}
