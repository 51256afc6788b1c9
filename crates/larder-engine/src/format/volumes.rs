//! The volume table: which volume each number stands for, and which backing it is. In two copies, which are written
//! in turn.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | CRC-32C of the rest up to the last volume, salted with UUID and copy |
//! | 4..8 | `LDRV` |
//! | 8..16 | generation: the higher valid one counts; it lies in copy generation mod 2 |
//! | 16..20, 20..24 | volumes; bytes from 4 to the end of the last volume |
//! | 24.. | volumes by rising number: number (2), bytes of name (2), bytes of identity (2), zero (2), UUID (16), size in bytes (8), name, identity |

use super::SEQUENCE_MAX;
use super::bytes::{array, is_blank, put, u16_at, u32_at, u64_at};
use super::checksum::{Kind, Salt, Uuid};
use super::layout::Layout;

const MAGIC: [u8; 4] = *b"LDRV";
const HEADER_BYTES: usize = 24;
const VOLUME_BYTES: usize = 32;

/// A volume of which blocks may be cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its number: the `volume` of a [`super::BlockId`].
    pub id: u16,
    /// Its name in the configuration.
    pub name: String,
    /// Drawn when it was first seen.
    pub uuid: Uuid,
    /// Its size in bytes.
    pub bytes: u64,
    /// What tells its backing from another (a path and its device, an NBD URI and its export).
    pub identity: String,
}

impl Volume {
    /// True if `now` is this volume again: of the same name, on the same backing. That may have grown meanwhile where the identity says which disk it is
    /// (`… [inode …]`, not a URI, which any disk may be behind), and the last block was whole: its checksum is the same then.
    pub fn is_again(&self, now: &Self, block_bytes: u32) -> bool {
        let tells_the_disk = self.identity.ends_with(']') && !self.identity.ends_with(" [device]");
        let has_grown =
            self.bytes < now.bytes && self.bytes.is_multiple_of(u64::from(block_bytes)) && tells_the_disk;
        (&self.name, &self.identity) == (&now.name, &now.identity) && (self.bytes == now.bytes || has_grown)
    }
}

/// All volumes of a cache, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeTable {
    /// Rises with each table written; 0 where none was.
    pub generation: u64,
    /// By rising number.
    pub volumes: Vec<Volume>,
}

/// A volume table cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeTableError {
    /// Too many volumes, or too long names.
    #[error("the volumes take {needed} bytes, and the cache has room for {room}")]
    Full {
        /// Bytes needed.
        needed: usize,
        /// Bytes that there are.
        room: usize,
    },
    /// Numbers that do not rise.
    #[error("volume {0} is out of order, or twice in the table")]
    Order(u16),
    /// A name or an identity longer than 65,535 bytes.
    #[error("the name or the backing's identity of volume {0} is too long")]
    Long(u16),
}

impl VolumeTable {
    /// What is known of a volume, if it is here again: with the size that it had, else the only one that may have grown into it.
    pub fn again(&self, volume: &Volume, block_bytes: u32) -> Option<&Volume> {
        let mut found = self.volumes.iter().filter(|known| known.is_again(volume, block_bytes));
        let same = self
            .volumes
            .iter()
            .find(|known| known.bytes == volume.bytes && known.is_again(volume, block_bytes));
        same.or_else(|| found.next().filter(|_| found.next().is_none()))
    }

    /// The volume of this number.
    pub fn get(&self, id: u16) -> Option<&Volume> {
        self.volumes.binary_search_by_key(&id, |volume| volume.id).ok().map(|at| &self.volumes[at])
    }

    /// Which copy this generation is written to.
    pub fn copy(&self) -> u8 {
        (self.generation % 2) as u8
    }

    /// The bytes for [`Layout::volume_table_offset`] of [`VolumeTable::copy`]; whole sectors.
    pub fn encode(&self, layout: &Layout, salt: Salt) -> Result<Vec<u8>, VolumeTableError> {
        self.check()?;
        let size = |volume: &Volume| VOLUME_BYTES + volume.name.len() + volume.identity.len();
        let needed = HEADER_BYTES + self.volumes.iter().map(size).sum::<usize>();
        let room = layout.volume_table_bytes();
        if needed > room {
            return Err(VolumeTableError::Full { needed, room });
        }
        let mut bytes = vec![0; HEADER_BYTES];
        put(&mut bytes, 4, MAGIC);
        put(&mut bytes, 8, self.generation.to_le_bytes());
        // There are at most 65,536 volumes, in at most 64 MiB.
        put(&mut bytes, 16, (self.volumes.len() as u32).to_le_bytes());
        put(&mut bytes, 20, ((needed - 4) as u32).to_le_bytes());
        self.volumes.iter().for_each(|volume| volume.encode(&mut bytes));
        let crc = salt.metadata(Kind::Volumes { copy: self.copy() }, &bytes[4..]);
        put(&mut bytes, 0, crc.to_le_bytes());
        bytes.resize(needed.next_multiple_of(4096), 0);
        Ok(bytes)
    }

    fn check(&self) -> Result<(), VolumeTableError> {
        if let Some(pair) = self.volumes.windows(2).find(|pair| pair[0].id >= pair[1].id) {
            return Err(VolumeTableError::Order(pair[1].id));
        }
        let long = |text: &str| text.len() > usize::from(u16::MAX);
        match self.volumes.iter().find(|volume| long(&volume.name) || long(&volume.identity)) {
            Some(volume) => Err(VolumeTableError::Long(volume.id)),
            None => Ok(()),
        }
    }

    /// Read a copy (0 or 1); `None` if it is torn, damaged or out of place.
    pub(super) fn decode(bytes: &[u8], salt: Salt, copy: u8) -> Option<Self> {
        if is_blank(bytes) {
            return Some(Self::default());
        }
        let end = (u32_at(bytes, 20) as usize).checked_add(4)?;
        let covered = bytes.get(4..end).filter(|covered| covered.len() >= HEADER_BYTES - 4)?;
        if u32_at(bytes, 0) != salt.metadata(Kind::Volumes { copy }, covered) || bytes[4..8] != MAGIC {
            return None;
        }
        let mut rest = &bytes[HEADER_BYTES..end];
        let mut table = Self { generation: u64_at(bytes, 8), volumes: Vec::new() };
        for _ in 0..u32_at(bytes, 16) {
            table.volumes.push(Volume::decode(&mut rest)?);
        }
        let possible =
            (1..SEQUENCE_MAX).contains(&table.generation) && rest.is_empty() && table.check().is_ok();
        (possible && table.copy() == copy).then_some(table)
    }
}

impl Volume {
    fn encode(&self, into: &mut Vec<u8>) {
        let mut fixed = [0; VOLUME_BYTES];
        // Lengths were checked.
        let numbers = [self.id, self.name.len() as u16, self.identity.len() as u16];
        for (at, number) in numbers.into_iter().enumerate() {
            put(&mut fixed, 2 * at, number.to_le_bytes());
        }
        put(&mut fixed, 8, self.uuid.0);
        put(&mut fixed, 24, self.bytes.to_le_bytes());
        into.extend(fixed);
        into.extend(self.name.as_bytes());
        into.extend(self.identity.as_bytes());
    }

    fn decode(rest: &mut &[u8]) -> Option<Self> {
        let (fixed, texts) = rest.split_at_checked(VOLUME_BYTES)?;
        let (name, texts) = texts.split_at_checked(usize::from(u16_at(fixed, 2)))?;
        let (identity, texts) = texts.split_at_checked(usize::from(u16_at(fixed, 4)))?;
        *rest = texts;
        Some(Self {
            id: u16_at(fixed, 0),
            name: String::from_utf8(name.to_vec()).ok()?,
            uuid: Uuid(array(fixed, 8)),
            bytes: u64_at(fixed, 24),
            identity: String::from_utf8(identity.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(id: u16, name: &str) -> Volume {
        let identity = format!("file:///backing/{name}");
        Volume { id, name: name.into(), uuid: Uuid([id as u8; 16]), bytes: 1 << 30, identity }
    }

    #[test]
    fn a_table_survives_in_its_place_only() {
        let (layout, salt) = (Layout::for_slots(4096, 512, 100).unwrap(), Salt::new(Uuid([7; 16])));
        let table = VolumeTable { generation: 5, volumes: vec![volume(1, "α"), volume(65_535, "")] };
        let bytes = table.encode(&layout, salt).unwrap();
        assert_eq!(VolumeTable::decode(&bytes, salt, 1), Some(table.clone()));
        assert_eq!(VolumeTable::decode(&bytes, salt, 0), None);
        assert_eq!(VolumeTable::decode(&[0; 4096], salt, 0), Some(VolumeTable::default()));
        assert_eq!((table.get(65_535).map(|v| v.id), table.get(2)), (Some(65_535), None));
    }

    #[test]
    fn a_volume_is_known_again_by_its_disk_which_may_have_grown() {
        let with = |identity: &str, bytes| Volume { identity: identity.into(), bytes, ..volume(1, "v") };
        let file = with("/srv/v [inode 7, made 1.2]", 8192);
        let again = |now: &Volume| file.is_again(now, 4096);
        assert!(again(&file) && again(&Volume { bytes: 8192 + 512, ..file.clone() }));
        assert!(!again(&Volume { bytes: 4096, ..file.clone() }), "it has shrunk");
        assert!(!again(&Volume { bytes: 16_384, ..with("/srv/v [inode 8, made 3.4]", 0) }), "another file");
        assert!(
            !file.is_again(&Volume { bytes: 32_768, ..file.clone() }, 16_384),
            "its last block was not whole"
        );
        for vague in ["nbd://host/v", "/dev/sdb [device]"] {
            assert!(with(vague, 8192).is_again(&with(vague, 8192), 4096));
            assert!(!with(vague, 8192).is_again(&with(vague, 16_384), 4096), "any disk may be there");
        }
    }

    #[test]
    fn of_several_that_a_volume_may_have_been_only_one_of_its_size_is_it() {
        let with = |id, bytes| Volume { bytes, identity: "/srv/v [inode 7]".into(), ..volume(id, "v") };
        let table = |volumes| VolumeTable { generation: 1, volumes };
        let one = table(vec![with(3, 8192)]);
        assert_eq!(one.again(&with(0, 16_384), 4096).map(|known| known.id), Some(3));
        let two = table(vec![with(1, 12_288), with(3, 8192)]);
        assert_eq!(two.again(&with(0, 16_384), 4096), None);
        assert_eq!(two.again(&with(0, 8192), 4096).map(|known| known.id), Some(3));
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let (layout, salt) = (Layout::for_slots(4096, 512, 100).unwrap(), Salt::new(Uuid([7; 16])));
        let refused = |volumes| VolumeTable { generation: 1, volumes }.encode(&layout, salt).unwrap_err();
        assert_eq!(refused(vec![volume(2, "a"), volume(2, "b")]), VolumeTableError::Order(2));
        assert_eq!(refused(vec![volume(3, &"x".repeat(65_536))]), VolumeTableError::Long(3));
        let many = (0..400).map(|id| volume(id, "name")).collect();
        assert_eq!(refused(many), VolumeTableError::Full { needed: 24 + 400 * 56, room: 16_384 });
    }
}
