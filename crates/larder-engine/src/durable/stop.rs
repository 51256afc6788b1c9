//! A clean stop: backings are flushed (dirty blocks stay dirty), marks go, all that is cached is mapped, all pages are brought up to date, and a superblock
//! says so. The next start has nothing to replay, and all of the cache.

use super::After;
use super::round::superblock_piece;
use crate::Engine;
use crate::format::Superblock;
use crate::store::State;

impl Engine {
    /// Stop. No request is in flight, and none may come. Follow with [`Engine::next_action`] until it is empty, as after each end of
    /// an operation, until [`Engine::is_stopped`].
    pub fn stop(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.stopping = true;
            self.flush_unflushed();
            self.pump();
        }
    }

    /// True once nothing more is to be written: after a stop, or because the device has failed, or where nothing is kept.
    pub fn is_stopped(&self) -> bool {
        self.durable.as_ref().is_none_or(|durable| durable.is_over())
    }

    /// Nothing is under way: go one step further.
    pub(super) fn stop_step(&mut self) {
        if self.volumes.iter().any(|volume| volume.flushes.is_busy()) || self.is_cleaning() {
            return;
        }
        let Some(durable) = &mut self.durable else { return };
        // Some of what is said to be clean is forgotten by the journal, and has to be mapped again; and marks wait for what frees older versions.
        let unsaid = !durable.cleans.is_empty() || durable.news.waiting() > 0;
        if unsaid && self.start_round() {
            return;
        }
        let Some(durable) = &mut self.durable else { return };
        if !durable.looked {
            durable.looked = true;
            let quiet = durable.regions.quiet(usize::MAX);
            durable.unmarks.extend(quiet);
            self.wish_all();
        }
        let Some(durable) = &mut self.durable else { return };
        let lists = [durable.frees.len(), durable.unmarks.len(), durable.ripe.len(), durable.unflushed.len()];
        let waiting = lists.iter().sum::<usize>() + durable.cleans.len() + durable.news.waiting();
        // A draft of a record is not all that there is to say.
        let said = durable.journal.is_sealed() && durable.journal.durable() == durable.journal.sealed();
        if (waiting > 0 || !said || !durable.pages.is_empty()) && self.start_round() {
            return;
        }
        self.write_pages();
    }

    /// Every block that is cached and not mapped.
    fn wish_all(&mut self) {
        for entry in 0..self.store.numbers() {
            let Some(key) = self.store.key_of_number(entry) else { continue };
            let wish = if self.store.state(entry) == State::Valid { self.unmapped(key) } else { None };
            if let (Some(wish), Some(durable)) = (wish, &mut self.durable) {
                durable.unflushed.push(wish);
            }
        }
    }

    /// Bring the slot table up to date; when it is, the superblock comes.
    fn write_pages(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        while durable.pages.len() < PAGES_PER_STEP && durable.make_page(&self.store) {}
        durable.ticket = durable.table.issued();
        let pages = std::mem::take(&mut durable.pages);
        if !pages.is_empty() {
            return self.meta_step(pages, After::Pages);
        }
        let superblock = Superblock {
            clean_stop: true,
            may_hold_dirty: durable.slots.any_dirty(),
            next: durable.journal.sealed() + 1,
            tail: durable.journal.tail(),
            ..durable.successor()
        };
        let piece = superblock_piece(&superblock);
        durable.next_superblock = Some(superblock);
        self.meta_step(vec![piece], After::Stop);
    }
}

/// Pages written at a time.
const PAGES_PER_STEP: usize = 64;
