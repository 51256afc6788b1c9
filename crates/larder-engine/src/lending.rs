//! Partitions that lend each other what they do not use.
//!
//! While they lend, a tenant grows as long as there are free blocks, whatever its quota. When there are none, one that is below its quota takes blocks from the one that is
//! most above its own. One that is not takes from whose blocks lie idle ([`larder_policy::residents`]), as those of one that has paused do. All others make do with what they have. No tenant ever holds more than is the most for it ([`Engine::set_bounds`]), free blocks or not. That goes for newer data of a dirty block, too, which takes a slot of its own.
//! So nothing leaves the cache because of a decision alone, but only when somebody wants its place.
//! Where tenants share a partition, none of this is so. An engine that lends takes the whole free pool: no other may depend on it.

use crate::partitions::PartitionId;
use crate::store::BlockKey;
use crate::{Engine, Sharing, TenantId};
use larder_policy::borrows::{BATCH, Borrows};
use larder_policy::residents::{Residents, lends};

/// Free blocks that policies of one tenant are told of at most, before they are told again.
const AHEAD: u32 = 1024;

/// Lenders that are asked for a block, if those before had none to give.
const ASKED: usize = 4;

/// For so long who had no block to give is asked after all others.
const BARRED_NS: u64 = 100_000_000;

impl Engine {
    /// Whether partitions lend each other what they do not use. Where they no longer do, what is above a quota leaves in [`Engine::trim`].
    pub fn set_lending(&mut self, lending: bool) {
        if std::mem::replace(&mut self.lending, lending) != lending {
            self.tell_touched();
            self.forget_idle();
            for at in self.partitions.own_ids() {
                let held = self.partitions[at].occupied();
                self.partitions[at].set_capacity(held);
                self.fit_capacity(at);
            }
            self.trim_due = true;
        }
    }

    /// True if partitions lend.
    #[inline]
    pub fn is_lending(&self) -> bool {
        self.lending && self.sharing == Sharing::Off
    }

    /// A partition has another quota. That is what its policies know of its size, but where it lends: there they know what it can hold for the time being
    /// ([`Self::fit_to_free`]).
    pub(crate) fn fit_capacity(&mut self, at: PartitionId) {
        let lending = self.is_lending();
        let partition = &mut self.partitions[at];
        partition.set_capacity(if lending {
            partition.capacity.min(partition.most())
        } else {
            partition.quota
        });
    }

    /// However many blocks are free, a tenant holds no more than `most`, or its quota where that is more, while partitions lend. What is above it leaves in [`Engine::trim`]. Up to its quota it lends nothing of the
    /// `least` blocks, however long they lie idle.
    pub fn set_bounds(&mut self, tenant: TenantId, least: u32, most: u32) {
        let own = PartitionId::of(tenant);
        self.partitions[own].least = least;
        if std::mem::replace(&mut self.partitions[own].most, most) != most && self.is_lending() {
            self.tell_touched();
            let partition = &mut self.partitions[own];
            partition.set_capacity(partition.capacity.min(partition.most()));
            self.trim_due = true;
        }
    }

    /// Before another block enters, and before its policy hears of it: where nothing is free and its partition is below its quota, another gives some up; one that is not may have one
    /// of whose blocks lie idle, but for a block that is to leave first. True if the block has not to take the place of another of its own.
    pub(crate) fn borrow_room(&mut self, own: PartitionId, leaves_first: bool) -> bool {
        let can_grow = self.can_grow(own);
        let from = if can_grow { None } else { self.lendable(own) };
        let lent = match from {
            Some((from, above)) => {
                // Where blocks are free but no slot is, those that wait until the journal says that they are free are on their way already.
                let coming = match (self.free_blocks(), &self.durable) {
                    (1.., Some(durable)) => u32::try_from(durable.freeing()).unwrap_or(u32::MAX),
                    _ => 0,
                };
                self.lend(from, above.min(BATCH.saturating_sub(coming))) > 0 || coming > 0
            }
            None => !can_grow && !leaves_first && self.take_unused(own),
        };
        self.fit_to_free(own);
        lent
    }

    /// A partition can hold what it does and what is free for it.
    fn fit_to_free(&mut self, at: PartitionId) {
        let free = self.free_blocks();
        let partition = &mut self.partitions[at];
        let (held, capacity) = (partition.occupied(), partition.capacity);
        let free = free.min(partition.most().saturating_sub(held));
        let most = held.saturating_add(free);
        if capacity > most || (capacity <= held && capacity < most) {
            partition.set_capacity(held + free.min(AHEAD));
        }
    }

    /// Nothing more fits into a partition without anything leaving the cache.
    pub(crate) fn is_full(&mut self, at: PartitionId) -> bool {
        let spare = self.spills(at) && !self.partitions[PartitionId::COMMON].is_full();
        self.partitions[at].is_full() && !spare && !(self.is_lending() && self.can_grow(at))
    }

    /// Another block can enter a partition, and none has to leave, whether its quota would have it so or not.
    pub(crate) fn has_free_room(&mut self, at: PartitionId) -> bool {
        if self.is_lending() { self.can_grow(at) } else { !self.is_full(at) }
    }

    /// The same where partitions lend.
    fn can_grow(&mut self, at: PartitionId) -> bool {
        let partition = &self.partitions[at];
        partition.occupied() < partition.most() && self.free_blocks() > 0 && self.have_free_slot()
    }

    /// A slot for another block of a tenant: one that is free, or is `lent` ([`Self::borrow_room`]), or that of a block of its own.
    pub(crate) fn take_lent_slot(&mut self, own: PartitionId, lent: bool) -> Option<u32> {
        if !self.can_grow(own) {
            if !lent {
                self.evict_one(own);
            }
            self.free_ahead(own);
            // What left may not be free yet, and others be.
            if !self.can_grow(own) {
                return None;
            }
        }
        self.free_slots.pop()
    }

    /// A partition gives so many blocks up for others: how many it did. One whose next blocks are dirty, or in use, has none to give for now.
    pub(crate) fn lend(&mut self, from: PartitionId, blocks: u32) -> u32 {
        let held = self.partitions[from].occupied();
        if blocks > 0 {
            self.partitions[from].set_capacity(held.saturating_sub(blocks));
        }
        let lent = (0..blocks).take_while(|_| self.evict_one(from)).count() as u32;
        if blocks > 0 && lent == 0 {
            self.partitions[from].barred_ns = self.clock_ns + BARRED_NS;
        }
        lent
    }

    /// A block leaves the cache so that a tenant can have its slot: one of its own, but where partitions lend and it is below its quota.
    pub(crate) fn give_one(&mut self, own: PartitionId) -> bool {
        match self.lendable(own) {
            Some((from, _)) if self.lend(from, 1) > 0 => true,
            _ => self.evict_for(own),
        }
    }

    /// Who lends to a tenant, and how much it has above its quota.
    pub(crate) fn lendable(&self, own: PartitionId) -> Option<(PartitionId, u32)> {
        let from = if self.is_lending() { self.lender(own) } else { None };
        from.map(|from| (from, self.above_quota(from)))
    }

    /// Who gives blocks back for a tenant that is below its quota: the one that is most above its own.
    fn lender(&self, own: PartitionId) -> Option<PartitionId> {
        if self.partitions[own].is_full() {
            return None;
        }
        let others = self.partitions.own_ids().filter(|&at| at != own && self.above_quota(at) > 0);
        // Who had none to give a moment ago is asked again where there is nobody else.
        others.max_by_key(|&at| (!self.is_barred(at), self.above_quota(at)))
    }

    /// A partition that has all of its quota takes a block of whose own lie idle. Somebody is looked for once for each batch of blocks that had no room.
    fn take_unused(&mut self, own: PartitionId) -> bool {
        let nothing_free = self.free_blocks() == 0;
        let partition = &mut self.partitions[own];
        if !nothing_free || !partition.is_full() || partition.occupied() >= partition.most() {
            return false;
        }
        let looks = partition.borrows.wants_one();
        if looks {
            let mut found = None;
            for _ in 0..ASKED {
                let Some(from) = self.idlest(own) else { break };
                if self.lend(from, 1) > 0 {
                    found = Some((from, self.partitions[from].residents.used()));
                    break;
                }
                // It is not found again for a while.
            }
            self.partitions[own].borrows.found(found);
        }
        let mut borrows = self.partitions[own].borrows;
        let from = borrows.lender(|from| self.partitions[from].residents.used());
        let lends = |it: &mut Self, from: PartitionId| {
            it.partitions[from].lends_at_most() > 0 && it.lend(from, 1) > 0
        };
        let lent = from.is_some_and(|from| looks || lends(self, from));
        if from.is_some() {
            borrows.lent(lent);
        }
        self.partitions[own].borrows = borrows;
        lent
    }

    /// It had no block to give a moment ago.
    fn is_barred(&self, at: PartitionId) -> bool {
        self.partitions[at].barred_ns > self.clock_ns
    }

    /// Who holds what has been idle for the longest time, if it is worth more to this partition.
    fn idlest(&mut self, own: PartitionId) -> Option<PartitionId> {
        let now_ns = self.clock_ns;
        let turn = self.partitions[own].residents.turn(self.partitions[own].occupied(), now_ns);
        if turn.hits <= 0.0 || turn.seconds.is_infinite() {
            return None;
        }
        let mut found: Option<(PartitionId, f64)> = None;
        for at in self.partitions.own_ids().filter(|&at| at != own) {
            if self.partitions[at].lends_at_most() > 0 && !self.is_barred(at) {
                let partition = &mut self.partitions[at];
                let idle = partition.residents.idle(partition.occupied(), now_ns);
                if lends(idle, turn) && found.is_none_or(|(_, most)| idle.seconds > most) {
                    found = Some((at, idle.seconds));
                }
            }
        }
        found.map(|(at, _)| at)
    }

    /// Partitions were not what they are: nothing is known of what is idle.
    pub(crate) fn forget_idle(&mut self) {
        for at in self.partitions.own_ids() {
            let partition = &mut self.partitions[at];
            partition.residents = Residents::new(self.clock_ns);
            partition.borrows = Borrows::default();
        }
    }

    /// A block has entered.
    pub(crate) fn note_resident(&mut self, at: PartitionId, key: BlockKey, leaves_first: bool) {
        if self.lending && !leaves_first {
            let partition = &mut self.partitions[at];
            partition.residents.entered(key.pack(), partition.occupied(), self.clock_ns);
        }
    }

    fn above_quota(&self, at: PartitionId) -> u32 {
        self.partitions[at].occupied().saturating_sub(self.partitions[at].quota)
    }
}
