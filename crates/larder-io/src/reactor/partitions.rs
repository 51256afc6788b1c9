//! What the loop of an epoch tells a reactor, and asks it: how tenants' partitions are run, and how they are used.

use super::run::Reactor;
use crate::frontend::Frontend;
use crate::mailbox::PartitionCommand;
use crate::stats::{Spending, TenantOffers, TenantSpending, TenantUse};
use larder_engine::{TenantId, TenantStats};

impl<F: Frontend> Reactor<F> {
    pub(super) fn run_partitions(&mut self, command: PartitionCommand) {
        let engine = &mut self.cx.driver.engine;
        let known = |tenant: TenantId| tenant.0 < self.tenants;
        match command {
            PartitionCommand::Quota { tenant, blocks } if known(tenant) => {
                engine.set_quota(tenant, blocks);
                self.trim_due = true;
            }
            PartitionCommand::Bounds { tenant, least, most } if known(tenant) => {
                engine.set_bounds(tenant, least, most);
                self.trim_due = true;
            }
            PartitionCommand::WritePolicy { tenant, policy } if known(tenant) => {
                engine.set_write_policy(tenant, policy);
            }
            PartitionCommand::Caching { tenant, caching } if known(tenant) => {
                engine.set_caching(tenant, caching);
            }
            PartitionCommand::Mover { tenant, moves } if known(tenant) => engine.set_mover(tenant, moves),
            PartitionCommand::Quota { tenant, .. }
            | PartitionCommand::Bounds { tenant, .. }
            | PartitionCommand::Mover { tenant, .. }
            | PartitionCommand::WritePolicy { tenant, .. }
            | PartitionCommand::Caching { tenant, .. } => {
                tracing::warn!(?tenant, "a command for a tenant that this reactor does not have");
            }
            PartitionCommand::Lending(lending) => {
                engine.set_lending(lending);
                self.trim_due = true;
            }
            PartitionCommand::Watermarks(watermarks) => engine.set_watermarks(watermarks),
            PartitionCommand::Sharing(sharing) => {
                engine.set_sharing(sharing);
                self.trim_due = true;
            }
            PartitionCommand::StreamBypass(bytes) => engine.set_stream_bypass(bytes),
            PartitionCommand::WatchHits(watch) => engine.watch_hits(watch),
            PartitionCommand::MoveIn => {
                engine.move_in();
                let crate::Context { lane, driver, .. } = &mut *self.cx;
                driver.act(lane);
            }
            PartitionCommand::Use(asker) => {
                self.cx.driver.monitor.flush();
                let uses = (0..self.tenants).map(|tenant| self.tenant_use(TenantId(tenant))).collect();
                // An asker that has gone meanwhile does not need the answer.
                let _ = asker.send(uses);
            }
            PartitionCommand::WriteLimits(limits) => {
                for (tenant, limit) in limits.into_iter().filter(|(tenant, _)| known(*tenant)) {
                    engine.set_write_limit(tenant, limit);
                }
            }
            PartitionCommand::CommonLimit(bytes) => engine.set_common_limit(bytes),
            PartitionCommand::Doors(remembered) => {
                engine.set_doors(remembered);
                self.cx.driver.clocked.set_shapes(remembered.is_some());
            }
            PartitionCommand::OpenDoors(terms) => {
                for (tenant, terms) in terms.iter().filter(|(tenant, _)| known(*tenant)) {
                    engine.open_doors(*tenant, terms);
                }
            }
            PartitionCommand::Offers(asker) => {
                self.cx.driver.monitor.flush();
                let offers = (0..self.tenants).map(|tenant| self.tenant_offers(TenantId(tenant)));
                // Likewise.
                let _ = asker.send(offers.collect());
            }
            PartitionCommand::Spent(asker) => {
                let tenants = (0..self.tenants).map(|tenant| self.tenant_spending(TenantId(tenant)));
                let spending = Spending {
                    tenants: tenants.collect(),
                    bytes: self.cx.driver.engine.all_spent_bytes(),
                    metadata_bytes: self.cx.driver.engine.metadata_bytes(),
                };
                // Likewise.
                let _ = asker.send(spending);
            }
        }
    }

    fn tenant_spending(&self, tenant: TenantId) -> TenantSpending {
        let engine = &self.cx.driver.engine;
        let TenantStats { refused_blocks, diverted_blocks, turned_away_blocks, .. } = engine.stats(tenant);
        let bytes = engine.spent_bytes(tenant);
        TenantSpending { bytes, refused_blocks, diverted_blocks, turned_away_blocks }
    }

    fn tenant_offers(&self, tenant: TenantId) -> Option<Box<TenantOffers>> {
        let driver = &self.cx.driver;
        let (offered, served) = (driver.engine.offered(tenant), driver.clocked.shaped(tenant));
        if offered.is_none() && served.is_none() {
            return None;
        }
        let offered = offered.cloned().unwrap_or_default();
        Some(Box::new(TenantOffers { offered, served: served.copied().unwrap_or_default() }))
    }

    fn tenant_use(&mut self, tenant: TenantId) -> TenantUse {
        let driver = &mut self.cx.driver;
        let [read_hits, read_misses, write_hits, write_misses] = driver.clocked.served(tenant);
        TenantUse {
            tenant,
            stats: driver.engine.stats(tenant),
            occupied_blocks: driver.engine.occupied(tenant),
            read_hits,
            read_misses,
            write_hits,
            write_misses,
            effective: driver.engine.take_effective(tenant),
        }
    }
}
