//! Which superblock counts, and which volume table.

use super::super::Medium;
use super::super::finding::{Finding, Findings};
use super::super::superblock::{self, SUPERBLOCK_BYTES, Superblock, Unusable};
use super::super::volumes::VolumeTable;
use super::{RecoverError, read_units};
use crate::Planted;

/// The superblock that counts, and the volume table.
///
/// Where a copy of the superblock is damaged it may have been the newer one. The older one says less, but nothing
/// that is false of it: its `next` is a lower bound, its geometry never changes. Only its flags may be out of date,
/// so the bad ones are assumed.
pub(super) fn read(
    medium: &mut impl Medium,
    bug: Option<Planted>,
    findings: &mut Findings,
) -> Result<(Superblock, VolumeTable), RecoverError> {
    let (mut superblock, broken) = choose_with(medium, bug)?;
    if let Some((copy, why)) = broken {
        findings.push(Finding::Superblock { copy, why });
        (superblock.clean_stop, superblock.may_hold_dirty) = (false, true);
    }
    let (needed, bytes) = (superblock.layout.device_bytes(), medium.bytes());
    if needed > bytes {
        return Err(RecoverError::TooShort { needed, bytes });
    }
    if superblock.needs_check {
        findings.push(Finding::NeedsCheck);
    }
    let volumes = read_volumes(medium, &superblock, findings);
    Ok((superblock, volumes))
}

/// The superblock of the higher generation, and the copy that cannot be used, if there is one.
pub(in super::super) fn choose(
    medium: &mut impl Medium,
) -> Result<(Superblock, Option<(u8, Unusable)>), RecoverError> {
    choose_with(medium, None)
}

fn choose_with(
    medium: &mut impl Medium,
    bug: Option<Planted>,
) -> Result<(Superblock, Option<(u8, Unusable)>), RecoverError> {
    let mut copies = [0, 1].map(|copy| read_copy(medium, copy, bug == Some(Planted::TornSuperblock)));
    // What a later version wrote is not to be judged by its other half.
    for copy in &mut copies {
        if let Err(Unusable::Newer(version)) = *copy {
            let newer = Unusable::Newer(version);
            return Err(RecoverError::NoSuperblock { a: newer.clone(), b: newer });
        }
    }
    match copies {
        [Err(a), Err(b)] => Err(RecoverError::NoSuperblock { a, b }),
        [Ok(one), Err(why)] => Ok((one, Some((1, why)))),
        [Err(why), Ok(one)] => Ok((one, Some((0, why)))),
        [Ok(a), Ok(b)] if (a.uuid, a.layout) != (b.uuid, b.layout) => Err(RecoverError::TwoCaches),
        [Ok(a), Ok(b)] => Ok((if a.generation > b.generation { a } else { b }, None)),
    }
}

fn read_copy(medium: &mut impl Medium, copy: u8, unchecked: bool) -> Result<Superblock, Unusable> {
    let mut page = vec![0; SUPERBLOCK_BYTES];
    if medium.bytes() < 2 * SUPERBLOCK_BYTES as u64 {
        return Err(Unusable::Foreign);
    }
    let offset = u64::from(copy) * SUPERBLOCK_BYTES as u64;
    medium.read(offset, &mut page).map_err(Unusable::Unreadable)?;
    if unchecked {
        superblock::seal(&mut page);
    }
    Superblock::decode(&page, copy)
}

/// The newer whole copy, which must be as new as the superblock says. A newer one that was torn was not in use yet.
fn read_volumes(medium: &mut impl Medium, superblock: &Superblock, findings: &mut Findings) -> VolumeTable {
    let (layout, salt) = (superblock.layout, superblock.salt());
    let copies = [0, 1].map(|copy| {
        let mut bytes = vec![0; layout.volume_table_bytes()];
        read_units(medium, layout.volume_table_offset(copy), &mut bytes, layout.sector_bytes());
        VolumeTable::decode(&bytes, salt, copy)
    });
    let broken = (0..).zip(&copies).find_map(|(copy, table)| table.is_none().then_some(copy));
    let newest = copies.into_iter().flatten().max_by_key(|table| table.generation).unwrap_or_default();
    let is_good = newest.generation >= superblock.volumes_generation;
    if let Some(copy) = broken {
        findings.push(Finding::VolumeTable { copy, other_is_good: is_good });
    } else if !is_good {
        let copy = (superblock.volumes_generation % 2) as u8;
        findings.push(Finding::VolumeTable { copy, other_is_good: false });
    }
    newest
}
