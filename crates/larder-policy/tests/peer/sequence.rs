//! Sequences of accesses as the peer reads them: made after Zipf's law, and written in libCacheSim's `oracleGeneral`.

use larder_policy::Rng;
use std::io::{self, Write};

/// Accesses to `objects` blocks, block `r` as often as `1 / (r + 1)`: Zipf(1.0). The same seed gives the same ones.
pub fn zipf(accesses: usize, objects: usize, seed: u64) -> Vec<u64> {
    let weights = (1..=objects).scan(0.0, |sum, rank| {
        *sum += 1.0 / rank as f64;
        Some(*sum)
    });
    let up_to: Vec<f64> = weights.collect();
    let all = up_to.last().copied().unwrap_or(0.0);
    let mut rng = Rng::new(seed);
    let mut draw = || {
        let at = rng.unit() * all;
        up_to.partition_point(|&sum| sum <= at) as u64
    };
    (0..accesses).map(|_| draw()).collect()
}

/// For each access the number of the next one to the same block, or -1.
fn next_uses(keys: &[u64]) -> Vec<i64> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    // A stable sort: the accesses to a block stay in their order.
    order.sort_by_key(|&at| keys[at as usize]);
    let mut next = vec![-1; keys.len()];
    for pair in order.windows(2) {
        let (at, later) = (pair[0] as usize, pair[1] as usize);
        if keys[at] == keys[later] {
            next[at] = later as i64;
        }
    }
    next
}

/// Write the accesses as `oracleGeneral`, each of them one unit in size: records of 24 bytes, little-endian, of time (s, u32), object (u64), size (u32) and
/// the next access to the object (i64).
pub fn write_oracle_general(keys: &[u64], out: &mut impl Write) -> io::Result<()> {
    for (at, (&key, next)) in keys.iter().zip(next_uses(keys)).enumerate() {
        let mut record = [0; 24];
        record[..4].copy_from_slice(&((at / 1000) as u32).to_le_bytes());
        record[4..12].copy_from_slice(&key.to_le_bytes());
        record[12..16].copy_from_slice(&1u32.to_le_bytes());
        record[16..].copy_from_slice(&next.to_le_bytes());
        out.write_all(&record)?;
    }
    Ok(())
}
