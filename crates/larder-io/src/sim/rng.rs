//! The simulation's source of chance: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), the same on every machine and forever.

/// A seeded generator. Equal seeds give equal sequences.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; zero where `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the high product is below 2^-32 for the small bounds of a simulation.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability (0 to 1).
    pub fn chance(&mut self, probability: f64) -> bool {
        // 53 bits: as many as a double holds, so that 0 is never and 1 is always.
        ((self.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_published_sequence() {
        let mut rng = Rng::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(got, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn bounds_and_probabilities_hold_at_their_ends() {
        let mut rng = Rng::new(7);
        for _ in 0..1000 {
            assert!(rng.below(3) < 3);
            assert_eq!(rng.below(0), 0);
            assert!(rng.chance(1.0) && !rng.chance(0.0));
        }
    }
}
