//! How often blocks were accessed: enough to tell the hot ones.

use larder_policy::trial::Action;

/// Counts of reads and of writes by hash. Blocks whose hashes meet share a count, which says too much of the colder
/// one.
#[derive(Debug)]
pub(super) struct Popular {
    counts: Vec<[u32; 2]>,
}

impl Popular {
    /// For so many blocks.
    pub(super) fn new(blocks: u32) -> Self {
        Self { counts: vec![[0; 2]; (blocks as usize * 2).next_power_of_two()] }
    }

    /// A block is accessed; how often it was in this way, this time included.
    pub(super) fn count(&mut self, action: Action, hash: u32) -> u32 {
        let at = hash as usize & (self.counts.len() - 1);
        let count = &mut self.counts[at][usize::from(action == Action::Write)];
        *count = count.saturating_add(1);
        *count
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<[u32; 2]>()
    }
}
