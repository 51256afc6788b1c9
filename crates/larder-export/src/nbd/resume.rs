//! A client that another process served, and that this one goes on with: only where what it was told still holds.

use super::exports::{ExportTable, Seat};
use super::frontend::Arrival;
use crate::handover::ClientState;
use larder_nbd::consts::tflag;
use larder_nbd::server::Negotiated;
use std::sync::Arc;

/// Why a client cannot be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresumed {
    /// Its listener offers no such export.
    #[error("its volume is no longer served there")]
    Gone,
    /// It is another disk of the same name.
    #[error("its volume is on another backing")]
    Another,
    /// The volume is smaller than it was, takes larger requests only, or takes no writes any more.
    #[error("its volume has become smaller, read-only, or one of larger sectors")]
    Narrower,
    /// The listener has all the connections that it may have.
    #[error("there are too many connections")]
    Full,
}

/// The client as its reactor takes it, and which one that is.
pub(super) fn resumed(table: &Arc<ExportTable>, state: ClientState) -> Result<(usize, Arrival), Unresumed> {
    let mut seat = Seat::take(table).ok_or(Unresumed::Full)?;
    let index = seat.offer().find(&state.export).ok_or(Unresumed::Gone)?;
    let export = seat.choose(index).ok_or(Unresumed::Gone)?;
    if export.identity != state.identity {
        return Err(Unresumed::Another);
    }
    let was_writable = state.flags & tflag::READ_ONLY == 0;
    if export.info.bytes < state.bytes
        || export.info.min_block > state.min_block
        || (export.info.read_only && was_writable)
    {
        return Err(Unresumed::Narrower);
    }
    let ClientState { flags, structured, base_allocation, stream, skip, .. } = state;
    let negotiated = Negotiated { export: index, flags, structured, base_allocation };
    let skip = usize::try_from(skip).map_err(|_| Unresumed::Narrower)?;
    Ok((export.reactor, Arrival { seat, negotiated, stream, skip }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::Export;
    use larder_engine::VolumeId;
    use larder_io::VolumeInfo;

    fn table(change: impl Fn(&mut Export)) -> Arc<ExportTable> {
        let info = VolumeInfo { bytes: 1 << 20, min_block: 512, preferred_block: 4096, read_only: false };
        let mut export = Export {
            name: "a".into(),
            description: String::new(),
            identity: "disk".into(),
            reactor: 3,
            volume: VolumeId(0),
            info,
        };
        change(&mut export);
        ExportTable::new(vec![export])
    }

    fn state() -> ClientState {
        ClientState {
            export: "a".into(),
            identity: "disk".into(),
            bytes: 1 << 20,
            min_block: 512,
            flags: tflag::HAS_FLAGS,
            structured: true,
            base_allocation: false,
            skip: 0,
            stream: vec![1, 2, 3],
        }
    }

    #[test]
    fn a_client_goes_on_where_nothing_was_taken_from_it() {
        let table = table(|export| export.info.bytes = 1 << 21);
        let (reactor, arrival) = resumed(&table, state()).unwrap();
        assert_eq!((reactor, arrival.stream), (3, vec![1, 2, 3]));
        assert_eq!(table.connections("a"), Some(1));
        drop(arrival.seat);
        assert_eq!(table.connections("a"), Some(0));
    }

    #[test]
    fn a_client_of_another_disk_is_refused() {
        let refused = |change: fn(&mut Export)| resumed(&table(change), state()).unwrap_err();
        assert_eq!(refused(|export| export.name = "b".into()), Unresumed::Gone);
        assert_eq!(refused(|export| export.identity = "other".into()), Unresumed::Another);
        assert_eq!(refused(|export| export.info.bytes = 1 << 19), Unresumed::Narrower);
        assert_eq!(refused(|export| export.info.min_block = 4096), Unresumed::Narrower);
        assert_eq!(refused(|export| export.info.read_only = true), Unresumed::Narrower);
        let taken = table(|export| export.info.bytes = 1 << 19);
        assert!(resumed(&taken, state()).is_err() && taken.connections("a") == Some(0));
    }
}
