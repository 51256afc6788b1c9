//! Knowing the device of a volume again: the driver keeps 64 bits with each device for its server.
//!
//! The upper half tells the volume by its name, the lower half its backing: the requests that wait in a device are for that one
//! disk, and must not be executed on another that has the same name by now.

/// What Larder's devices have in common, so that nobody else's is taken for one.
const SALT: &[u8] = b"larder volume\0";

/// A volume on its backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub u64);

impl Mark {
    /// The mark of a volume with this name and backing.
    pub fn new(name: &str, backing: &str) -> Self {
        let upper = hash(&[SALT, name.as_bytes()]) >> 32 << 32;
        Self(upper | hash(&[SALT, backing.as_bytes()]) >> 32)
    }

    /// True where both are of a volume of the same name.
    pub fn is_namesake(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

/// FNV-1a, with its bits mixed once more. It stands in the kernel for as long as a device lives: it must never change.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_known_by_name_and_backing() {
        let mark = Mark::new("root", "/srv/root.img");
        assert_eq!(mark, Mark::new("root", "/srv/root.img"));
        assert!(mark.is_namesake(Mark::new("root", "/srv/other.img")));
        assert_ne!(mark, Mark::new("root", "/srv/other.img"));
        assert!(!mark.is_namesake(Mark::new("data", "/srv/root.img")));
    }

    #[test]
    fn marks_stay_what_they_are() {
        assert_eq!(Mark::new("root", "/srv/root.img"), Mark(MARK_OF_ROOT));
    }

    /// Devices of running hosts have it.
    const MARK_OF_ROOT: u64 = 0xf735_99a3_ff97_ac44;
}
