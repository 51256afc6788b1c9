//! The errors that a reply can carry.

/// An error number of the protocol ("Error values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    /// EPERM: the export is read-only.
    NotPermitted = 1,
    /// EIO.
    Io = 5,
    /// ENOMEM.
    NoMemory = 12,
    /// EINVAL.
    Invalid = 22,
    /// ENOSPC.
    NoSpace = 28,
    /// EOVERFLOW: too long to answer in one piece.
    Overflow = 75,
    /// ENOTSUP.
    NotSupported = 95,
    /// ESHUTDOWN: the server is being stopped.
    Shutdown = 108,
}

impl ErrorCode {
    /// The error behind a non-zero number. Numbers that the specification does not list count as EINVAL, as it says.
    pub fn from_wire(number: u32) -> Self {
        match number {
            1 => Self::NotPermitted,
            5 => Self::Io,
            12 => Self::NoMemory,
            28 => Self::NoSpace,
            75 => Self::Overflow,
            95 => Self::NotSupported,
            108 => Self::Shutdown,
            _ => Self::Invalid,
        }
    }

    /// The number on the wire.
    pub fn to_wire(self) -> u32 {
        self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire() {
        for number in [1, 5, 12, 22, 28, 75, 95, 108] {
            assert_eq!(ErrorCode::from_wire(number).to_wire(), number);
        }
    }

    #[test]
    fn unlisted_numbers_are_einval() {
        assert_eq!(ErrorCode::from_wire(4711), ErrorCode::Invalid);
    }
}
