//! A cache that was given up, and is there again: known by its UUID and its last session, and gone on with without any clean block.
//!
//! Since it was given up guests have written to the backings, and no mark says so on the device. So all clean blocks are dropped, whatever the device tells
//! of itself: it may have been gone when it was to be told that it needs a check. Dirty blocks are kept. That is safe for volumes that have not been
//! served meanwhile, and of others none may be dirty (`larder_engine`'s `give_cache_up`).

use super::kept::{self, medium, mend, recover_from};
use super::{CacheError, CachePlan, CacheSpec, Next, failed, header, lock, room_on};
use crate::file::{Access, Creation, FileDevice, OpenError};
use header::Found;
use larder_engine::SessionMark;
use larder_engine::format::{Finding, MediumMut, RecoverError, Recovered, Severity, Superblock};
use std::io;

impl CachePlan {
    /// Look whether the cache of this session is there again. Nothing is written before [`CachePlan::format`].
    ///
    /// [`CacheError::Another`] where it is another cache, or none; [`CacheError::Older`] where it is in a state from before that session's end: what it lacks
    /// would be missed by nobody.
    pub fn check_again(spec: CacheSpec, mark: SessionMark) -> Result<Self, CacheError> {
        let device = match FileDevice::open(&spec.path, Access::Exclusive, Creation::Existing) {
            Err(OpenError::Busy { path }) => return Err(CacheError::InUse { path }),
            opened => opened?,
        };
        lock(device.file(), &spec.path)?;
        let another = || CacheError::Another { path: spec.path.clone() };
        match header::find(device.file()).map_err(|source| failed(&spec.path, "read", source))? {
            Found::Kept => {}
            _ => return Err(another()),
        }
        let recovered = Box::new(recover_from(&device, Some(mark))?);
        let superblock = recovered.superblock();
        if superblock.uuid != mark.uuid {
            return Err(another());
        }
        // A later session is one of a tool that has repaired it.
        let is_older = match superblock.session == mark.session {
            true => !recovered.reaches(&mark),
            false => superblock.session < mark.session,
        };
        if is_older {
            return Err(CacheError::Older { path: spec.path.clone() });
        }
        let worse = |finding: &&Finding| {
            // That the session ended with an error is known; all that it had made durable is there.
            !matches!(finding, Finding::NeedsCheck) && finding.severity() == Severity::Dirty
        };
        if let Some(worst) = recovered.findings().iter().find(worse) {
            let why = RecoverError::MayLoseDirty(worst.clone()).to_string();
            return Err(CacheError::Damaged { path: spec.path, why });
        }
        if !kept::is_as_configured(&recovered, &spec, &device) {
            return Err(another());
        }
        let next = Next::Distrust(recovered, mark);
        let room = room_on(&spec, &device, &next)?;
        Ok(Self { spec, room, device: Some(device), next })
    }
}

/// Drop all clean blocks, durably. The superblock says first that the cache needs a check: a repair of such a cache keeps none of them, and one that is
/// cut short is not taken for a healthy cache. What the session is known to have made durable is not doubted, whatever has become of its data since.
pub(super) fn distrust(
    device: &FileDevice,
    recovered: &Recovered,
    mark: SessionMark,
) -> Result<Recovered, CacheError> {
    let told = recovered.superblock();
    if !told.needs_check {
        let superblock = Superblock { needs_check: true, clean_stop: false, ..told.successor() };
        let mut medium = medium(device)?;
        let written = medium.write(superblock.offset(), &superblock.encode()).and_then(|()| medium.flush());
        written.map_err(|error| failed(device.path(), "write", io::Error::other(error.to_string())))?;
    }
    let mended = mend(device, Some(mark))?;
    let clean = mended.blocks().find(|(_, contents)| !contents.dirty).map(|(slot, _)| slot);
    match clean {
        None => Ok(mended),
        Some(slot) => {
            let why = format!("a clean block is still in slot {slot} after a repair");
            Err(CacheError::Damaged { path: device.path().into(), why })
        }
    }
}
