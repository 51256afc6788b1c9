//! What a listener offers, and how many clients use it. Shared by all reactors.

use super::limits::CONNECTIONS_PER_LISTENER;
use larder_engine::VolumeId;
use larder_io::VolumeInfo;
use larder_nbd::consts::{PAYLOAD_BYTES_MAX, tflag};
use larder_nbd::{BlockSizes, ExportInfo, Exports};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A volume under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which clients ask for it.
    pub name: String,
    /// Text for humans; may be empty.
    pub description: String,
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
}

impl Entry {
    fn new(export: Export) -> Self {
        Self { bytes: AtomicU64::new(export.info.bytes), users: AtomicUsize::new(0), export }
    }

    fn info(&self) -> VolumeInfo {
        VolumeInfo { bytes: self.bytes.load(Ordering::Relaxed), ..self.export.info }
    }
}

/// The exports of one listener.
#[derive(Debug)]
pub struct ExportTable {
    exports: Vec<Entry>,
    connections: AtomicUsize,
}

impl ExportTable {
    /// A listener's exports. Names should differ; of two alike only the first can be reached.
    pub fn new(exports: Vec<Export>) -> Arc<Self> {
        let exports = exports.into_iter().map(Entry::new).collect();
        Arc::new(Self { exports, connections: AtomicUsize::new(0) })
    }

    /// Connections that use the export of this name now; `None` where there is none.
    pub fn connections(&self, name: &str) -> Option<usize> {
        let entry = self.exports.iter().find(|entry| entry.export.name == name)?;
        Some(entry.users.load(Ordering::Relaxed))
    }

    /// The export of this name, if there is one, has another size for those who connect from here on.
    pub fn resize(&self, name: &str, bytes: u64) {
        let found = self.exports.iter().filter(|entry| entry.export.name == name);
        found.for_each(|entry| entry.bytes.store(bytes, Ordering::Relaxed));
    }

    /// An export by its number.
    pub(super) fn export(&self, index: usize) -> Option<&Export> {
        self.exports.get(index).map(|entry| &entry.export)
    }
}

impl Exports for ExportTable {
    fn count(&self) -> usize {
        self.exports.len()
    }

    fn name(&self, index: usize) -> &str {
        &self.exports[index].export.name
    }

    fn info(&self, index: usize) -> ExportInfo {
        let Entry { export, .. } = &self.exports[index];
        let VolumeInfo { bytes, min_block, preferred_block, .. } = self.exports[index].info();
        let block =
            BlockSizes { min: min_block, preferred: preferred_block.max(min_block), max: PAYLOAD_BYTES_MAX };
        ExportInfo { description: export.description.clone(), size: bytes, flags: export.flags(), block }
    }
}

/// A connection's place among those of its listener, and among those of the export that it uses. Freed when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    table: Arc<ExportTable>,
    export: Option<usize>,
}

impl Seat {
    /// `None` where the listener has all the connections that it may have.
    pub fn take(table: &Arc<ExportTable>) -> Option<Self> {
        let free = |count| (count < CONNECTIONS_PER_LISTENER).then_some(count + 1);
        table.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        Some(Self { table: Arc::clone(table), export: None })
    }

    /// The listener's exports.
    pub fn table(&self) -> &ExportTable {
        &self.table
    }

    /// Note the export that the client chose: `None` where there is none of this number.
    pub fn choose(&mut self, index: usize) -> Option<Export> {
        let entry = self.table.exports.get(index)?;
        if self.export.is_none() {
            entry.users.fetch_add(1, Ordering::Relaxed);
            self.export = Some(index);
        }
        Some(Export { info: entry.info(), ..entry.export.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.connections.fetch_sub(1, Ordering::Relaxed);
        if let Some(entry) = self.export.and_then(|index| self.table.exports.get(index)) {
            entry.users.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str, read_only: bool) -> Export {
        let info = VolumeInfo { bytes: 1 << 20, min_block: 512, preferred_block: 4096, read_only };
        Export { name: name.into(), description: String::new(), reactor: 0, volume: VolumeId(0), info }
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
        assert_eq!((table.info(0).size, table.info(1).size), (1 << 20, 1 << 21));
        let chosen = Seat::take(&table).and_then(|mut seat| seat.choose(1)).unwrap();
        assert_eq!(chosen.info.bytes, 1 << 21);
    }

    #[test]
    fn block_sizes_are_as_the_protocol_wants_them() {
        let table = ExportTable::new(vec![export("a", false)]);
        assert!(table.info(0).block.is_valid());
    }

    #[test]
    fn a_read_only_export_says_so() {
        let flags = ExportTable::new(vec![export("a", true)]).info(0).flags;
        assert_ne!(flags & tflag::READ_ONLY, 0);
        assert_eq!(flags & (tflag::SEND_TRIM | tflag::SEND_WRITE_ZEROES), 0);
    }
}
