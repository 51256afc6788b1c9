//! The reactors before they run: which tenants and volumes each serves, and what each address offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_engine::format::{Recovered, Volume};
use larder_engine::{Sharing, WritePolicy};
use larder_export::nbd::{Export, ExportTable, NbdFrontend};
use larder_export::ublk::{UblkFrontend, UblkVolume};
use larder_export::vhost::{VhostFrontend, VhostVolume};
use larder_export::{ExportCommand, Exports, ListenAddress, Listener};
use larder_io::{Backing, CacheDevice, Handle, ReactorBuilder, ReactorConfig, SharedPool};

use super::ServeError;
use crate::analyzer::Analyzer;
use crate::config::{Config, TenantConfig};
use crate::epoch::Standing;
use crate::exported::{Exported, Reached};
use crate::loss::Loss;
use crate::placement::{Place, shared_on};
use crate::record::Recorders;

/// Reactors to be.
pub(super) struct ReactorPlan {
    /// Ready to be started, with their tenants, volumes and monitors.
    pub builders: Vec<ReactorBuilder>,
    exports: BTreeMap<ListenAddress, Vec<Export>>,
    /// Those of each reactor.
    vhost: Vec<Vec<VhostVolume>>,
    /// Those of each reactor.
    ublk: Vec<Vec<UblkVolume>>,
    /// Whole once [`ReactorPlan::frontends`] was called.
    exported: Exported,
}

impl ReactorPlan {
    /// `count` reactors on one cache device, without tenants; one where it goes on with what was recovered.
    pub fn new(
        cache: &CacheDevice,
        recovered: Option<&Recovered>,
        count: usize,
        analyzer: &Analyzer,
        recorders: &Recorders,
        config: &Config,
    ) -> Result<Self, ServeError> {
        let pool = recovered.map_or_else(|| SharedPool::new(cache.blocks()), SharedPool::of_recovered);
        let builder = |index| {
            let name = format!("reactor-{index}");
            let (bypass_slow, spin) = (config.cache.bypass_slow, config.control.poll);
            let reactor = ReactorConfig { name, bypass_slow, spin, ..ReactorConfig::default() };
            let mut builder = ReactorBuilder::new(reactor, cache, pool.clone())?;
            builder.monitor(recorders.tap(index, analyzer.sink(index)));
            let (path, file) = (config.cache.path.clone(), config.loss_file());
            builder.on_cache_given_up(move |mark| Loss::begin(&path, mark, &file));
            Ok(builder)
        };
        let builders = (0..count).map(builder).collect::<Result<_, ServeError>>()?;
        let vhost = (0..count).map(|_| Vec::new()).collect();
        let ublk = (0..count).map(|_| Vec::new()).collect();
        Ok(Self { builders, exports: BTreeMap::new(), vhost, ublk, exported: Exported::default() })
    }

    /// Put every tenant in its place, with its first quota and policy. Everything is in the order of the configuration, also the
    /// listeners of those volumes that are served over vhost-user.
    pub fn add_tenants(
        &mut self,
        config: &Config,
        places: &[Place],
        standings: &[Standing],
        backings: Vec<Vec<Backing>>,
        vhost: Vec<Listener>,
    ) -> Result<(), ServeError> {
        let mut vhost = vhost.into_iter();
        let tenants = config.tenants.iter().zip(places).zip(standings).zip(backings);
        tenants.into_iter().try_for_each(|(((tenant, place), standing), backings)| {
            self.add_tenant(tenant, *place, standing, backings, &mut vhost)
        })
    }

    /// Tenants share a partition, if they do, before anything is in it.
    pub fn share(&mut self, places: &[Place], sharing: Sharing) {
        for (reactor, builder) in self.builders.iter_mut().enumerate() {
            builder.set_sharing(shared_on(reactor, places, sharing));
        }
    }

    /// Go on with a cache that is kept, after all tenants were added. `volumes` are those of all tenants, in the order of the
    /// configuration. Returns what each tenant holds then, in blocks.
    pub fn open_cache(
        &mut self,
        recovered: &Recovered,
        volumes: Vec<Volume>,
    ) -> Result<Vec<u32>, ServeError> {
        Ok(self.builders[0].open_cache(recovered, volumes)?)
    }

    /// How clients reach the volumes.
    pub fn take_exported(&mut self) -> Exported {
        std::mem::take(&mut self.exported)
    }

    fn add_tenant(
        &mut self,
        tenant: &TenantConfig,
        place: Place,
        standing: &Standing,
        backings: Vec<Backing>,
        vhost: &mut impl Iterator<Item = Listener>,
    ) -> Result<(), ServeError> {
        let reactor = place.reactor;
        let builder = &mut self.builders[reactor];
        let policy = engine_policy(standing.decision.mode.write);
        let id = builder.add_tenant(standing.decision.quota_blocks, policy)?;
        builder.set_caching(id, standing.decision.mode.caching);
        builder.set_mover(id, standing.batched);
        builder.set_dirty_limits(id, tenant.dirty);
        debug_assert_eq!(id, place.tenant, "identities are dense, in the order of the configuration");
        for (config, backing) in tenant.volumes.iter().zip(backings) {
            let identity = backing.identity();
            let volume = builder.add_volume(id, backing)?;
            builder.set_ordered(volume, config.ordered);
            let info = builder.volume(volume).expect("it was added just now");
            let reached = Reached { config, tenant: &tenant.name, identity, reactor, volume, info };
            if let Some(address) = &config.nbd {
                self.exports.entry(address.clone()).or_default().push(reached.export());
            }
            if let Some(listener) = config.vhost_user.as_ref().and_then(|_| vhost.next()) {
                self.vhost[reactor].push(self.exported.disk(&reached, listener));
            }
            if config.ublk {
                self.ublk[reactor].push(self.exported.block_device(&reached));
            }
        }
        Ok(())
    }

    /// The frontend of each reactor. A listener for NBD belongs to the reactor of its first volume, which hands clients of the
    /// others over.
    pub fn frontends(
        &mut self,
        listeners: Vec<Listener>,
        reactors: &[Handle<ExportCommand>],
    ) -> Vec<Exports> {
        let mut listeners_of: Vec<Vec<_>> = reactors.iter().map(|_| Vec::new()).collect();
        for listener in listeners {
            let exports = self.exports.remove(listener.address()).unwrap_or_default();
            let reactor = exports.first().map_or(0, |export| export.reactor);
            let table = ExportTable::new(exports);
            self.exported.note_door(listener.address().clone(), reactor, Arc::clone(&table));
            listeners_of[reactor].push((listener, table));
        }
        let vhost = std::mem::take(&mut self.vhost);
        let mut ublk = std::mem::take(&mut self.ublk).into_iter();
        let frontend = |((index, listeners), devices)| {
            let nbd = NbdFrontend::new(index, reactors.to_vec(), listeners);
            let vhost = VhostFrontend::new(reactors[index].clone(), devices);
            let disks = ublk.next().unwrap_or_default();
            Exports::new(nbd, vhost).with_ublk(UblkFrontend::new(reactors[index].clone(), disks))
        };
        listeners_of.into_iter().enumerate().zip(vhost).map(frontend).collect()
    }
}

/// The engine's word for a decision's.
pub(super) fn engine_policy(choice: larder_alloc::WritePolicy) -> WritePolicy {
    match choice {
        larder_alloc::WritePolicy::ReadOnly => WritePolicy::ReadOnly,
        // No allocator here lets reads of a partition pass by.
        larder_alloc::WritePolicy::WriteBack | larder_alloc::WritePolicy::WriteOnly => WritePolicy::WriteBack,
        larder_alloc::WritePolicy::WriteThroughNoAllocate => WritePolicy::WriteThroughNoAllocate,
        larder_alloc::WritePolicy::WriteThrough => WritePolicy::WriteThrough,
    }
}
