//! Which reactor serves which tenant.
//!
//! Tenants are spread in turn; all volumes of a tenant are on its reactor, since they share a partition that only one
//! thread may touch.

use std::thread;

use larder_engine::{Sharing, TenantId};

use crate::analyzer::Routes;
use crate::config::Config;

/// The place of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the reactor.
    pub reactor: usize,
    /// The tenant's identity there.
    pub tenant: TenantId,
}

/// Reactors that a configuration gets: one where the cache is kept; else as many as it asks for, or one per core, but never more
/// than tenants.
pub fn reactor_count(config: &Config) -> usize {
    if config.cache.keep {
        return 1;
    }
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let wanted = config.control.reactors.map_or_else(cores, |reactors| reactors as usize);
    wanted.clamp(1, config.tenants.len().max(1))
}

/// The places of `tenants` tenants on `reactors` reactors, in turn. Identities are dense from zero on each reactor, in
/// the order of the configuration, as the engine gives them.
pub fn in_turn(tenants: usize, reactors: usize) -> Vec<Place> {
    let reactors = reactors.max(1);
    let place = |index| {
        let tenant = u16::try_from(index / reactors).unwrap_or(u16::MAX);
        Place { reactor: index % reactors, tenant: TenantId(tenant) }
    };
    (0..tenants).map(place).collect()
}

/// The reactor for one tenant more, of so many: the first of those that have the fewest.
pub fn for_newcomer<'a>(places: impl Iterator<Item = &'a Place>, reactors: usize) -> usize {
    let mut counts = vec![0; reactors.max(1)];
    places.for_each(|place| counts[place.reactor] += 1);
    (0..counts.len()).min_by_key(|&reactor| counts[reactor]).unwrap_or(0)
}

/// What tenants share, as far as those of one reactor do: they have a part of it for their number.
pub fn shared_on(reactor: usize, places: &[Place], sharing: Sharing) -> Sharing {
    let here = places.iter().filter(|place| place.reactor == reactor).count() as u64;
    // A part of a number of blocks.
    let part = |blocks: u32| (u64::from(blocks) * here / places.len().max(1) as u64) as u32;
    match sharing {
        Sharing::Off => Sharing::Off,
        Sharing::All { blocks, caching } => Sharing::All { blocks: part(blocks), caching },
        Sharing::Spill { blocks, caching } => Sharing::Spill { blocks: part(blocks), caching },
    }
}

/// The tenants of each reactor, by their identity there. Identities of tenants that are gone lead nowhere.
pub fn routes(places: &[Place]) -> Routes {
    places.iter().enumerate().map(|(index, place)| ((place.reactor, place.tenant), index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_policy::spec::CachingSpec;

    #[test]
    fn tenants_take_turns_and_are_found_again() {
        let places = in_turn(5, 2);
        let shown: Vec<_> = places.iter().map(|place| (place.reactor, place.tenant.0)).collect();
        assert_eq!(shown, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]);
        let routes = routes(&places);
        for (index, place) in places.iter().enumerate() {
            assert_eq!(routes[&(place.reactor, place.tenant)], index);
        }
        let all = |blocks| Sharing::All { blocks, caching: CachingSpec::default() };
        assert_eq!([0, 1].map(|reactor| shared_on(reactor, &places, all(101))), [all(60), all(40)]);
        assert_eq!(shared_on(0, &in_turn(3, 1), all(101)), all(101));
        assert_eq!((for_newcomer(places.iter(), 2), for_newcomer(places[1..].iter(), 2)), (1, 0));
    }
}
