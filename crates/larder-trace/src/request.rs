//! One request of a trace, and the volume that it is for.

use std::fmt;

/// A block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was issued, in nanoseconds on the trace's own clock (for MSR traces: since 1601, a multiple of 100).
    pub time_ns: u64,
    /// Which volume it is for: an index into the volumes of its reader or of its generator's caller.
    pub volume: u32,
    /// What it does.
    pub kind: RequestKind,
    /// First byte. Zero for a flush.
    pub offset: u64,
    /// Number of bytes. Zero for a flush. `offset + len` does not pass 2^64 - 1.
    pub len: u32,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It makes completed writes durable.
    Flush,
    /// It gives up the contents of a range.
    Discard,
}

impl RequestKind {
    /// Its name, as MSR traces spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Flush => "Flush",
            Self::Discard => "Discard",
        }
    }
}

/// A disk of a host, as a trace names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Volume {
    /// The host's name.
    pub host: String,
    /// The number of the disk on that host.
    pub disk: u32,
}

impl fmt::Display for Volume {
    /// As the literature writes it: `web_1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.host, self.disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_called_as_in_the_literature() {
        assert_eq!(Volume { host: "web".into(), disk: 1 }.to_string(), "web_1");
    }
}
