//! What the engine asks of a device, in the form in which devices carry it out: with real memory instead of names.

use crate::loan::Place;
use crate::memory::Hold;
use larder_engine::OpId;

/// One operation on one device.
#[derive(Debug)]
pub(crate) struct Command {
    pub ticket: Ticket,
    pub kind: CommandKind,
    /// First byte on the device.
    pub offset: u64,
    /// Bytes on the device.
    pub len: u64,
    /// For reads and writes: `len` bytes of a region on which the ticket has a hold. In pieces only for reads of files.
    pub memory: Place,
    /// It reads to memory that was lent, from this byte on: others may write it or take it away, and a failure may be theirs, not the device's.
    pub lent: Option<u32>,
    pub fua: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Read,
    Write,
    Flush,
    Discard,
    WriteZeroes { no_hole: bool },
}

impl CommandKind {
    /// For the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes { .. } => "write-zeroes",
        }
    }
}

/// Whom to tell when a command has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    /// `None` for the reactor's own flush when it stops.
    pub op: Option<OpId>,
    /// The memory that may not go before.
    pub hold: Option<Hold>,
    /// When it began, on the reactor's clock.
    pub started_ns: u64,
}

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Index of the device.
    pub device: usize,
    pub ticket: Ticket,
    pub kind: CommandKind,
    pub result: Result<(), larder_engine::IoError>,
    /// A read to lent memory failed: what failed, to be tried with memory of the reactor's before anybody is told.
    pub again: Option<Box<Command>>,
}

/// A command outside any reactor, on no memory.
#[cfg(test)]
pub(crate) fn test_command(kind: CommandKind, offset: u64, len: u64) -> Command {
    let ticket = Ticket { op: None, hold: None, started_ns: 0 };
    Command { ticket, kind, offset, len, memory: Place::NONE, lent: None, fua: false }
}
