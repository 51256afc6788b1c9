//! Movers: what a tenant's cache is to hold is brought in between requests.

use larder_alloc::Population;

use super::super::arrivals::ns;
use super::super::device::Op;
use super::serve::runs;
use super::{Event, Run};
use crate::Source;
use std::cmp::Reverse;

/// Reads that a mover has under way for a tenant.
const MOVES: usize = 8;

impl<S: Source> Run<'_, S> {
    /// A mover epoch is over: what each tenant's cache is to hold is brought in, a few runs of blocks at a time.
    pub(super) fn start_movers(&mut self) {
        self.control.populate();
        for tenant in 0..self.guests.len() {
            let most = self.control.blocks_to_write(self.seconds());
            if !self.control.positions()[tenant].present || most == 0 {
                continue;
            }
            self.traffic.clear();
            self.store.move_in(tenant, most, &mut self.traffic);
            self.write_back();
            let brought = self.traffic.brought.len() as u64;
            let mut moves: Vec<_> = runs(&self.traffic.brought, |_| true).collect();
            moves.reverse();
            let guest = &mut self.guests[tenant];
            guest.count.ssd_writes.promotion += brought;
            guest.count.backing_reads += brought;
            guest.moves.splice(0..0, moves);
            self.written_to_ssd(tenant, brought);
            while self.guests[tenant].moving < MOVES && !self.guests[tenant].moves.is_empty() {
                self.guests[tenant].moving += 1;
                self.events.push(Reverse((self.now, Event::Moved(tenant))));
            }
        }
        if let (Population::Batched { seconds }, true) = (self.profile.population, self.is_somebody_left()) {
            self.events.push(Reverse((self.next_turn(ns(seconds).max(1)), Event::Mover)));
        }
    }

    pub(super) fn go_on_moving(&mut self, tenant: usize) {
        match self.guests[tenant].moves.pop() {
            Some((place, length)) => {
                let read = self.machine.backing(tenant, self.now, Op::Read, place, length);
                self.machine.ssd(self.now, Op::Write, place, length);
                self.events.push(Reverse((read, Event::Moved(tenant))));
            }
            None => self.guests[tenant].moving -= 1,
        }
    }
}
