//! Who is served, and where: the tenants and volumes that are here now, each with its reactor and its identity there. Replaced as a whole when one comes or goes.

use std::sync::{Arc, Mutex, PoisonError};

use larder_engine::VolumeId;

use crate::config::{Config, TenantConfig, VolumeConfig};
use crate::placement::Place;

/// Everybody who is here at a moment.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// What was configured, with the tenants and volumes that are here.
    pub config: Config,
    /// Where its tenants are, in its order.
    pub seats: Vec<Seat>,
}

/// Where a tenant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its reactor, and its identity there.
    pub place: Place,
    /// The identities of its volumes on that reactor, in the order of its configuration.
    pub volumes: Vec<VolumeId>,
    /// Blocks that it found in the cache at the start.
    pub warm_blocks: u32,
}

/// A volume where it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumePlace {
    /// Index of the tenant in the configuration.
    pub tenant: usize,
    /// Index of the reactor.
    pub reactor: usize,
    /// The volume's identity there.
    pub volume: VolumeId,
}

impl Hosted {
    /// Everybody of a configuration, at the start: tenants have these places, and found so many blocks. On each reactor the identities of volumes are dense
    /// from zero, in the order of the configuration, as the engine gives them.
    pub fn at_start(config: Config, places: &[Place], warm_blocks: &[u32]) -> Self {
        let mut next = vec![0; places.iter().map(|place| place.reactor + 1).max().unwrap_or(0)];
        let mut seat = |(index, (tenant, &place)): (usize, (&TenantConfig, &Place))| {
            let first = next[place.reactor];
            next[place.reactor] += tenant.volumes.len() as u16;
            let volumes = (first..next[place.reactor]).map(VolumeId).collect();
            Seat { place, volumes, warm_blocks: warm_blocks.get(index).copied().unwrap_or(0) }
        };
        let seats = config.tenants.iter().zip(places).enumerate().map(&mut seat).collect();
        Self { config, seats }
    }

    /// The tenants, each with where it is.
    pub fn tenants(&self) -> impl Iterator<Item = (&TenantConfig, &Seat)> {
        self.config.tenants.iter().zip(&self.seats)
    }

    /// The volumes, in the order of the configuration, each with where it is.
    pub fn volumes(&self) -> impl Iterator<Item = (&VolumeConfig, VolumePlace)> {
        self.tenants().enumerate().flat_map(|(tenant, (config, seat))| {
            let place = move |&volume| VolumePlace { tenant, reactor: seat.place.reactor, volume };
            config.volumes.iter().zip(seat.volumes.iter().map(place))
        })
    }

    /// The volume of this name.
    pub fn volume(&self, name: &str) -> Option<(&VolumeConfig, VolumePlace)> {
        self.volumes().find(|(volume, _)| volume.name == name)
    }

    /// The index of the tenant of this name.
    pub fn tenant(&self, name: &str) -> Option<usize> {
        self.config.tenants.iter().position(|tenant| tenant.name == name)
    }

    /// The volumes that a name is about: that of a tenant, or of a volume; where both have it, it is the tenant, and `TENANT/VOLUME` is the volume. None where
    /// there is no such name.
    pub fn named(&self, name: &str) -> Vec<(&VolumeConfig, VolumePlace)> {
        let of = |is: &dyn Fn(&str, &str) -> bool| -> Vec<_> {
            let tenant = |place: VolumePlace| self.config.tenants[place.tenant].name.as_str();
            self.volumes().filter(|(volume, place)| is(tenant(*place), &volume.name)).collect()
        };
        let of_tenant = of(&|tenant, _| tenant == name);
        match name.split_once('/') {
            Some((tenant, volume)) => of(&|t, v| (t, v) == (tenant, volume)),
            None if of_tenant.is_empty() => of(&|_, volume| volume == name),
            None => of_tenant,
        }
    }
}

/// Those who are here now, shared.
#[derive(Clone, Debug)]
pub struct SharedHosted(Arc<Mutex<Arc<Hosted>>>);

impl SharedHosted {
    /// These, to begin with.
    pub fn new(hosted: Hosted) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(hosted))))
    }

    /// Those who are here now.
    pub fn get(&self) -> Arc<Hosted> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on it is these.
    pub fn set(&self, hosted: Hosted) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::in_turn;
    use std::path::Path;

    const CONFIG: &str = r#"
        cache = { path = "/c", size = "1MiB" }
        tenant = [
            { name = "a", volume = [
                { name = "b", backing = "/1", nbd = "unix:/s" }, { name = "a2", backing = "/2", nbd = "unix:/s" } ] },
            { name = "b", volume = [{ name = "b1", backing = "/3", nbd = "unix:/s" }] },
            { name = "c", volume = [{ name = "c1", backing = "/4", nbd = "unix:/s" }] },
        ]
    "#;

    fn hosted() -> Hosted {
        let config = Config::parse(Path::new("larder.toml"), Path::new("/"), CONFIG).expect("valid");
        Hosted::at_start(config, &in_turn(3, 2), &[7])
    }

    #[test]
    fn names_are_of_tenants_first_and_then_of_volumes() {
        let hosted = hosted();
        let of = |name: &str| -> Vec<_> {
            hosted.named(name).iter().map(|(volume, _)| volume.name.clone()).collect()
        };
        assert_eq!([of("a"), of("b"), of("c1")], [vec!["b", "a2"], vec!["b1"], vec!["c1"]]);
        assert_eq!([of("a/b"), of("a2")], [vec!["b"], vec!["a2"]]);
        assert!(of("d").is_empty() && of("b/b").is_empty() && of("").is_empty());
    }

    #[test]
    fn volumes_are_numbered_as_their_reactor_does() {
        let hosted = hosted();
        let shown: Vec<_> = hosted.volumes().map(|(_, at)| (at.tenant, at.reactor, at.volume.0)).collect();
        assert_eq!(shown, [(0, 0, 0), (0, 0, 1), (1, 1, 0), (2, 0, 2)]);
        assert_eq!(hosted.seats.iter().map(|seat| seat.warm_blocks).collect::<Vec<_>>(), [7, 0, 0]);
        assert_eq!(hosted.volume("c1").map(|(_, place)| place.tenant), hosted.tenant("c"));
    }
}
