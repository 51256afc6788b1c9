//! Which requests of a queue are in flight, in memory that outlives the daemon (vhost-user specification, "Inflight I/O
//! tracking", split virtqueues).
//!
//! The hypervisor keeps the memory. After the daemon was killed, the next one finds there what the guest still waits for, and
//! executes it again; the guest sees a pause. The order of the stores below is the specification's: whichever of them was the
//! last, the record says enough. Nothing found there is trusted: the hypervisor could have written it.

use super::fault::Guard;
use super::limits::{QUEUE_SIZE_MAX, QUEUES_MAX};
use super::memory::has_bytes;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vhost::vhost_user::message::VhostUserInflight;
use vhost::vhost_user::{Error, Result};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

/// Of a queue: features, version, number of descriptors, head of the last batch, used index.
const HEADER_BYTES: usize = 16;
const VERSION_AT: usize = 8;
const DESCRIPTORS_AT: usize = 10;
const LAST_BATCH_AT: usize = 12;
const USED_INDEX_AT: usize = 14;
/// Of a descriptor: in flight or not, next of its batch, when it came.
const STATE_BYTES: usize = 16;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;
/// Queues begin at multiples of a cache line.
const ALIGN: usize = 64;
/// The only version there is.
const VERSION: u16 = 1;

/// The memory for all queues of a device.
#[derive(Debug)]
pub(super) struct Records {
    mapping: MmapRegion<()>,
    queues: u16,
    queue_size: u16,
    /// Behind the mapping, so that this goes first.
    _guard: Guard,
}

fn bytes_per_queue(queue_size: u16) -> usize {
    (HEADER_BYTES + STATE_BYTES * usize::from(queue_size)).next_multiple_of(ALIGN)
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::ReqHandlerError(io::Error::other(error))
}

impl Records {
    /// Make the memory for some queues: what to tell the hypervisor of it, and its descriptor.
    pub fn create(queues: u16, queue_size: u16) -> Result<(VhostUserInflight, File)> {
        if queues == 0 || queues > QUEUES_MAX || queue_size == 0 || queue_size > QUEUE_SIZE_MAX {
            return Err(Error::InvalidParam);
        }
        let bytes = bytes_per_queue(queue_size) * usize::from(queues);
        let fd = memfd_create("larder-inflight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(failed)?;
        let file = File::from(fd);
        file.set_len(bytes as u64).map_err(Error::ReqHandlerError)?;
        // Nobody can take the memory away under us.
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL).map_err(failed)?;
        Ok((VhostUserInflight::new(bytes as u64, 0, queues, queue_size), file))
    }

    /// Use the memory that the hypervisor kept.
    pub fn map(told: &VhostUserInflight, file: File) -> Result<Self> {
        let VhostUserInflight { mmap_size, mmap_offset, num_queues: queues, queue_size } = *told;
        let bytes = bytes_per_queue(queue_size) * usize::from(queues);
        if queues > QUEUES_MAX || queue_size > QUEUE_SIZE_MAX || mmap_size < bytes as u64 {
            return Err(Error::InvalidParam);
        }
        has_bytes(&file, mmap_offset, bytes as u64)?;
        let mapping = MmapRegion::from_file(FileOffset::new(file, mmap_offset), bytes).map_err(failed)?;
        let guard = Guard::new(mapping.as_ptr(), bytes).map_err(Error::ReqHandlerError)?;
        Ok(Self { mapping, queues, queue_size, _guard: guard })
    }

    /// The record of a queue of this size; `None` where there is no memory for it.
    pub fn queue(self: &Arc<Self>, index: u16, size: u16) -> Option<Record> {
        (index < self.queues && size <= self.queue_size).then(|| Record {
            start: usize::from(index) * bytes_per_queue(self.queue_size),
            records: Arc::clone(self),
            size,
            counter: 0,
        })
    }
}

/// The record of one queue.
#[derive(Debug)]
pub(super) struct Record {
    records: Arc<Records>,
    start: usize,
    size: u16,
    /// When the next request comes.
    counter: u64,
}

impl Record {
    /// Go on with what is there, given the used index in the guest's memory: the heads of the requests in flight, oldest first.
    pub fn recover(&mut self, used_index: u16) -> Vec<u16> {
        if self.load::<u16>(VERSION_AT) != VERSION {
            (0..self.size).for_each(|head| self.store_state(head, false));
            self.store(USED_INDEX_AT, used_index);
            self.store(DESCRIPTORS_AT, self.size);
            self.store(VERSION_AT, VERSION);
        }
        // The last batch has reached the guest, but its marks may still be there.
        let batch = used_index.wrapping_sub(self.load(USED_INDEX_AT)).min(self.size);
        let mut head: u16 = self.load(LAST_BATCH_AT);
        for _ in 0..batch {
            if head >= self.size {
                break;
            }
            self.store_state(head, false);
            head = self.load(self.state(head) + NEXT_AT);
        }
        self.store(USED_INDEX_AT, used_index);
        let mut found: Vec<(u64, u16)> = (0..self.size)
            .filter(|&head| self.load::<u8>(self.state(head)) != 0)
            .map(|head| (self.load(self.state(head) + COUNTER_AT), head))
            .collect();
        found.sort_unstable();
        self.counter = found.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        found.into_iter().map(|(_, head)| head).collect()
    }

    /// A request was taken from the guest.
    #[inline]
    pub fn began(&mut self, head: u16) {
        if head < self.size {
            self.store(self.state(head) + COUNTER_AT, self.counter);
            self.counter = self.counter.wrapping_add(1);
            self.store_state(head, true);
        }
    }

    /// A request is about to be given back: to be called before the guest can see that.
    #[inline]
    pub fn ending(&mut self, head: u16) {
        if head < self.size {
            self.store(self.state(head) + NEXT_AT, self.load::<u16>(LAST_BATCH_AT));
            self.store(LAST_BATCH_AT, head);
        }
    }

    /// The guest can see it, at the used index before this one.
    #[inline]
    pub fn ended(&mut self, head: u16, used_index: u16) {
        if head < self.size {
            self.store_state(head, false);
            self.store(USED_INDEX_AT, used_index);
        }
    }

    fn state(&self, head: u16) -> usize {
        HEADER_BYTES + STATE_BYTES * usize::from(head)
    }

    #[inline]
    fn store_state(&mut self, head: u16, in_flight: bool) {
        self.store(self.state(head), u8::from(in_flight));
    }

    /// Every offset used is inside the queue's part.
    fn memory(&self) -> VolatileSlice<'_> {
        self.records.mapping.as_volatile_slice()
    }

    #[inline]
    fn load<T: vm_memory::AtomicAccess + Default>(&self, at: usize) -> T {
        self.memory().load(self.start + at, Ordering::Acquire).unwrap_or_default()
    }

    #[inline]
    fn store<T: vm_memory::AtomicAccess>(&self, at: usize, value: T) {
        let stored = self.memory().store(value, self.start + at, Ordering::Release);
        debug_assert!(stored.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SIZE: u16 = 8;

    fn memory() -> (VhostUserInflight, File) {
        Records::create(2, SIZE).unwrap()
    }

    fn record(told: &VhostUserInflight, file: &File) -> Record {
        Arc::new(Records::map(told, file.try_clone().unwrap()).unwrap()).queue(1, SIZE).unwrap()
    }

    #[test]
    fn what_was_in_flight_comes_back_in_its_order() {
        let (told, file) = memory();
        let mut first = record(&told, &file);
        assert!(first.recover(0).is_empty());
        for head in [5, 2, 7, 1] {
            first.began(head);
        }
        first.ending(7);
        first.ended(7, 1);
        drop(first);
        let mut second = record(&told, &file);
        assert_eq!(second.recover(1), [5, 2, 1]);
        second.began(7);
        drop(second);
        assert_eq!(record(&told, &file).recover(1), [5, 2, 1, 7], "newer than what was there before");
    }

    #[test]
    fn a_batch_that_reached_the_guest_is_not_executed_again() {
        let (told, file) = memory();
        let mut first = record(&told, &file);
        first.recover(10);
        [0, 3, 4].into_iter().for_each(|head| first.began(head));
        // Killed after the guest could see two of them, before the marks were removed.
        first.ending(4);
        first.ending(0);
        assert_eq!(record(&told, &file).recover(12), [3]);
    }

    #[test]
    fn one_about_to_be_given_back_is_executed_again() {
        let (told, file) = memory();
        let mut first = record(&told, &file);
        first.recover(10);
        first.began(3);
        first.ending(3);
        assert_eq!(record(&told, &file).recover(10), [3]);
    }

    #[test]
    fn queues_do_not_share_memory() {
        let (told, file) = memory();
        let records = Arc::new(Records::map(&told, file).unwrap());
        let (mut one, mut two) = (records.queue(0, SIZE).unwrap(), records.queue(1, SIZE).unwrap());
        (0..SIZE).for_each(|head| one.began(head));
        assert!(two.recover(0).is_empty());
        assert!(records.queue(2, SIZE).is_none() && records.queue(0, SIZE + 1).is_none());
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let (told, file) = memory();
        let larger = VhostUserInflight::new(told.mmap_size, 0, 16, 1024);
        assert!(Records::map(&larger, file.try_clone().unwrap()).is_err());
        let beyond = VhostUserInflight::new(told.mmap_size, told.mmap_size, 2, SIZE);
        assert!(Records::map(&beyond, file).is_err());
        assert!(Records::create(17, SIZE).is_err() && Records::create(1, 0).is_err());
    }

    proptest! {
        /// A daemon killed after any store of any history: nothing that the guest waits for is forgotten, and nothing that it has
        /// back is executed again.
        #[test]
        fn a_kill_at_any_moment_loses_and_repeats_nothing(
            steps in prop::collection::vec((0_u16..SIZE, 0_u8..4), 0..60),
        ) {
            let (told, file) = memory();
            let mut record_now = record(&told, &file);
            let (mut waiting, mut used) = (BTreeSet::new(), 0_u16);
            record_now.recover(0);
            for (head, kill) in steps {
                if waiting.insert(head) {
                    record_now.began(head);
                } else {
                    record_now.ending(head);
                    if kill != 1 {
                        waiting.remove(&head);
                        used = used.wrapping_add(1);
                        if kill != 2 {
                            record_now.ended(head, used);
                        }
                    }
                }
                if (1..=3).contains(&kill) {
                    record_now = record(&told, &file);
                    let found: BTreeSet<u16> = record_now.recover(used).into_iter().collect();
                    prop_assert_eq!(&found, &waiting);
                }
            }
        }

        /// Whatever is in the memory, it is read without harm.
        #[test]
        fn garbage_is_harmless(garbage in prop::collection::vec(any::<u8>(), 64..400), used in any::<u16>()) {
            let (told, file) = memory();
            std::os::unix::fs::FileExt::write_all_at(&file, &garbage[..garbage.len().min(told.mmap_size as usize)], 0).unwrap();
            let records = Arc::new(Records::map(&told, file).unwrap());
            let heads = records.queue(0, SIZE).unwrap().recover(used);
            prop_assert!(heads.len() <= usize::from(SIZE) && heads.iter().all(|head| *head < SIZE));
        }
    }
}
