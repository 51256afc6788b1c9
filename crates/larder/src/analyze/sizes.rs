//! Which cache sizes are told.

use super::reach::Reach;

/// Sizes of a curve, spread evenly over its logarithm, but for those that must be there.
const CURVE: u32 = 180;

/// Rows of a table, but for those that must be there.
const ROWS: usize = 11;

/// Sizes for curves, in blocks and in rising order: all of a small footprint, else as many as a picture can show. Where a curve of which something is told steps, both sides of the step are there.
pub fn of_curve(footprint_blocks: u64, reach: &Reach) -> Vec<u64> {
    let most = footprint_blocks.max(reach.blocks()).max(1);
    let steps =
        reach.marks().into_iter().flat_map(|blocks| [blocks - 1, blocks]).filter(|&blocks| blocks > 0);
    let mut sizes: Vec<u64> =
        spread(most).chain(steps).chain(of_table(most, reach)).chain([1, most]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn spread(most: u64) -> impl Iterator<Item = u64> {
    let factor = (most as f64).powf(1.0 / f64::from(CURVE));
    (0..=CURVE).map(move |at| (factor.powf(f64::from(at)).round() as u64).clamp(1, most))
}

/// Sizes for a table, in blocks and in rising order: powers of two up to what can be used, and where what is told of begins.
pub fn of_table(footprint_blocks: u64, reach: &Reach) -> Vec<u64> {
    let most = if reach.blocks() > 0 { reach.blocks() } else { footprint_blocks.max(1) };
    let first = most.ilog2().saturating_sub(ROWS as u32 - 1);
    let powers = (first..=most.ilog2()).map(|power| 1 << power);
    let mut sizes: Vec<u64> = powers.chain(reach.marks()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_footprints_are_told_in_full() {
        assert_eq!(of_curve(0, &Reach::default()), [1]);
        assert_eq!(of_curve(10, &Reach::default()), (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn large_ones_are_told_where_it_matters() {
        let reach = Reach { knee: Some(5_000), useful: Some(700_000), all: Some(900_001) };
        let sizes = of_curve(1 << 20, &reach);
        assert!(sizes.len() <= 200, "{}", sizes.len());
        assert!(sizes.is_sorted_by(|a, b| a < b));
        for size in [1, 2, 4_999, 5_000, 699_999, 700_000, 900_001, 1 << 20] {
            assert!(sizes.contains(&size), "{size}");
        }
        assert!(of_table(1 << 20, &reach).iter().all(|size| sizes.contains(size)));
        // A sample may tell of distances beyond its footprint.
        assert_eq!(of_curve(1000, &reach).last(), Some(&900_001));
    }

    #[test]
    fn tables_are_short() {
        let reach = Reach { knee: Some(5_000), useful: Some(5_001), all: Some(9_000) };
        let sizes = of_table(1 << 20, &reach);
        assert_eq!(sizes, [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 5000, 5001, 8192, 9000]);
        assert_eq!(of_table(0, &Reach::default()), [1]);
        assert_eq!(of_table(5, &Reach::default()), [1, 2, 4]);
    }
}
