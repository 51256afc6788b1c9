//! Looking at a stopped cache, all of it.

use super::Medium;
use super::data::Written;
use super::finding::{Finding, Findings};
use super::page::Contents;
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
    for (slot, Contents { block, dirty, crc, .. }) in recovered.blocks() {
        let written = Written { block, slot, crc };
        // Blocks of other volumes, and past the end, were dropped.
        if written.is_there(medium, recovered.superblock(), recovered.volumes()) != Some(true) {
            findings.push(Finding::Data { block, slot, dirty });
        }
    }
}
