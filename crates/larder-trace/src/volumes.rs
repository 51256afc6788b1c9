//! The volumes of a trace, numbered in the order in which they come.

use std::collections::HashMap;

use crate::Volume;
use crate::error::Wrong;

/// Volumes that one trace may have: the largest public collection has some ten thousand.
const VOLUMES_MAX: usize = 1 << 20;

/// Longest name of a tenant or a disk, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The volumes met so far. Readers look one up per request: it takes no memory unless the volume is new.
#[derive(Default)]
pub(crate) struct Volumes {
    list: Vec<Volume>,
    /// By a key made of both names. Only looked up, never walked: its order shows nowhere.
    numbers: HashMap<Vec<u8>, u32>,
    /// The volume of the last request: most requests are for the same.
    last: usize,
    /// Where a key is put together.
    key: Vec<u8>,
}

impl Volumes {
    pub(crate) fn list(&self) -> &[Volume] {
        &self.list
    }

    /// The number of the volume that the trace calls so. `field` is the column that an error names.
    #[inline]
    pub(crate) fn index(&mut self, field: &'static str, tenant: &[u8], disk: &[u8]) -> Result<u32, Wrong> {
        let is_last = |last: &Volume| last.tenant.as_bytes() == tenant && last.disk.as_bytes() == disk;
        if !self.list.get(self.last).is_some_and(is_last) {
            self.last = self.look_up(field, tenant, disk)? as usize;
        }
        Ok(self.last as u32)
    }

    fn look_up(&mut self, field: &'static str, tenant: &[u8], disk: &[u8]) -> Result<u32, Wrong> {
        if tenant.len() > NAME_BYTES_MAX || disk.len() > NAME_BYTES_MAX {
            let long = if tenant.len() > NAME_BYTES_MAX { tenant } else { disk };
            return Err(Wrong::new(field, long, NAME_EXPECTED));
        }
        self.key.clear();
        // The first byte tells where one name ends and the other begins.
        self.key.push(tenant.len() as u8);
        self.key.extend_from_slice(tenant);
        self.key.extend_from_slice(disk);
        match self.numbers.get(&self.key) {
            Some(&known) => Ok(known),
            None => self.add(field, tenant, disk),
        }
    }

    /// A new volume, whose key has been put together.
    fn add(&mut self, field: &'static str, tenant: &[u8], disk: &[u8]) -> Result<u32, Wrong> {
        if self.list.len() == VOLUMES_MAX {
            return Err(Wrong::new(field, disk, "no more than 1,048,576 volumes in a trace"));
        }
        let volume = Volume { tenant: name(field, tenant)?, disk: name(field, disk)? };
        let new = self.list.len() as u32;
        self.list.push(volume);
        self.numbers.insert(self.key.clone(), new);
        Ok(new)
    }
}

const NAME_EXPECTED: &str = "a name of at most 255 bytes in UTF-8";

fn name(field: &'static str, bytes: &[u8]) -> Result<String, Wrong> {
    let name = std::str::from_utf8(bytes).map(str::to_owned);
    name.map_err(|_| Wrong::new(field, bytes, NAME_EXPECTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_numbered_as_they_come() {
        let mut volumes = Volumes::default();
        let names = [("a", "0"), ("a", "1"), ("a", "0"), ("a", "0"), ("", "a0"), ("a0", ""), ("a", "1")];
        let numbers =
            names.map(|(tenant, disk)| volumes.index("x", tenant.as_bytes(), disk.as_bytes()).unwrap());
        assert_eq!(numbers, [0, 1, 0, 0, 2, 3, 1]);
        let expected = [("a", "0"), ("a", "1"), ("", "a0"), ("a0", "")];
        assert_eq!(volumes.list(), expected.map(|(tenant, disk)| Volume::new(tenant, disk)));
    }

    #[test]
    fn a_name_is_text_of_bounded_length() {
        let mut volumes = Volumes::default();
        assert!(volumes.index("x", &[b'a'; 255], &[b'b'; 255]).is_ok());
        for (tenant, disk) in
            [(&[b'a'; 256][..], &b"0"[..]), (b"a", &[b'0'; 256]), (b"\xff", b"0"), (b"a", b"\xff")]
        {
            let wrong = volumes.index("x", tenant, disk).unwrap_err();
            assert_eq!((wrong.field, wrong.expected), ("x", NAME_EXPECTED));
        }
        assert_eq!(volumes.list().len(), 1);
    }
}
