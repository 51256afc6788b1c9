//! What a write does.

use std::fmt;
use std::str::FromStr;

/// What a write does. Its name is what [`fmt::Display`] writes and [`FromStr`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// `wb`: it goes to the cache alone, where it is kept dirty until the block is evicted; past the cache where it is absent and not admitted.
    WriteBack,
    /// `wt`: it goes to the backing, and to the cache if the block is resident or admitted.
    WriteThrough,
    /// `wt-noalloc`: it goes to the backing, and to the cache if the block is resident.
    WriteThroughNoAllocate,
    /// `ro`: it goes to the backing, and the block leaves the cache.
    ReadOnly,
    /// `wo`: as `wb`; reads are served by the cache, but fill it never.
    WriteOnly,
}

impl WritePolicy {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::WriteBack, Self::WriteThrough, Self::WriteThroughNoAllocate, Self::ReadOnly, Self::WriteOnly];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WriteBack => "wb",
            Self::WriteThrough => "wt",
            Self::WriteThroughNoAllocate => "wt-noalloc",
            Self::ReadOnly => "ro",
            Self::WriteOnly => "wo",
        }
    }

    /// True if a write that the cache takes does not wait for the backing.
    pub fn answers_at_once(self) -> bool {
        matches!(self, Self::WriteBack | Self::WriteOnly)
    }

    /// True if a read that misses may fill the cache.
    pub fn fills(self) -> bool {
        self != Self::WriteOnly
    }

    /// True if a write of an absent block may fill the cache.
    pub fn allocates(self) -> bool {
        matches!(self, Self::WriteBack | Self::WriteThrough | Self::WriteOnly)
    }

    /// True if a write makes its block leave.
    pub fn invalidates(self) -> bool {
        self == Self::ReadOnly
    }
}

impl fmt::Display for WritePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no write policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no write policy; there are {}", WritePolicy::ALL.map(WritePolicy::as_str).join(", "))]
pub struct UnknownWritePolicy {
    /// The name.
    pub name: String,
}

impl FromStr for WritePolicy {
    type Err = UnknownWritePolicy;

    fn from_str(name: &str) -> Result<Self, UnknownWritePolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == name);
        found.ok_or_else(|| UnknownWritePolicy { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for policy in WritePolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "wback".parse::<WritePolicy>().unwrap_err();
        assert_eq!(error.to_string(), "\"wback\" is no write policy; there are wb, wt, wt-noalloc, ro, wo");
    }
}
