//! Something is set while the daemon runs: judged as a whole, written down, then in effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::checked;
use super::reload::{ReloadError, Reloader};
use crate::hosted::Hosted;
use crate::settings::{Changed, SettingError, Settings};

/// What has come of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Set {
    /// All that differs from the configuration file now.
    pub changed: Vec<Changed>,
}

impl Reloader {
    /// Set these keys, of a tenant or of `[control]`.
    ///
    /// # Errors
    /// Where that cannot be, or cannot be written down: then nothing has changed.
    pub fn set(&self, tenant: Option<&str>, pairs: &BTreeMap<String, String>) -> Result<Set, ReloadError> {
        let _alone = self.alone()?;
        let now = self.collector.hosted.get();
        if let Some(name) = tenant.filter(|name| now.tenant(name).is_none()) {
            return Err(SettingError::UnknownTenant(name.to_owned()).into());
        }
        let before = self.settings();
        let mut wanted = before.clone();
        pairs.iter().for_each(|(key, value)| wanted.set(tenant, key, value));
        let mut next = Hosted::clone(&now);
        next.config = self.file_config(&now.config);
        wanted.apply(&mut next.config)?;
        checked::epoch_loop(&next.config, self.collector.blocks())?;
        let path = now.config.settings_file();
        wanted.save(&path)?;
        if let Err(error) = self.put_into_effect(&now, next) {
            // What is written down is what is in effect.
            before.save(&path)?;
            return Err(error);
        }
        tracing::info!(tenant, ?pairs, "set");
        let changed = wanted.differences(&self.file_config(&now.config));
        self.keep_settings(wanted);
        Ok(Set { changed })
    }

    /// What was set, as it differs from the configuration file.
    pub fn differences(&self) -> Set {
        let config = self.file_config(&self.collector.hosted.get().config);
        Set { changed: self.settings().differences(&config) }
    }

    /// The loop, and with it the reactors, go by the new configuration.
    fn put_into_effect(&self, now: &Hosted, next: Hosted) -> Result<(), ReloadError> {
        let (old, new) = (&now.config, &next.config);
        let tenants: Vec<_> = new.tenants.iter().map(|tenant| checked::loop_tenant(new, tenant)).collect();
        if tenants != old.tenants.iter().map(|tenant| checked::loop_tenant(old, tenant)).collect::<Vec<_>>() {
            self.analyzer.set_tenants(tenants, next.seats.iter().map(|seat| seat.place).collect())?;
        }
        if (old.control.allocator, old.control.epoch) != (new.control.allocator, new.control.epoch) {
            self.analyzer.switch(new.control.allocator.allocator(), new.control.epoch)?;
        }
        if old.control.write_budget != new.control.write_budget {
            self.analyzer.set_budget(checked::write_budget(new, self.collector.blocks()))?;
        }
        self.collector.hosted.set(next);
        Ok(())
    }
}

/// What was set, on top of what the file says.
pub(super) fn load(config: &crate::config::Config) -> Result<Settings, super::ServeError> {
    Ok(Settings::load(&config.settings_file())?)
}
