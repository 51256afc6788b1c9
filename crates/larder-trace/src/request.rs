//! One request of a trace, and the volume that it is for.

use std::fmt;

/// A block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was issued, in nanoseconds on the trace's own clock.
    pub time_ns: u64,
    /// Which volume (and so which tenant) it is for: an index into [`crate::Trace::volumes`], or as a generator's caller numbers them.
    pub volume: u32,
    /// What it does.
    pub kind: RequestKind,
    /// First byte. Zero for a flush.
    pub offset: u64,
    /// Number of bytes. Zero for a flush, and where a trace tells of a read or a write of nothing. `offset + len` does not
    /// pass 2^64 - 1.
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

/// A virtual or real disk, as a trace names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Volume {
    /// Whose it is: the host, the guest, the application. Empty where the format has no such name.
    pub tenant: String,
    /// The disk among the tenant's: a number in most formats, a device name in some.
    pub disk: String,
}

impl Volume {
    /// A volume of a tenant.
    pub fn new(tenant: impl Into<String>, disk: impl fmt::Display) -> Self {
        Self { tenant: tenant.into(), disk: disk.to_string() }
    }
}

impl fmt::Display for Volume {
    /// As the literature writes it: `web_1`; the disk alone where there is no tenant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tenant.as_str() {
            "" => f.write_str(&self.disk),
            tenant => write!(f, "{tenant}_{}", self.disk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_called_as_in_the_literature() {
        assert_eq!(Volume::new("web", 1).to_string(), "web_1");
        assert_eq!(Volume::new("", "8,0").to_string(), "8,0");
    }
}
