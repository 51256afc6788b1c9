//! Writing a configuration as TOML, such that reading it back gives the same configuration.

use std::fmt;

use larder_engine::DirtyLimits;

use super::{Config, GoalsConfig, TenantConfig, VolumeConfig};
use crate::units::{ExactDuration, ExactSize};

/// A string as a TOML literal.
pub(super) fn quoted(text: impl fmt::Display) -> toml::Value {
    toml::Value::String(text.to_string())
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, control, api, tenants } = self;
        writeln!(f, "[cache]")?;
        writeln!(f, "path = {}", quoted(cache.path.display()))?;
        writeln!(f, "size = \"{}\"", ExactSize(cache.size_bytes))?;
        writeln!(f, "block_size = \"{}\"", ExactSize(cache.block_bytes.into()))?;
        writeln!(f, "keep = {}", cache.keep)?;
        if let Some(endurance) = &cache.endurance {
            writeln!(f, "endurance = \"{endurance}\"")?;
        }
        writeln!(f, "bypass_slow = {}", cache.bypass_slow)?;
        writeln!(f, "\n[control]")?;
        writeln!(f, "socket = {}", quoted(control.socket.display()))?;
        if let Some(group) = &control.socket_group {
            writeln!(f, "socket_group = {}", quoted(group))?;
        }
        writeln!(f, "allocator = \"{}\"", control.allocator.as_str())?;
        writeln!(f, "epoch = \"{}\"", ExactDuration(control.epoch))?;
        writeln!(f, "min_blocks = {}", control.min_blocks)?;
        writeln!(f, "write_threshold = {:?}", control.write_threshold)?;
        writeln!(f, "write_back = {}", control.write_back)?;
        writeln!(f, "write_budget = \"{}\"", control.write_budget)?;
        if let Some(reactors) = control.reactors {
            writeln!(f, "reactors = {reactors}")?;
        }
        if let Some(poll) = control.poll {
            writeln!(f, "poll = \"{}\"", ExactDuration(poll))?;
        }
        if let Some(path) = &control.loss_file {
            writeln!(f, "loss_file = {}", quoted(path.display()))?;
        }
        api.iter().try_for_each(|api| write!(f, "{api}"))?;
        tenants.iter().try_for_each(|tenant| write_tenant(f, tenant))
    }
}

fn write_tenant(f: &mut fmt::Formatter<'_>, tenant: &TenantConfig) -> fmt::Result {
    writeln!(f, "\n[[tenant]]")?;
    writeln!(f, "name = {}", quoted(&tenant.name))?;
    if let Some(bytes) = tenant.quota_bytes {
        writeln!(f, "quota = \"{}\"", ExactSize(bytes))?;
    }
    writeln!(f, "write_policy = \"{}\"", tenant.write_policy.as_str())?;
    let DirtyLimits { rest, max, age } = tenant.dirty;
    if tenant.dirty != DirtyLimits::default() {
        writeln!(f, "dirty_rest = {rest}\ndirty_max = {max}\ndirty_age = \"{age}s\"")?;
    }
    if let Some(caching) = tenant.caching {
        writeln!(f, "replacement = \"{}\"", caching.policy())?;
        writeln!(f, "admission = \"{}\"", caching.admission())?;
    }
    if let Some(population) = tenant.population {
        writeln!(f, "population = \"{}\"", population.as_str())?;
    }
    write_goals(f, &tenant.goals)?;
    tenant.volumes.iter().try_for_each(|volume| write_volume(f, volume))
}

fn write_goals(f: &mut fmt::Formatter<'_>, goals: &GoalsConfig) -> fmt::Result {
    let GoalsConfig { weight, share, latency, iops, max_bytes } = *goals;
    if goals.weight != GoalsConfig::default().weight {
        writeln!(f, "weight = {weight:?}")?;
    }
    share.map_or(Ok(()), |share| writeln!(f, "share = {share:?}"))?;
    latency.map_or(Ok(()), |latency| writeln!(f, "latency = \"{}\"", ExactDuration(latency)))?;
    iops.map_or(Ok(()), |iops| writeln!(f, "iops = {iops:?}"))?;
    max_bytes.map_or(Ok(()), |bytes| writeln!(f, "max = \"{}\"", ExactSize(bytes)))
}

fn write_volume(f: &mut fmt::Formatter<'_>, volume: &VolumeConfig) -> fmt::Result {
    writeln!(f, "\n[[tenant.volume]]")?;
    writeln!(f, "name = {}", quoted(&volume.name))?;
    writeln!(f, "backing = {}", quoted(&volume.backing))?;
    if let Some(address) = &volume.nbd {
        writeln!(f, "nbd = {}", quoted(address))?;
    }
    if let Some(path) = &volume.vhost_user {
        writeln!(f, "vhost_user = {}", quoted(path.display()))?;
    }
    if volume.ublk {
        writeln!(f, "ublk = true")?;
    }
    if volume.ordered {
        writeln!(f, "ordered = true")?;
    }
    Ok(())
}
