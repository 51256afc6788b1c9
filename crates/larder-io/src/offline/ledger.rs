//! A session of the format without an engine: what has become of blocks is told to the journal, and the slot table follows,
//! as `docs/FORMAT.md` wants it.

use larder_engine::format::{
    Contents, Entry, Epoch, MediumError, MediumMut, PAGE_BYTES, RecoverError, Recovered, Session, SlotState,
    Superblock, Ticket,
};

use super::WriteBackError;

/// A session. Blocks are cleaned, older versions of them and blocks that cannot be used are freed; nothing else happens to a slot.
pub(super) struct Ledger<'r> {
    recovered: &'r Recovered,
    session: Session,
    /// Its superblock is durable.
    begun: bool,
    cleaned: Told,
    freed: Told,
    page: Vec<u8>,
}

/// The slots of which the journal has been told, one bit each.
struct Told(Vec<u64>);

impl Told {
    fn insert(&mut self, slot: u32) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    fn contains(&self, slot: u32) -> bool {
        self.0[slot as usize / 64] & 1 << (slot % 64) != 0
    }
}

impl<'r> Ledger<'r> {
    /// A session that has not begun. Refused where a repair has to come first.
    pub fn new(recovered: &'r Recovered) -> Result<Self, RecoverError> {
        let words = recovered.superblock().layout.slots().div_ceil(64);
        let (cleaned, freed) = (Told(vec![0; words as usize]), Told(vec![0; words as usize]));
        let session = recovered.open()?;
        Ok(Self { recovered, session, begun: false, cleaned, freed, page: vec![0; PAGE_BYTES] })
    }

    /// Begin: afterwards all that was recovered is durable, and blocks that cannot be used are gone.
    pub fn begin(&mut self, medium: &mut impl MediumMut) -> Result<(), WriteBackError> {
        if let Some(first) = &self.session.first {
            medium.write(first.offset, &first.bytes)?;
        }
        medium.flush()?;
        store(medium, &self.session.superblock)?;
        self.begun = true;
        self.recovered.settle().try_for_each(|entry| self.tell(medium, entry))?;
        Ok(self.commit(medium)?)
    }

    /// The backing has the slot's data, durably. In the journal with the next commit at the latest.
    pub fn clean(&mut self, medium: &mut impl MediumMut, slot: u32) -> Result<(), WriteBackError> {
        self.tell(medium, Entry::Clean { slot })
    }

    /// The backing has what was in the slot, durably, and another slot has something newer. Likewise.
    pub fn free(&mut self, medium: &mut impl MediumMut, slot: u32) -> Result<(), WriteBackError> {
        self.tell(medium, Entry::Free { slot })
    }

    fn tell(&mut self, medium: &mut impl MediumMut, entry: Entry) -> Result<(), WriteBackError> {
        if self.session.journal.push(entry).is_err() {
            self.commit(medium)?;
            // The ring has room again when its tail moves: when pages reach further, and a record says so.
            if self.session.journal.room_entries() == 0 {
                self.catch_up(medium)?;
                self.commit(medium)?;
            }
            self.session.journal.push(entry)?;
        }
        match entry {
            Entry::Clean { slot } => self.cleaned.insert(slot),
            Entry::Free { slot } => self.freed.insert(slot),
            Entry::Map { .. } | Entry::Write { .. } | Entry::Mark { .. } | Entry::Unmark { .. } => {}
        }
        Ok(())
    }

    /// Make durable all that was told, and bring pages after it that are due.
    pub fn commit(&mut self, medium: &mut impl MediumMut) -> Result<(), MediumError> {
        for piece in self.session.journal.seal() {
            medium.write(piece.offset, &piece.bytes)?;
        }
        medium.flush()?;
        let Session { journal, table, .. } = &mut self.session;
        journal.flushed(journal.sealed());
        let (recovered, cleaned, freed) = (self.recovered, &self.cleaned, &self.freed);
        let mut written = None;
        while let Some(page) =
            table.write_due(journal, |slot| contents(recovered, cleaned, freed, slot), &mut self.page)
        {
            medium.write(page.offset, &self.page)?;
            written = Some(page.ticket);
        }
        self.end_pages(medium, written)
    }

    /// Bring all pages up to date. All that was told is committed.
    fn catch_up(&mut self, medium: &mut impl MediumMut) -> Result<(), MediumError> {
        let Session { journal, table, .. } = &mut self.session;
        let (recovered, cleaned, freed) = (self.recovered, &self.cleaned, &self.freed);
        let mut written = None;
        while let Some(page) =
            table.write_next(journal, |slot| contents(recovered, cleaned, freed, slot), &mut self.page)
        {
            medium.write(page.offset, &self.page)?;
            written = Some(page.ticket);
        }
        self.end_pages(medium, written)
    }

    fn end_pages(&mut self, medium: &mut impl MediumMut, written: Option<Ticket>) -> Result<(), MediumError> {
        if let Some(ticket) = written {
            medium.flush()?;
            self.session.table.flushed(ticket);
        }
        // Also where a session that was cut short has brought pages further than its records say.
        self.session.journal.checkpointed(self.session.table.tail());
        Ok(())
    }

    /// A clean stop.
    pub fn stop(&mut self, medium: &mut impl MediumMut, may_hold_dirty: bool) -> Result<(), MediumError> {
        self.commit(medium)?;
        self.catch_up(medium)?;
        let journal = &self.session.journal;
        let (next, tail) = (journal.sealed() + 1, journal.tail());
        let last = self.session.superblock.successor();
        store(medium, &Superblock { clean_stop: true, may_hold_dirty, next, tail, ..last })
    }

    /// The device has failed to write metadata: nothing more is written but that a check is needed, as far as that can be.
    pub fn latch(&self, medium: &mut impl MediumMut) {
        let Session { superblock, journal, .. } = &self.session;
        let (next, tail) = (journal.durable() + 1, journal.durable_tail());
        let last = match self.begun {
            true => Superblock { next, tail, ..superblock.successor() },
            // Nothing is of this session, and what was recovered may not be durable.
            false => Superblock { generation: superblock.generation, ..self.recovered.superblock().clone() },
        };
        // What has failed already is what is told.
        let _ = store(medium, &Superblock { needs_check: true, clean_stop: false, ..last });
    }
}

/// What a slot holds after all that was told.
fn contents(recovered: &Recovered, cleaned: &Told, freed: &Told, slot: u32) -> Option<Contents> {
    match recovered.slot(slot) {
        SlotState::Used(_) | SlotState::Dropped(_) if freed.contains(slot) => None,
        SlotState::Used(contents) if cleaned.contains(slot) => {
            Some(Contents { dirty: false, epoch: Epoch::NONE, ..contents })
        }
        SlotState::Used(contents) | SlotState::Dropped(contents) => Some(contents),
        SlotState::Free | SlotState::Unknown => None,
    }
}

fn store(medium: &mut impl MediumMut, superblock: &Superblock) -> Result<(), MediumError> {
    medium.write(superblock.offset(), &superblock.encode())?;
    medium.flush()
}
