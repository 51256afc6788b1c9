//! What the engine asks of a device, in the form in which devices carry it out: with real memory instead of names.

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
    /// For reads and writes: `len` bytes of a buffer on which the ticket has a hold.
    pub memory: *mut u8,
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
}

/// A command outside any reactor, on no memory.
#[cfg(test)]
pub(crate) fn test_command(kind: CommandKind, offset: u64, len: u64) -> Command {
    let ticket = Ticket { op: None, hold: None, started_ns: 0 };
    Command { ticket, kind, offset, len, memory: std::ptr::null_mut(), fua: false }
}
