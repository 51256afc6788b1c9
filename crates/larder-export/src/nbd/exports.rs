//! What a listener offers, and how many clients use it. Shared by all reactors.

use super::limits::CONNECTIONS_PER_LISTENER;
use larder_engine::VolumeId;
use larder_io::VolumeInfo;
use larder_nbd::consts::{PAYLOAD_BYTES_MAX, tflag};
use larder_nbd::{BlockSizes, ExportInfo, Exports};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A volume under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which clients ask for it.
    pub name: String,
    /// Text for humans; may be empty.
    pub description: String,
    /// What says which disk it is: a client that another process served goes on with the same one only.
    pub identity: String,
    /// Index of its reactor.
    pub reactor: usize,
    /// Its number there.
    pub volume: VolumeId,
    /// Size and block sizes.
    pub info: VolumeInfo,
}

impl Export {
    /// What clients are told that it can do.
    ///
    /// CAN_MULTI_CONN holds because the engine's flush covers every write completed before it, whichever connection it came
    /// through.
    fn flags(&self) -> u16 {
        let always =
            tflag::HAS_FLAGS | tflag::SEND_FLUSH | tflag::SEND_FUA | tflag::SEND_DF | tflag::CAN_MULTI_CONN;
        always
            | if self.info.read_only { tflag::READ_ONLY } else { tflag::SEND_TRIM | tflag::SEND_WRITE_ZEROES }
    }
}

/// An export, and what changes of it.
#[derive(Debug)]
struct Entry {
    export: Export,
    /// The volume's size: it may have grown.
    bytes: AtomicU64,
    users: AtomicUsize,
    /// Nobody may choose it any more.
    closed: AtomicBool,
}

impl Entry {
    fn new(export: Export) -> Self {
        let (users, closed) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { bytes: AtomicU64::new(export.info.bytes), users, closed, export }
    }

    fn info(&self) -> VolumeInfo {
        VolumeInfo { bytes: self.bytes.load(Ordering::Relaxed), ..self.export.info }
    }

    /// A connection uses it; false where it is closed. Either the one who comes sees that it is closed, or the one who closes it sees him.
    fn enter(&self) -> bool {
        self.users.fetch_add(1, Ordering::SeqCst);
        let open = !self.closed.load(Ordering::SeqCst);
        if !open {
            self.users.fetch_sub(1, Ordering::SeqCst);
        }
        open
    }
}

/// The exports that a listener has at a moment: those that a client is told of when it connects.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer(Vec<Arc<Entry>>);

/// The exports of one listener. They may come and go.
#[derive(Debug)]
pub struct ExportTable {
    /// Replaced as a whole.
    offer: Mutex<Arc<Offer>>,
    connections: AtomicUsize,
}

impl ExportTable {
    /// A listener's exports. Names should differ; of two alike only the first can be reached.
    pub fn new(exports: Vec<Export>) -> Arc<Self> {
        let offer = Offer(exports.into_iter().map(|export| Arc::new(Entry::new(export))).collect());
        Arc::new(Self { offer: Mutex::new(Arc::new(offer)), connections: AtomicUsize::new(0) })
    }

    /// Connections that use the export of this name now; `None` where there is none.
    pub fn connections(&self, name: &str) -> Option<usize> {
        Some(self.find(name)?.users.load(Ordering::SeqCst))
    }

    /// The names of the exports that connections use now, and how many do.
    pub fn used(&self) -> Vec<(String, usize)> {
        let offer = Arc::clone(&self.lock());
        let used = |entry: &Arc<Entry>| {
            let count = entry.users.load(Ordering::SeqCst);
            (count > 0).then(|| (entry.export.name.clone(), count))
        };
        offer.0.iter().filter_map(used).collect()
    }

    /// The export of this name, if there is one, has another size for those who connect from here on.
    pub fn resize(&self, name: &str, bytes: u64) {
        self.find(name).into_iter().for_each(|entry| entry.bytes.store(bytes, Ordering::Relaxed));
    }

    /// One more, for those who connect from here on.
    pub fn add(&self, export: Export) {
        let mut offer = self.lock();
        let mut entries = offer.0.clone();
        entries.push(Arc::new(Entry::new(export)));
        *offer = Arc::new(Offer(entries));
    }

    /// Offer the export of this name no more, if no connection uses it: else how many do. Nothing happens where there is none.
    ///
    /// # Errors
    /// The number of connections.
    pub fn remove(&self, name: &str) -> Result<(), usize> {
        let Some(entry) = self.find(name) else { return Ok(()) };
        entry.closed.store(true, Ordering::SeqCst);
        let users = entry.users.load(Ordering::SeqCst);
        if users > 0 {
            entry.closed.store(false, Ordering::SeqCst);
            return Err(users);
        }
        let mut offer = self.lock();
        let entries = offer.0.iter().filter(|other| !Arc::ptr_eq(other, &entry)).cloned().collect();
        *offer = Arc::new(Offer(entries));
        Ok(())
    }

    /// True if it offers nothing.
    pub fn is_empty(&self) -> bool {
        self.lock().0.is_empty()
    }

    fn find(&self, name: &str) -> Option<Arc<Entry>> {
        self.lock().0.iter().find(|entry| entry.export.name == name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Offer>> {
        // Nothing can panic while it is held.
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    /// The number of the export of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|entry| entry.export.name == name)
    }

    /// An export by its number.
    pub fn export(&self, index: usize) -> Option<&Export> {
        self.0.get(index).map(|entry| &entry.export)
    }
}

impl Exports for Offer {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> &str {
        &self.0[index].export.name
    }

    fn info(&self, index: usize) -> ExportInfo {
        let Entry { export, .. } = &*self.0[index];
        let VolumeInfo { bytes, min_block, preferred_block, .. } = self.0[index].info();
        let block =
            BlockSizes { min: min_block, preferred: preferred_block.max(min_block), max: PAYLOAD_BYTES_MAX };
        ExportInfo { description: export.description.clone(), size: bytes, flags: export.flags(), block }
    }
}

/// A connection's place among those of its listener, and among those of the export that it uses. Freed when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    table: Arc<ExportTable>,
    /// As it was when the client came.
    offer: Arc<Offer>,
    export: Option<Arc<Entry>>,
}

impl Seat {
    /// `None` where the listener has all the connections that it may have.
    pub fn take(table: &Arc<ExportTable>) -> Option<Self> {
        let free = |count| (count < CONNECTIONS_PER_LISTENER).then_some(count + 1);
        table.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        Some(Self { offer: Arc::clone(&table.lock()), table: Arc::clone(table), export: None })
    }

    /// What the listener has for this client.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The export that the client uses, as it was when it chose.
    pub fn export(&self) -> Option<&Export> {
        self.export.as_ref().map(|entry| &entry.export)
    }

    /// Note the export that the client chose: `None` where there is none of this number, or it is there no more.
    pub fn choose(&mut self, index: usize) -> Option<Export> {
        let entry = self.offer.0.get(index)?;
        if self.export.is_none() {
            if !entry.enter() {
                return None;
            }
            self.export = Some(Arc::clone(entry));
        }
        Some(Export { info: entry.info(), ..entry.export.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.connections.fetch_sub(1, Ordering::Relaxed);
        if let Some(entry) = &self.export {
            entry.users.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str, read_only: bool) -> Export {
        let info = VolumeInfo { bytes: 1 << 20, min_block: 512, preferred_block: 4096, read_only };
        let (description, identity) = Default::default();
        Export { name: name.into(), description, identity, reactor: 0, volume: VolumeId(0), info }
    }

    #[test]
    fn seats_are_limited_and_counted() {
        let table = ExportTable::new(vec![export("a", false), export("b", false)]);
        let mut seats: Vec<Seat> =
            (0..CONNECTIONS_PER_LISTENER).map(|_| Seat::take(&table).unwrap()).collect();
        assert!(Seat::take(&table).is_none());
        assert_eq!(seats[0].choose(1).unwrap().name, "b");
        seats[0].choose(1);
        assert_eq!(
            (table.connections("a"), table.connections("b"), table.connections("c")),
            (Some(0), Some(1), None)
        );
        seats.remove(0);
        assert_eq!(table.connections("b"), Some(0));
        assert!(Seat::take(&table).is_some());
    }

    #[test]
    fn one_that_has_grown_is_larger_for_those_who_come() {
        let table = ExportTable::new(vec![export("a", false), export("b", false)]);
        table.resize("b", 1 << 21);
        let offer = table.lock().clone();
        assert_eq!((offer.info(0).size, offer.info(1).size), (1 << 20, 1 << 21));
        let chosen = Seat::take(&table).and_then(|mut seat| seat.choose(1)).unwrap();
        assert_eq!(chosen.info.bytes, 1 << 21);
    }

    #[test]
    fn exports_come_and_go_but_not_from_under_a_client() {
        let table = ExportTable::new(vec![export("a", false)]);
        let mut early = Seat::take(&table).unwrap();
        table.add(export("b", false));
        let mut late = Seat::take(&table).unwrap();
        assert_eq!((early.offer().count(), late.offer().count()), (1, 2));
        assert_eq!(late.choose(1).unwrap().name, "b");
        assert_eq!((table.remove("b"), table.remove("a"), table.remove("c")), (Err(1), Ok(()), Ok(())));
        assert!(early.choose(0).is_none(), "it is gone, although the client was told of it");
        assert_eq!(table.connections("b"), Some(1));
        assert_eq!(table.used(), [("b".to_owned(), 1)]);
        drop(late);
        assert_eq!((table.remove("b"), table.is_empty(), table.connections("b")), (Ok(()), true, None));
    }

    #[test]
    fn block_sizes_are_as_the_protocol_wants_them() {
        let table = ExportTable::new(vec![export("a", false)]);
        assert!(table.lock().info(0).block.is_valid());
    }

    #[test]
    fn a_read_only_export_says_so() {
        let flags = ExportTable::new(vec![export("a", true)]).lock().info(0).flags;
        assert_ne!(flags & tflag::READ_ONLY, 0);
        assert_eq!(flags & (tflag::SEND_TRIM | tflag::SEND_WRITE_ZEROES), 0);
    }
}
