//! What metadata adds to the bytes written to the SSD, in the steady state of random overwrites.

use super::disk::Disk;
use crate::format::*;
use larder_policy::Rng;

/// Overwrite random dirty blocks, each into a new slot, with a flush after every `per_flush`. Returns metadata bytes
/// per byte of data.
fn overhead(sector_bytes: u32, per_flush: u64) -> f64 {
    let layout = Layout::for_slots(4096, sector_bytes, 20_000).unwrap();
    let mut disk = Disk::new(&layout);
    format(&mut disk, &Superblock::new(Uuid([1; 16]), layout)).unwrap();
    let Session { mut journal, mut table, .. } = recover(&mut disk).unwrap().open().unwrap();
    let mut rng = Rng::new(5);
    let (mut bytes, mut before, mut data) = (vec![0; PAGE_BYTES], 0, 0);
    let turn = layout.records();
    while journal.sealed() < 3 * turn {
        if journal.sealed() < turn {
            (before, data) = (disk.written, 0);
        }
        for _ in 0..per_flush {
            let block = BlockId { volume: 0, block: rng.below(10_000) };
            let (slot, old) = (rng.below(20_000) as u32, Some(rng.below(20_000) as u32));
            journal
                .push(Entry::Map { block, dirty: true, epoch: Epoch::NONE, slot, crc: 0, old })
                .expect("pages keep up");
            data += 4096;
        }
        let pieces = if table.is_due(&journal) { journal.seal() } else { journal.draft() };
        for piece in pieces {
            disk.write(piece.offset, &piece.bytes).unwrap();
        }
        let written = table.issued();
        disk.flush().unwrap();
        journal.flushed(journal.sealed());
        table.flushed(written);
        journal.checkpointed(table.tail());
        while let Some(write) = table.write_due(&journal, |_| None, &mut bytes) {
            disk.write(write.offset, &bytes).unwrap();
        }
    }
    (disk.written - before) as f64 / data as f64
}

#[test]
fn a_flush_every_32_overwrites_costs_less_than_two_percent() {
    let percent = 100.0 * overhead(512, 32);
    assert!((1.6..1.7).contains(&percent), "{percent} %");
}

/// Less than a sector, 12.5 per cent of a block, cannot be written: what helps is that flushes which wait at the same time share one. The slot table costs little, for small
/// commits share records.
#[test]
fn fewer_writes_for_each_flush_cost_more() {
    for (per_flush, expected) in [(1, 13.19), (2, 6.96), (3, 4.90), (4, 3.88), (8, 2.42), (23, 1.14)] {
        let percent = 100.0 * overhead(512, per_flush);
        assert!((percent - expected).abs() < 0.03 * expected, "{per_flush}: {percent} %");
    }
    let percent = 100.0 * overhead(4096, 32);
    assert!((percent - 3.60).abs() < 0.1, "sectors of 4 KiB: {percent} %");
}
