//! Looking at a stopped cache, all of it.

use super::Medium;
use super::finding::{Finding, Findings};
use super::recover::{RecoverError, Recovered, recover};

/// What is wrong with a cache. With `data`, every cached block is read and held against its checksum, too.
pub fn check(medium: &mut impl Medium, data: bool) -> Result<Vec<Finding>, RecoverError> {
    let recovered = recover(medium)?;
    let mut findings = recovered.findings().to_vec();
    if data {
        let mut wrong = Findings::default();
        check_data(medium, &recovered, &mut wrong);
        findings.extend(wrong.into_list());
    }
    Ok(findings)
}

fn check_data(medium: &mut impl Medium, recovered: &Recovered, findings: &mut Findings) {
    let (layout, salt) = (recovered.superblock().layout, recovered.superblock().salt());
    let block_bytes = u64::from(layout.block_bytes());
    let mut bytes = vec![0; block_bytes as usize];
    for (slot, contents) in recovered.blocks() {
        let block = contents.block;
        let volume = recovered.volumes().get(block.volume);
        // Blocks of other volumes, and past the end, were dropped.
        let left = volume.map_or(0, |volume| volume.bytes.saturating_sub(block.block * block_bytes));
        let covered = left.min(block_bytes) as usize;
        let read = covered.next_multiple_of(layout.sector_bytes());
        let good = medium.read(layout.slot_offset(slot), &mut bytes[..read]).is_ok()
            && salt.block(block, &bytes[..covered]) == contents.crc;
        if !good {
            findings.push(Finding::Data { block, slot, dirty: contents.dirty });
        }
    }
}
