//! Numbered slots with generations: a number that outlived its entry finds nothing, never somebody else's entry.

/// A table of entries named by index and generation.
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    entry: Option<T>,
}

/// The name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub index: u32,
    pub generation: u32,
}

impl Key {
    /// As one number, for the kernel's `user_data` or an NBD cookie.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The inverse of [`Key::to_bits`].
    pub fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl<T> Table<T> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Entries in the table.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn insert(&mut self, entry: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let slot = &mut self.slots[index as usize];
        slot.entry = Some(entry);
        Key { index, generation: slot.generation }
    }

    fn grow(&mut self) -> u32 {
        self.slots.push(Slot { generation: 0, entry: None });
        self.slots.len() as u32 - 1
    }

    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        if slot.generation == key.generation { slot.entry.as_ref() } else { None }
    }

    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation == key.generation { slot.entry.as_mut() } else { None }
    }

    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(entry)
    }

    /// The key of every entry.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let key = |(index, slot): (usize, &Slot<T>)| {
            slot.entry.as_ref().map(|_| Key { index: index as u32, generation: slot.generation })
        };
        self.slots.iter().enumerate().filter_map(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut table = Table::new();
        let old = table.insert("old");
        assert_eq!(table.remove(old), Some("old"));
        let new = table.insert("new");
        assert_eq!(new.index, old.index);
        assert_eq!(table.get(old), None);
        assert_eq!(table.remove(old), None);
        assert_eq!(table.get(new), Some(&"new"));
        assert_eq!((table.len(), table.keys().collect::<Vec<_>>()), (1, vec![new]));
    }

    #[test]
    fn keys_survive_the_round_trip() {
        let key = Key { index: 7, generation: u32::MAX };
        assert_eq!(Key::from_bits(key.to_bits()), key);
        assert_eq!(Table::<u8>::new().get(key), None);
    }
}
