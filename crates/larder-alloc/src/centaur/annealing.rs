//! Centaur's probabilistic search (section V-A, step 3): simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983) over the
//! partitionings of a cache.
//!
//! A tenant's cost changes at the steps of its curve and nowhere else, so that a partitioning is one step of each
//! tenant, and blocks that are free because they bring nobody to another step. A move takes one tenant up or down, by any
//! distance, and others give or take the blocks. A walk in blocks would have to cross the flat stretch before a cliff
//! (Figure 5) without seeing where it leads; this one lands on cliffs.
//!
//! Better partitionings are always taken, worse ones by a chance that falls with what they lose and with a
//! temperature that cools. The best one seen is kept. The seed is fixed: the same curves give the same partitioning.

use larder_policy::Rng;

/// A size of a tenant's partition, and what it costs there and up to the next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) blocks: u64,
    pub(super) cost: f64,
}

/// Moves tried for every tenant in one cooling.
const MOVES_PER_TENANT: usize = 700;
/// Moves tried in one cooling: what bounds the time where there are many tenants.
const MOVES_MAX: usize = 32_000;
/// Coolings. Each begins as hot as the first: what one was trapped in, another leaves.
const COOLINGS: u32 = 16;
/// The first temperature, as a part of what an average tenant has to gain.
const HOTTEST: f64 = 0.3;
/// The last temperature of a cooling, as a part of its first.
const COLDEST: f64 = 1e-3;
/// Tenants that may take what a move leaves free.
const FILLED_MAX: usize = 2;
const SEED: u64 = 1983;

/// For each tenant the size of one of its steps, in sum at most `cache_blocks`, with nearly the least total cost.
///
/// Each tenant's steps rise strictly in blocks and fall strictly in cost, and are at least one. The first steps fit
/// together. `start` gives sizes to begin with; they are left aside where they do not fit.
pub(super) fn anneal(steps: &[Vec<Step>], cache_blocks: u64, start: &[u64]) -> Vec<u64> {
    let mut search = Search::new(steps, cache_blocks, start);
    let range: f64 = steps.iter().map(|list| list[0].cost - list[list.len() - 1].cost).sum();
    let mut best = (search.cost(), search.at.clone());
    let moves = (steps.len() * MOVES_PER_TENANT).min(MOVES_MAX);
    let hottest = range / steps.len().max(1) as f64 * HOTTEST;
    for _ in 0..COOLINGS {
        search.cool(hottest, moves, &mut best);
    }
    search.jump(&best.1);
    (0..steps.len()).map(|tenant| search.step(tenant).blocks).collect()
}

/// A partitioning, and how to get to others.
struct Search<'a> {
    steps: &'a [Vec<Step>],
    /// Which step each tenant is at.
    at: Vec<usize>,
    /// Blocks beyond the steps.
    free: u64,
    /// Blocks beyond the first steps.
    room: u64,
    /// What the current move changed: tenants, and where they were.
    moved: Vec<(usize, usize)>,
    rng: Rng,
}

impl<'a> Search<'a> {
    fn new(steps: &'a [Vec<Step>], cache_blocks: u64, start: &[u64]) -> Self {
        let lowest: u64 = steps.iter().map(|list| list[0].blocks).sum();
        let free = cache_blocks - lowest;
        let mut search = Self {
            steps,
            at: vec![0; steps.len()],
            free,
            room: free,
            moved: Vec::new(),
            rng: Rng::new(SEED),
        };
        let at: Vec<_> = steps.iter().zip(start).map(|(list, &blocks)| last_within(list, blocks)).collect();
        let blocks: u64 = steps.iter().zip(&at).map(|(list, &at)| list[at].blocks).sum();
        if blocks <= cache_blocks {
            search.jump(&at);
        }
        search
    }

    fn step(&self, tenant: usize) -> Step {
        self.steps[tenant][self.at[tenant]]
    }

    fn cost(&self) -> f64 {
        (0..self.at.len()).map(|tenant| self.step(tenant).cost).sum()
    }

    /// One cooling, from the best partitioning on.
    fn cool(&mut self, hottest: f64, moves: usize, best: &mut (f64, Vec<usize>)) {
        self.jump(&best.1);
        let mut cost = best.0;
        let factor = COLDEST.powf(1.0 / moves.max(1) as f64);
        let mut temperature = hottest;
        for _ in 0..moves {
            self.moved.clear();
            let change = if self.rng.below(2) == 0 { self.pull() } else { self.push() };
            if change <= 0.0 || self.rng.unit() < (-change / temperature).exp() {
                cost += change;
            } else {
                self.undo();
            }
            if cost < best.0 {
                *best = (cost, self.at.clone());
            }
            temperature *= factor;
        }
        // Without the roundings of the sum.
        self.jump(&best.1);
        best.0 = self.cost();
    }

    /// Some tenant goes up; others go down as far as that takes. The change of the cost; none where all others
    /// together could not give enough.
    fn pull(&mut self) -> f64 {
        let tenant = self.any_tenant();
        let above = self.steps[tenant].len() - 1 - self.at[tenant];
        if above == 0 {
            return 0.0;
        }
        let to = self.at[tenant] + self.distance(above);
        let target = self.steps[tenant][to].blocks;
        if target - self.steps[tenant][0].blocks > self.room {
            return 0.0;
        }
        let wanted = target - self.step(tenant).blocks;
        let first = self.any_tenant();
        let mut change = 0.0;
        for donor in (first..self.at.len()).chain(0..first).filter(|&donor| donor != tenant) {
            if self.free >= wanted {
                break;
            }
            let kept = (self.step(donor).blocks + self.free).saturating_sub(wanted);
            change += self.set(donor, last_within(&self.steps[donor], kept));
        }
        change + self.set(tenant, to) + self.fill()
    }

    /// Some tenant goes down, and others as far up as that allows. The change of the cost.
    fn push(&mut self) -> f64 {
        let donor = self.any_tenant();
        if self.at[donor] == 0 {
            return 0.0;
        }
        let to = self.at[donor] - self.distance(self.at[donor]);
        self.set(donor, to) + self.fill()
    }

    /// Some tenants, from a random one on, go as far up as the free blocks allow. The change of the cost.
    fn fill(&mut self) -> f64 {
        let (first, tenants) = (self.any_tenant(), self.at.len());
        let mut change = 0.0;
        for tenant in (first..tenants).chain(0..first).take(FILLED_MAX) {
            let reach = last_within(&self.steps[tenant], self.step(tenant).blocks + self.free);
            if reach > self.at[tenant] {
                change += self.set(tenant, reach);
            }
        }
        change
    }

    /// Put a tenant at a step for which there is room; the change of the cost.
    fn set(&mut self, tenant: usize, to: usize) -> f64 {
        let before = self.step(tenant);
        self.moved.push((tenant, self.at[tenant]));
        self.at[tenant] = to;
        let now = self.step(tenant);
        self.free = self.free + before.blocks - now.blocks;
        now.cost - before.cost
    }

    /// Take the current move back.
    fn undo(&mut self) {
        while let Some((tenant, at)) = self.moved.pop() {
            self.free = self.free + self.step(tenant).blocks - self.steps[tenant][at].blocks;
            self.at[tenant] = at;
        }
    }

    /// Go to another partitioning that fits.
    fn jump(&mut self, to: &[usize]) {
        let blocks = |at: &[usize]| at.iter().zip(self.steps).map(|(&at, list)| list[at].blocks).sum::<u64>();
        self.free = self.free + blocks(&self.at) - blocks(to);
        self.at.copy_from_slice(to);
    }

    fn any_tenant(&mut self) -> usize {
        self.rng.below(self.at.len() as u64) as usize
    }

    /// From 1 to `most`, which is at least 1: far and near about equally often.
    fn distance(&mut self, most: usize) -> usize {
        let halvings = self.rng.below(u64::from(most.ilog2()) + 1);
        1 + self.rng.below((most >> halvings) as u64) as usize
    }
}

/// The last step of at most so many blocks; the first one where there is none.
fn last_within(list: &[Step], blocks: u64) -> usize {
    list.partition_point(|step| step.blocks <= blocks).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least total cost: the table of all budgets, tenant by tenant.
    fn optimum(steps: &[Vec<Step>], cache_blocks: u64) -> f64 {
        let mut least = vec![0.0; cache_blocks as usize + 1];
        for list in steps {
            let with = |budget: usize| {
                let fitting = list.iter().filter(|step| step.blocks as usize <= budget);
                fitting
                    .map(|step| least[budget - step.blocks as usize] + step.cost)
                    .fold(f64::INFINITY, f64::min)
            };
            least = (0..least.len()).map(with).collect();
        }
        least[cache_blocks as usize]
    }

    /// A curve of one of several shapes, over up to `size` blocks, that starts at `lowest`.
    fn curve(rng: &mut Rng, size: u64, lowest: u64) -> Vec<Step> {
        let height = 0.1 + rng.unit() * 10.0;
        let shape = rng.below(4);
        let power = 1.0 + rng.unit() * 6.0;
        let count = if shape == 0 { 2 } else { 2 + rng.below(size) };
        let mut sizes: Vec<u64> = (1..count).map(|_| lowest + 1 + rng.below(size)).collect();
        sizes.push(lowest);
        sizes.sort_unstable();
        sizes.dedup();
        let floor = if rng.below(2) == 0 { 0.0 } else { rng.unit() * 0.5 };
        let mut steps: Vec<Step> = Vec::new();
        let mut left = 1.0;
        for blocks in sizes {
            let part = (blocks - lowest) as f64 / size as f64;
            left = match shape {
                // A loop: nothing, then all.
                0 if part > 0.0 => 0.0,
                // Falling ever slower, and ever faster.
                1 => (1.0 - part).powf(power),
                2 => 1.0 - part.powf(power),
                // Stairs of any height.
                _ if part > 0.0 => left * (0.3 + 0.69 * rng.unit()),
                _ => 1.0,
            };
            let cost = height * (floor + (1.0 - floor) * left);
            if steps.last().is_none_or(|last| cost < last.cost) {
                steps.push(Step { blocks, cost });
            }
        }
        steps
    }

    fn cost(steps: &[Vec<Step>], sizes: &[u64]) -> f64 {
        steps.iter().zip(sizes).map(|(list, &blocks)| list[last_within(list, blocks)].cost).sum()
    }

    #[test]
    fn a_thousand_random_caches_are_within_a_hundredth_of_the_optimum() {
        let mut rng = Rng::new(42);
        for case in 0..1000 {
            let tenants = 1 + rng.below(6);
            let size = 5 + rng.below(60);
            let steps: Vec<_> = (0..tenants)
                .map(|_| {
                    let lowest = rng.below(5);
                    curve(&mut rng, size, lowest)
                })
                .collect();
            let lowest: u64 = steps.iter().map(|list| list[0].blocks).sum();
            let cache = lowest + rng.below(tenants * size);
            let start: Vec<_> = steps.iter().map(|_| rng.below(size)).collect();
            let sizes = anneal(&steps, cache, &start);
            assert!(sizes.iter().sum::<u64>() <= cache);
            assert!(sizes.iter().zip(&steps).all(|(&size, list)| size >= list[0].blocks));
            let (found, best) = (cost(&steps, &sizes), optimum(&steps, cache));
            assert!(found <= best * 1.01, "case {case}: {found} against {best} of {tenants} tenants");
        }
    }

    #[test]
    fn cliffs_of_which_one_fits_are_found_from_the_wrong_one() {
        let cliff = |blocks, cost| vec![Step { blocks: 0, cost }, Step { blocks, cost: 0.0 }];
        let steps = [cliff(100, 3.0), cliff(60, 2.0), cliff(50, 2.0)];
        // Equal parts serve nobody; the first alone leaves 4, the others together 3.
        for start in [[36, 37, 37], [100, 0, 0], [0, 60, 50], [0, 0, 0]] {
            assert_eq!(anneal(&steps, 110, &start), [0, 60, 50]);
        }
    }

    #[test]
    fn one_tenant_and_none() {
        let list = vec![Step { blocks: 2, cost: 1.0 }, Step { blocks: 9, cost: 0.5 }];
        assert_eq!(anneal(std::slice::from_ref(&list), 8, &[8]), [2]);
        assert_eq!(anneal(&[list], 9, &[2]), [9]);
        assert_eq!(anneal(&[], 9, &[]), [0; 0]);
    }
}
