//! What a server has to offer, as the handshake tells it.

/// Block sizes of an export, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths of requests are multiples of it. A power of two, at most 64 KiB.
    pub min: u32,
    /// What is fast. A power of two, at least 512 and at least `min`.
    pub preferred: u32,
    /// Largest payload of a request. A multiple of `min`, or `u32::MAX`.
    pub max: u32,
}

impl BlockSizes {
    /// What holds where a server says nothing ("Block size constraints").
    pub const UNSTATED: Self = Self { min: 1, preferred: 4096, max: crate::consts::PAYLOAD_BYTES_MAX };

    /// True if these sizes are what the specification allows.
    pub fn is_valid(&self) -> bool {
        let min = self.min.is_power_of_two() && self.min <= 65536;
        let preferred = self.preferred.is_power_of_two() && self.preferred >= self.min.max(512);
        min && preferred
            && self.max >= self.min
            && (self.max == u32::MAX || self.max.is_multiple_of(self.min))
    }
}

/// One export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Text for humans; may be empty.
    pub description: String,
    /// Size in bytes.
    pub size: u64,
    /// What it can do: bits of [`crate::consts::tflag`].
    pub flags: u16,
    /// Its block sizes.
    pub block: BlockSizes,
}

/// The exports that one listener offers, numbered from zero.
pub trait Exports {
    /// How many there are.
    fn count(&self) -> usize;

    /// The name of an export; `index` is below [`Exports::count`].
    fn name(&self, index: usize) -> &str;

    /// An export; `index` is below [`Exports::count`].
    fn info(&self, index: usize) -> ExportInfo;

    /// The export of this name. The empty name means the only export, where there is only one.
    fn find(&self, name: &str) -> Option<usize> {
        let named = (0..self.count()).find(|&index| self.name(index) == name);
        named.or_else(|| (name.is_empty() && self.count() == 1).then_some(0))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::consts::tflag;

    /// Exports for tests: names, all alike.
    pub(crate) struct Named(pub Vec<&'static str>);

    impl Exports for Named {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn name(&self, index: usize) -> &str {
            self.0[index]
        }

        fn info(&self, index: usize) -> ExportInfo {
            ExportInfo {
                description: format!("volume {}", self.0[index]),
                size: 1 << 20,
                flags: tflag::HAS_FLAGS | tflag::SEND_FLUSH | tflag::SEND_DF,
                block: BlockSizes { min: 512, preferred: 4096, max: 32 << 20 },
            }
        }
    }

    #[test]
    fn the_empty_name_is_the_only_export() {
        assert_eq!(Named(vec!["a"]).find(""), Some(0));
        assert_eq!(Named(vec!["a", "b"]).find(""), None);
        assert_eq!(Named(vec!["a", "b"]).find("b"), Some(1));
        assert_eq!(Named(vec![]).find(""), None);
    }

    #[test]
    fn block_sizes_are_checked() {
        assert!(BlockSizes::UNSTATED.is_valid());
        assert!(BlockSizes { min: 512, preferred: 4096, max: u32::MAX }.is_valid());
        assert!(!BlockSizes { min: 0, preferred: 4096, max: 4096 }.is_valid());
        assert!(!BlockSizes { min: 4096, preferred: 512, max: 4096 }.is_valid());
        assert!(!BlockSizes { min: 512, preferred: 512, max: 1000 }.is_valid());
    }
}
