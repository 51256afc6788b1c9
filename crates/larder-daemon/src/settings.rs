//! What operators have changed while the daemon runs, on top of `larder.toml`: who decides, how often, and what is wanted for tenants.
//!
//! The file stays the operators'; what is set is kept in a file of its own ([`crate::config::Config::settings_file`]), and is in effect again after a restart. Each setting is a key of the file
//! with a value written as there; `none` takes an optional one away, `default` gives back what the file says. A setting of a tenant that is not there waits for it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::config::{AllocatorChoice, Config, EPOCH_MAX, EPOCH_MIN, PolicyChoice, Population, TenantConfig};
use crate::durable_file;
use crate::units::{ExactDuration, ExactSize, parse_duration, parse_size};
use crate::wear::budget::BudgetChoice;

/// Takes a value that may be absent away.
pub const NONE: &str = "none";

/// Gives back what the file says.
pub const DEFAULT: &str = "default";

/// The keys of `[control]` that can be set.
pub const CONTROL_KEYS: [&str; 3] = ["allocator", "epoch", "write_budget"];

/// The keys of `[[tenant]]` that can be set.
pub const TENANT_KEYS: [&str; 8] =
    ["quota", "max", "write_policy", "population", "weight", "share", "latency", "iops"];

/// A value cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// There is no such key.
    #[error("\"{key}\" cannot be set: {} can", known.join(", "))]
    UnknownKey {
        /// What was wanted.
        key: String,
        /// What there is.
        known: &'static [&'static str],
    },
    /// There is no such tenant.
    #[error("there is no tenant \"{0}\"")]
    UnknownTenant(String),
    /// This is no value of the key.
    #[error("{key} = {value}: {why}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

/// The file with the settings cannot be read or written.
#[derive(Debug, Error)]
#[error("cannot {action} {}, which has what was set: {source}", path.display())]
pub struct SettingsFileError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

/// One setting, as it differs from the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    /// The tenant; none for `[control]`.
    pub tenant: Option<String>,
    /// The key.
    pub key: String,
    /// What the file says, or its default.
    pub file: String,
    /// What is in effect.
    pub now: String,
}

/// All that was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    control: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tenants: BTreeMap<String, BTreeMap<String, String>>,
}

impl Settings {
    /// Those of the file; none where there is no file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub fn load(path: &Path) -> Result<Self, SettingsFileError> {
        let failed = |source| SettingsFileError { path: path.to_owned(), action: "read", source };
        Ok(durable_file::load(path).map_err(failed)?.unwrap_or_default())
    }

    /// Keep them in the file, durably; without any there is none.
    ///
    /// # Errors
    /// Where it cannot be written: it is as it was.
    pub fn save(&self, path: &Path) -> Result<(), SettingsFileError> {
        let saved = if *self == Self::default() {
            durable_file::remove(path)
        } else {
            durable_file::save(path, self)
        };
        saved.map_err(|source| SettingsFileError { path: path.to_owned(), action: "write", source })
    }

    /// With one more, of a tenant or of `[control]`.
    pub fn set(&mut self, tenant: Option<&str>, key: &str, value: &str) {
        let of = match tenant {
            Some(name) => self.tenants.entry(name.to_owned()).or_default(),
            None => &mut self.control,
        };
        match value {
            DEFAULT => of.remove(key),
            _ => of.insert(key.to_owned(), value.to_owned()),
        };
        self.tenants.retain(|_, settings| !settings.is_empty());
    }

    /// Put them on top of what a file says.
    ///
    /// # Errors
    /// The first that cannot be: the file has changed since, or the settings were written by hand.
    pub fn apply(&self, config: &mut Config) -> Result<(), SettingError> {
        for (key, value) in &self.control {
            set_control(config, key, value)?;
        }
        for (name, settings) in &self.tenants {
            let Some(at) = config.tenants.iter().position(|tenant| tenant.name == *name) else { continue };
            // What excludes another comes after it is taken away.
            let (away, put): (Vec<_>, Vec<_>) = settings.iter().partition(|(_, value)| *value == NONE);
            for (key, value) in away.into_iter().chain(put) {
                set_tenant(config, at, key, value)?;
            }
        }
        Ok(())
    }

    /// What differs from the file that says `config`.
    pub fn differences(&self, config: &Config) -> Vec<Changed> {
        let mut now = config.clone();
        // What cannot be in effect is told as it is.
        let _ = self.apply(&mut now);
        let control = self.control.keys().map(|key| Changed {
            tenant: None,
            key: key.clone(),
            file: get_control(config, key),
            now: get_control(&now, key),
        });
        let tenants = self.tenants.iter().flat_map(|(name, settings)| {
            let of = |config: &Config, key: &str| {
                let tenant = config.tenants.iter().find(|tenant| tenant.name == *name);
                tenant.map_or_else(|| "(no such tenant)".into(), |tenant| get_tenant(tenant, key))
            };
            let change = |key: &String| Changed {
                tenant: Some(name.clone()),
                key: key.clone(),
                file: of(config, key),
                now: of(&now, key),
            };
            settings.keys().map(change).collect::<Vec<_>>()
        });
        control.chain(tenants).collect()
    }
}

/// The choice of this name; which there are, where it is none.
fn named<T: Copy>(choices: &[(&'static str, T)], value: &str) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == value);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(|(_, choice)| *choice).ok_or_else(|| format!("use one of {}", names()))
}

fn set_control(config: &mut Config, key: &str, value: &str) -> Result<(), SettingError> {
    let wrong = |why: String| SettingError::Value { key: key.into(), value: value.into(), why };
    match key {
        "allocator" => {
            config.control.allocator = named(&AllocatorChoice::NAMED, value).map_err(wrong)?;
        }
        "epoch" => {
            let epoch = parse_duration(value).map_err(|error| wrong(error.to_string()))?;
            if !(EPOCH_MIN..=EPOCH_MAX).contains(&epoch) {
                return Err(wrong("use at least 1s, and no more than a year".into()));
            }
            config.control.epoch = epoch;
        }
        "write_budget" => {
            let budget = value.parse().map_err(|form| wrong(format!("use {form}")))?;
            if budget == BudgetChoice::Endurance && config.cache.endurance.is_none() {
                return Err(wrong(
                    "[cache] has no endurance: set the budget itself, 200GiB/day for example".into(),
                ));
            }
            config.control.write_budget = budget;
        }
        _ => return Err(SettingError::UnknownKey { key: key.into(), known: &CONTROL_KEYS }),
    }
    Ok(())
}

fn get_control(config: &Config, key: &str) -> String {
    match key {
        "allocator" => config.control.allocator.as_str().into(),
        "epoch" => ExactDuration(config.control.epoch).to_string(),
        "write_budget" => config.control.write_budget.to_string(),
        _ => String::new(),
    }
}

fn set_tenant(config: &mut Config, at: usize, key: &str, value: &str) -> Result<(), SettingError> {
    let wrong = |why: String| SettingError::Value { key: key.into(), value: value.into(), why };
    let block = config.cache.block_bytes;
    let size = || -> Result<Option<u64>, SettingError> {
        if value == NONE {
            return Ok(None);
        }
        let bytes = parse_size(value).map_err(|error| wrong(error.to_string()))?;
        if bytes < block.into() {
            return Err(wrong(format!("less than a block: use at least {}", ExactSize(block.into()))));
        }
        Ok(Some(bytes))
    };
    let number = || -> Result<Option<f64>, SettingError> {
        if value == NONE {
            return Ok(None);
        }
        let number = value.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
        number.map(Some).ok_or_else(|| wrong("use a number above 0".into()))
    };
    let keep = config.cache.keep;
    let tenant = &mut config.tenants[at];
    let goals = &mut tenant.goals;
    match key {
        "quota" => tenant.quota_bytes = size()?,
        "max" => goals.max_bytes = size()?,
        "weight" => goals.weight = number()?.unwrap_or(1.0),
        "share" => goals.share = number()?,
        "iops" => goals.iops = number()?,
        "latency" => {
            let latency = (value != NONE).then(|| parse_duration(value)).transpose();
            goals.latency = latency.map_err(|error| wrong(error.to_string()))?;
            if goals.latency == Some(Duration::ZERO) {
                return Err(wrong("use a mean latency such as 2ms".into()));
            }
        }
        "write_policy" => {
            let policy = named(&PolicyChoice::NAMED, value).map_err(wrong)?;
            if policy == PolicyChoice::WriteBack && !keep {
                return Err(wrong("the cache is not kept over restarts: use wt or ro".into()));
            }
            tenant.write_policy = policy;
        }
        "population" if value == NONE => tenant.population = None,
        "population" => tenant.population = Some(named(&Population::NAMED, value).map_err(wrong)?),
        _ => return Err(SettingError::UnknownKey { key: key.into(), known: &TENANT_KEYS }),
    }
    if goals.latency.is_some() && goals.iops.is_some() {
        let other = if key == "iops" { "latency" } else { "iops" };
        return Err(wrong(format!("a latency or IOPS are promised, not both: set {other}=none as well")));
    }
    Ok(())
}

fn get_tenant(tenant: &TenantConfig, key: &str) -> String {
    let size = |bytes: Option<u64>| bytes.map_or(NONE.into(), |bytes| ExactSize(bytes).to_string());
    let number = |number: Option<f64>| number.map_or(NONE.into(), |number| number.to_string());
    let goals = &tenant.goals;
    match key {
        "quota" => size(tenant.quota_bytes),
        "max" => size(goals.max_bytes),
        "weight" => goals.weight.to_string(),
        "share" => number(goals.share),
        "iops" => number(goals.iops),
        "latency" => goals.latency.map_or(NONE.into(), |latency| ExactDuration(latency).to_string()),
        "write_policy" => tenant.write_policy.as_str().into(),
        "population" => tenant.population.map_or(NONE, Population::as_str).into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        cache = { path = "/c", size = "1MiB" }
        tenant = [{ name = "a", latency = "5ms", volume = [{ name = "a1", backing = "/1", nbd = "unix:/s" }] }]"#;

    fn config() -> Config {
        Config::parse(Path::new("larder.toml"), Path::new("/"), TEXT).expect("valid")
    }

    fn with(tenant: Option<&str>, pairs: &[(&str, &str)]) -> Result<Config, SettingError> {
        let mut settings = Settings::default();
        pairs.iter().for_each(|(key, value)| settings.set(tenant, key, value));
        let mut config = config();
        settings.apply(&mut config).map(|()| config)
    }

    #[test]
    fn every_key_can_be_set_and_is_told() {
        let control = [("allocator", "centaur"), ("epoch", "90s"), ("write_budget", "2GiB/day")];
        let changed = with(None, &control).expect("valid");
        assert_eq!(changed.control.allocator, AllocatorChoice::Centaur);
        assert_eq!(changed.control.epoch, Duration::from_secs(90));
        let tenant = [
            ("iops", "500"),
            ("latency", "none"),
            ("max", "64KiB"),
            ("population", "batched"),
            ("quota", "32KiB"),
            ("share", "2.5"),
            ("weight", "3"),
            ("write_policy", "wb"),
        ];
        let changed = with(Some("a"), &tenant).expect("valid");
        for (key, value) in tenant {
            assert_eq!(get_tenant(&changed.tenants[0], key), value);
        }
        for (key, value) in control {
            assert_eq!(get_control(&with(None, &control).expect("valid"), key), value);
        }
        let mut keys: Vec<_> = tenant.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        let mut known = TENANT_KEYS;
        known.sort_unstable();
        assert_eq!(keys, known);
    }

    #[test]
    fn what_cannot_be_says_why() {
        let said = |tenant, pairs: &[(&str, &str)]| with(tenant, pairs).expect_err("wrong").to_string();
        assert_eq!(
            said(None, &[("allocator", "best")]),
            "allocator = best: use one of larder, centaur, eci, scave, wss, unified, combined, static"
        );
        assert_eq!(
            said(None, &[("size", "1")]),
            "\"size\" cannot be set: allocator, epoch, write_budget can"
        );
        assert_eq!(
            said(None, &[("write_budget", "endurance")]),
            "write_budget = endurance: [cache] has no endurance: set the budget itself, 200GiB/day for example"
        );
        assert!(
            said(None, &[("write_budget", "2GiB")]).starts_with("write_budget = 2GiB: use \"unlimited\"")
        );
        assert_eq!(said(None, &[("epoch", "1ms")]), "epoch = 1ms: use at least 1s, and no more than a year");
        assert_eq!(
            said(Some("a"), &[("iops", "100")]),
            "iops = 100: a latency or IOPS are promised, not both: set latency=none as well"
        );
        assert_eq!(said(Some("a"), &[("weight", "-1")]), "weight = -1: use a number above 0");
        assert_eq!(said(Some("a"), &[("max", "1")]), "max = 1: less than a block: use at least 4KiB");
        assert!(said(Some("a"), &[("name", "b")]).starts_with("\"name\" cannot be set: quota, max,"));
        assert!(with(Some("late"), &[("weight", "2")]).is_ok(), "it may come");
    }

    #[test]
    fn they_outlive_the_daemon_until_they_are_taken_back() {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().join("c.settings.json");
        let mut settings = Settings::load(&path).expect("no file");
        settings.set(Some("a"), "latency", "2ms");
        settings.set(None, "allocator", "eci");
        settings.save(&path).expect("written");
        assert_eq!(Settings::load(&path).expect("ours"), settings);
        let told: Vec<_> = settings.differences(&config()).into_iter().map(|it| (it.file, it.now)).collect();
        assert_eq!(told, [("larder".into(), "eci".into()), ("5ms".into(), "2ms".into())]);
        settings.set(Some("a"), "latency", "default");
        settings.set(None, "allocator", "default");
        assert_eq!((settings.differences(&config()), settings.save(&path).is_ok()), (vec![], true));
        assert!(!path.exists());
        std::fs::write(&path, "no json").expect("written");
        let error = Settings::load(&path).expect_err("no settings").to_string();
        assert!(error.starts_with("cannot read ") && error.contains("which has what was set"), "{error}");
    }
}
