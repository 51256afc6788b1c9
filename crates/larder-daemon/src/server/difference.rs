//! What has to come and go so that a changed configuration is served.

use crate::config::{Config, TenantConfig, VolumeConfig};

/// Who comes and who goes. Everything else is as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// Names of volumes.
    pub leaving: Vec<String>,
    /// Names of tenants, of which all volumes leave.
    pub tenants_leaving: Vec<String>,
    /// Without their volumes.
    pub tenants_coming: Vec<TenantConfig>,
    /// With the names of their tenants.
    pub coming: Vec<(String, VolumeConfig)>,
}

impl Difference {
    /// Between what is served and what is wanted; else what differs in another way than that tenants and volumes come and go.
    pub fn between(now: &Config, wanted: &Config) -> Result<Self, String> {
        if now.cache != wanted.cache {
            return Err("[cache]".into());
        }
        if now.control != wanted.control {
            return Err("[control]".into());
        }
        if now.api != wanted.api {
            return Err("[api]".into());
        }
        let mut found = Self::default();
        for tenant in &wanted.tenants {
            match now.tenants.iter().find(|known| known.name == tenant.name) {
                None => found.tenants_coming.push(alone(tenant)),
                Some(known) if alone(known) != alone(tenant) => {
                    return Err(format!("tenant \"{}\"", tenant.name));
                }
                Some(_) => {}
            }
            for volume in &tenant.volumes {
                match find(now, &volume.name) {
                    None => found.coming.push((tenant.name.clone(), volume.clone())),
                    Some((owner, known)) if owner != tenant.name || known != volume => {
                        return Err(format!("volume \"{}\"", volume.name));
                    }
                    Some(_) => {}
                }
            }
        }
        let is_wanted = |volume: &&VolumeConfig| find(wanted, &volume.name).is_some();
        found.leaving = now.volumes().filter(|v| !is_wanted(v)).map(|volume| volume.name.clone()).collect();
        let stays = |tenant: &&TenantConfig| wanted.tenants.iter().any(|other| other.name == tenant.name);
        found.tenants_leaving =
            now.tenants.iter().filter(|t| !stays(t)).map(|tenant| tenant.name.clone()).collect();
        Ok(found)
    }
}

fn alone(tenant: &TenantConfig) -> TenantConfig {
    TenantConfig { volumes: Vec::new(), ..tenant.clone() }
}

/// A volume, with its tenant's name.
fn find<'a>(config: &'a Config, name: &str) -> Option<(&'a str, &'a VolumeConfig)> {
    config.tenants.iter().find_map(|tenant| {
        Some((tenant.name.as_str(), tenant.volumes.iter().find(|volume| volume.name == name)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const TWO: &str = r#"{ name = "a", volume = [{ name = "a1", backing = "/1", nbd = "unix:/s" }] },
        { name = "b", volume = [{ name = "b1", backing = "/2", nbd = "unix:/s" }, { name = "b2", backing = "/3", nbd = "unix:/s" }] }"#;

    fn config(size: &str, tenants: &str) -> Config {
        let text = format!("cache = {{ path = \"/c\", size = \"{size}\" }}\ntenant = [{tenants}]");
        Config::parse(Path::new("larder.toml"), Path::new("/"), &text).expect("valid")
    }

    fn between(tenants: &str) -> Result<Difference, String> {
        Difference::between(&config("1MiB", TWO), &config("1MiB", tenants))
    }

    #[test]
    fn volumes_and_tenants_come_and_go() {
        assert_eq!(between(TWO), Ok(Difference::default()));
        let changed = r#"{ name = "c", volume = [{ name = "c1", backing = "/9", nbd = "unix:/s" }] },
            { name = "b", volume = [{ name = "b2", backing = "/3", nbd = "unix:/s" }, { name = "b3", backing = "/4", nbd = "unix:/s" }] }"#;
        let found = between(changed).expect("only that");
        assert_eq!(
            (found.leaving, found.tenants_leaving),
            (vec!["a1".into(), "b1".into()], vec!["a".into()])
        );
        let coming: Vec<_> = found.coming.iter().map(|(t, v)| (t.as_str(), v.name.as_str())).collect();
        assert_eq!(coming, [("c", "c1"), ("b", "b3")]);
        assert_eq!(found.tenants_coming.len(), 1);
        assert!(found.tenants_coming[0].name == "c" && found.tenants_coming[0].volumes.is_empty());
    }

    #[test]
    fn everything_else_is_named() {
        let moved = r#"{ name = "a", volume = [{ name = "b1", backing = "/2", nbd = "unix:/s" }] }"#;
        assert_eq!(between(moved), Err("volume \"b1\"".into()));
        let elsewhere = TWO.replace("/1", "/7");
        assert_eq!(between(&elsewhere), Err("volume \"a1\"".into()));
        let larger = TWO.replace("name = \"a\",", "name = \"a\", quota = \"64KiB\",");
        assert_eq!(between(&larger), Err("tenant \"a\"".into()));
        let cache = Difference::between(&config("1MiB", TWO), &config("2MiB", TWO));
        assert_eq!(cache, Err("[cache]".into()));
    }
}
