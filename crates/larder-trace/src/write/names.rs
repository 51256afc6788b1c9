//! What the volumes are called in a format that has other rules for names than we.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Format, Volume, WriteError};

/// The names of the volumes written so far: no two volumes share one.
pub(super) struct Names {
    format: Format,
    /// The name of a volume in the format, or why it has none.
    make: fn(&Volume) -> Result<String, &'static str>,
    names: BTreeMap<Volume, String>,
    used: BTreeSet<String>,
    /// The last volume: most requests are for the same.
    last: Option<(Volume, String)>,
}

impl Names {
    pub(super) fn new(format: Format, make: fn(&Volume) -> Result<String, &'static str>) -> Self {
        Self { format, make, names: BTreeMap::new(), used: BTreeSet::new(), last: None }
    }

    /// The name of a volume, and whether the volume is new.
    pub(super) fn of(&mut self, volume: &Volume) -> Result<(&str, bool), WriteError> {
        let mut is_new = false;
        if self.last.as_ref().is_none_or(|(last, _)| last != volume) {
            let name = match self.names.get(volume) {
                Some(name) => name.clone(),
                None => {
                    is_new = true;
                    self.add(volume)?
                }
            };
            self.last = Some((volume.clone(), name));
        }
        let (_, name) = self.last.as_ref().expect("it has just been set where it was another");
        Ok((name, is_new))
    }

    /// The names in use.
    pub(super) fn used(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(String::as_str)
    }

    fn add(&mut self, volume: &Volume) -> Result<String, WriteError> {
        let error = |why| WriteError::Name { format: self.format, volume: volume.clone(), why };
        let name = (self.make)(volume).map_err(error)?;
        if !self.used.insert(name.clone()) {
            return Err(error("another volume has the same name there"));
        }
        self.names.insert(volume.clone(), name.clone());
        Ok(name)
    }
}
