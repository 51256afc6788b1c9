//! Every single bit of all metadata, flipped: `check` finds it, or nothing depends on it.

use super::images::{layout, lived};
use crate::format::*;

/// All that recovery says of a cache but its findings.
fn meaning(recovered: &Recovered) -> impl PartialEq + std::fmt::Debug + use<> {
    let superblock = recovered.superblock();
    let marks: Vec<_> = recovered.marks().collect();
    let slots: Vec<_> = recovered.slots().filter(|(_, state)| *state != SlotState::Free).collect();
    (
        slots,
        marks,
        recovered.volumes().clone(),
        recovered.next(),
        superblock.layout,
        superblock.may_hold_dirty,
    )
}

/// True if nothing is lost. Of the last record nobody can tell.
fn is_harmless(finding: &Finding) -> bool {
    finding.severity() == Severity::Note && !matches!(finding, Finding::Sector { at_end: true, .. })
}

fn every_flip_is_found_or_harmless(clean_stop: bool) {
    // One page, and the smallest ring.
    let layout = Layout::new(Shape { slots: 16, ..layout(32).shape() }).unwrap();
    let mut disk = lived(layout, 11, clean_stop).disk;
    let good = recover(&mut disk).unwrap();
    assert_eq!(good.findings(), []);
    let (meant, bits) = (meaning(&good), good.superblock().layout.data_offset() * 8);
    let (mut found, mut harmless) = (0u64, 0u64);
    for bit in 0..bits {
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        disk.bytes[byte] ^= mask;
        match recover(&mut disk) {
            Ok(recovered) if recovered.findings().is_empty() => {
                assert_eq!(meaning(&recovered), meant, "bit {bit} changes what is recovered");
                harmless += 1;
            }
            Ok(recovered) => {
                let words: Vec<_> = recovered.findings().iter().map(ToString::to_string).collect();
                assert!(words.iter().all(|words| !words.is_empty()));
                if recovered.findings().iter().all(is_harmless) {
                    assert_eq!(meaning(&recovered), meant, "bit {bit} changes what is recovered: {words:?}");
                }
                found += 1;
            }
            Err(error) => panic!("bit {bit}: one copy is good, and yet {error}"),
        }
        disk.bytes[byte] ^= mask;
    }
    // Behind the last volume of a volume table, and between the journal and the data.
    assert!(harmless * 3 < found, "{harmless} of {bits} flips are harmless");
}

#[test]
fn every_flip_in_a_cache_that_was_stopped_is_found_or_harmless() {
    every_flip_is_found_or_harmless(true);
}

#[test]
fn every_flip_in_a_cache_that_was_running_is_found_or_harmless() {
    every_flip_is_found_or_harmless(false);
}
