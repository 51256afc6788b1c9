//! The guest's memory as the sources under test know it, with an eye on every access: the bytes that it saw, and a guest that
//! changes others before it.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Deref;
use vhost::vhost_user::{Error, Result};
use vm_memory::guest_memory::GuestMemorySliceIterator;
use vm_memory::{Bytes, GuestAddress, GuestMemory, GuestMemoryMmap, Permissions, bitmap::BS};

/// Two regions with a hole between them, which ends where the second begins.
pub const REGIONS: [(u64, usize); 2] = [(0, 0x8000), (0x1_0000, 0x8000)];

/// One byte changes after so many more accesses.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub gap: u8,
    pub place: u16,
    pub flip: u8,
}

/// What was touched, and the bytes that were there.
#[derive(Clone, Debug)]
pub struct Access {
    pub start: u64,
    pub bytes: Vec<u8>,
    pub writes: bool,
}

impl Access {
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[derive(Debug)]
pub struct Memory {
    inner: GuestMemoryMmap<()>,
    changes: RefCell<Vec<Change>>,
    since: Cell<u8>,
    changed: Cell<bool>,
    log: RefCell<Vec<Access>>,
}

impl Memory {
    pub fn new(image: &[u8], mut changes: Vec<Change>) -> Self {
        let inner = GuestMemoryMmap::from_ranges(&REGIONS.map(|(start, len)| (GuestAddress(start), len)));
        let inner = inner.expect("two regions");
        inner.write_slice(image, GuestAddress(0)).expect("an image no longer than the first region");
        changes.reverse();
        Self {
            inner,
            changes: RefCell::new(changes),
            since: Cell::new(0),
            changed: Cell::new(false),
            log: RefCell::default(),
        }
    }

    /// What was touched since this was last asked.
    pub fn take_log(&self) -> Vec<Access> {
        self.log.take()
    }

    /// A look that nobody notices.
    pub fn peek(&self, start: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.inner.read_slice(&mut bytes, GuestAddress(start)).ok().map(|()| bytes)
    }

    /// True where the guest has changed something.
    pub fn has_changed(&self) -> bool {
        self.changed.get()
    }

    /// True where all of it is in one region or another.
    pub fn is_inside(&self, start: u64, len: u32) -> bool {
        let within = |(region, bytes): (u64, usize)| {
            start >= region && start.checked_add(len.into()).is_some_and(|end| end <= region + bytes as u64)
        };
        REGIONS.into_iter().any(within)
    }

    /// The guest's turn.
    fn change(&self) {
        let mut changes = self.changes.borrow_mut();
        self.since.set(self.since.get().saturating_add(1));
        while let Some(change) = changes.pop_if(|change| change.gap <= self.since.get()) {
            self.since.set(0);
            let place = GuestAddress(change.place.into());
            let Ok(byte) = self.inner.read_obj::<u8>(place) else { continue };
            self.inner.write_obj(byte ^ change.flip, place).expect("it was just read");
            self.changed.set(true);
        }
    }
}

impl GuestMemory for Memory {
    type PhysicalMemory = GuestMemoryMmap<()>;
    type Bitmap = ();

    fn check_range(&self, start: GuestAddress, len: usize, access: Permissions) -> bool {
        GuestMemory::check_range(&self.inner, start, len, access)
    }

    fn get_slices<'a>(
        &'a self,
        start: GuestAddress,
        len: usize,
        access: Permissions,
    ) -> vm_memory::guest_memory::Result<impl GuestMemorySliceIterator<'a, BS<'a, ()>>> {
        self.change();
        // What is outside is not touched: it is refused.
        if let Some(bytes) = self.peek(start.0, len) {
            let writes = matches!(access, Permissions::Write | Permissions::ReadWrite);
            self.log.borrow_mut().push(Access { start: start.0, bytes, writes });
        }
        GuestMemory::get_slices(&self.inner, start, len, access)
    }
}

/// As the daemon keeps it for those who work on it.
#[derive(Debug)]
pub struct Snapshot(pub Memory);

impl Deref for Snapshot {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.0
    }
}

/// As the daemon has it.
pub fn has_bytes(file: &File, offset: u64, len: u64) -> Result<()> {
    let there = file.metadata().map_err(Error::ReqHandlerError)?.len();
    let end = offset.checked_add(len).ok_or(Error::InvalidParam)?;
    if end <= there { Ok(()) } else { Err(Error::InvalidParam) }
}
