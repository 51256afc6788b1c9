//! Who may have how much of a reactor's memory for data, so that no tenant's clients can take what another's need.
//!
//! A part of the reactor's budget is kept back, since clients that ask for nothing need receive buffers and the engine
//! needs staging memory. The rest is divided among the tenants: what is within a tenant's share is always granted. A tenant
//! may exceed its share by what is left of a common burst, which holds the longest request: so one of those finds room
//! however many tenants share the reactor.

use super::limits::{MEMORY_KEPT_BACK, REQUEST_MEMORY_MAX};
use larder_engine::TenantId;

/// What each tenant's connections hold: requests in the engine, payloads being received, replies not sent yet.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Bytes that the tenants' shares add up to.
    divided: usize,
    share: usize,
    burst: usize,
    /// Of the burst, in use.
    burst_used: usize,
    tenants: Vec<Account>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    used: usize,
    /// A request of this tenant waits for memory.
    short: bool,
}

impl Memory {
    /// Divide a reactor's budget in bytes among its tenants.
    pub fn new(budget: usize, tenants: usize) -> Self {
        let for_data = budget - budget / MEMORY_KEPT_BACK;
        let burst = REQUEST_MEMORY_MAX.min(for_data);
        let divided = for_data - burst;
        let share = divided / tenants.max(1);
        Self { divided, share, burst, burst_used: 0, tenants: vec![Account::default(); tenants] }
    }

    /// So many tenants have been here by now, and so many are: they share what there is.
    pub fn have(&mut self, tenants: usize, here: usize) {
        let share = self.divided / here.max(1);
        if tenants > self.tenants.len() || share != self.share {
            self.tenants.resize(tenants.max(self.tenants.len()), Account::default());
            self.share = share;
            self.burst_used =
                self.tenants.iter().map(|account| account.used.saturating_sub(self.share)).sum();
        }
    }

    /// Bytes that the tenant may take now.
    #[inline]
    pub fn allowance(&self, tenant: TenantId) -> usize {
        let used = self.tenants.get(usize::from(tenant.0)).map_or(0, |account| account.used);
        let burst_left = self.burst - self.burst_used.min(self.burst);
        self.share.saturating_sub(used) + burst_left
    }

    /// A connection of the tenant that held `before` bytes now holds `after`.
    #[inline]
    pub fn update(&mut self, tenant: TenantId, before: usize, after: usize) {
        let Some(account) = self.tenants.get_mut(usize::from(tenant.0)) else { return };
        let used = (account.used + after).saturating_sub(before);
        self.burst_used = self.burst_used + used.saturating_sub(self.share)
            - account.used.saturating_sub(self.share).min(self.burst_used);
        account.used = used;
    }

    /// Forget who is short.
    pub fn nobody_is_short(&mut self) {
        self.tenants.iter_mut().for_each(|account| account.short = false);
    }

    /// A request of the tenant waits for memory.
    pub fn note_short(&mut self, tenant: TenantId) {
        if let Some(account) = self.tenants.get_mut(usize::from(tenant.0)) {
            account.short = true;
        }
    }

    /// True where a request waits for memory that this tenant holds: one of its own, or anybody's if it uses the burst.
    pub fn keeps_from_others(&self, tenant: TenantId) -> bool {
        let Some(account) = self.tenants.get(usize::from(tenant.0)) else { return false };
        account.short || account.used > self.share && self.tenants.iter().any(|account| account.short)
    }
}

/// Bytes of memory that a buffer for this much data takes.
#[inline]
pub(super) fn memory_of(data: usize) -> usize {
    data.next_power_of_two().max(larder_io::BUFFER_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const HOG: TenantId = TenantId(0);
    const GOOD: TenantId = TenantId(1);

    #[test]
    fn a_hog_leaves_the_others_their_share() {
        let mut memory = Memory::new(256 * MIB, 2);
        let mut taken = 0;
        while memory.allowance(HOG) >= MIB {
            memory.update(HOG, taken, taken + MIB);
            taken += MIB;
        }
        assert_eq!(taken, (80 + 32) * MIB, "its share and the burst");
        assert_eq!(memory.allowance(GOOD), 80 * MIB);
        memory.update(HOG, taken, 80 * MIB);
        assert_eq!((memory.allowance(HOG), memory.allowance(GOOD)), (32 * MIB, 112 * MIB));
    }

    #[test]
    fn the_longest_request_finds_room_among_many_tenants() {
        let memory = Memory::new(256 * MIB, 1000);
        assert!(memory.allowance(GOOD) >= REQUEST_MEMORY_MAX);
        let mut memory = memory;
        memory.update(HOG, 0, memory.allowance(HOG));
        assert!(memory.allowance(HOG) == 0 && memory.allowance(GOOD) >= 128 << 10);
    }

    #[test]
    fn shares_and_burst_never_exceed_the_budget() {
        for tenants in [0, 1, 3, 7, 500] {
            let memory = Memory::new(256 * MIB, tenants);
            assert!(memory.share * tenants + memory.burst <= 192 * MIB);
        }
    }

    #[test]
    fn only_who_holds_the_missing_memory_is_to_blame() {
        let mut memory = Memory::new(256 * MIB, 3);
        memory.update(HOG, 0, 80 * MIB);
        memory.update(GOOD, 0, MIB);
        memory.note_short(TenantId(2));
        assert!(memory.keeps_from_others(HOG) && !memory.keeps_from_others(GOOD));
        memory.nobody_is_short();
        memory.note_short(HOG);
        assert!(memory.keeps_from_others(HOG) && !memory.keeps_from_others(GOOD));
    }

    #[test]
    fn memory_comes_in_powers_of_two() {
        assert_eq!([0, 512, 4096, 4097, 32 << 20].map(memory_of), [4096, 4096, 4096, 8192, 32 << 20]);
    }
}
