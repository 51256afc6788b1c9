//! `larder simulate --like`: tenants, cache and decisions as a daemon has them, by its configuration or by the account of a recording of it.
//!
//! An account (`larder record --account`) also tells what requests took there and when was decided. A run under the daemon's own allocator then decides by the same figures at
//! the same times, and what it finds can be held against what the daemon did ([`super::beside`]); one under another allocator tells what that would have done there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use larder_alloc::control::BudgetPeriod;
use larder_alloc::{Measured, Mode};
use larder_daemon::config::{Config, Population, TenantConfig};
use larder_daemon::epoch::SAMPLED_BLOCKS;
use larder_daemon::record::account::{Account, Decided, DecidedTenant, WrittenSsd};
use larder_daemon::server::{loop_tenant, write_budget};
use larder_locality::Sampling;
use larder_sim::BlockSize;
use larder_sim::tenants::{
    Backing, Caching, Recorded, RecordedDecision, TenantPlan, TenantsPlan, TenantsResult,
};

use super::beside::{Beside, beside};
use super::options;
use super::settings::Settings;
use super::sources::Opener;
use super::workload::{Tenant, Workload};
use crate::input::PartOf;
use crate::problem::Problem;
use crate::simulate::Options;

/// A daemon to be like.
#[derive(Clone, Debug)]
pub struct Like {
    config: Config,
    cache_blocks: u32,
    recorded: Option<(Account, PathBuf)>,
}

impl Like {
    /// What a file says: an account (JSON), or a configuration (TOML).
    pub fn load(path: &Path) -> Result<Self, Problem> {
        let wrong = |why: String| {
            let help = "name a larder.toml, or what `larder record --account` wrote";
            Problem::new(format_args!("{}: {why}", path.display()), help)
        };
        let text =
            std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if !text.trim_start().starts_with('{') {
            let config = Config::load(path)?;
            return Ok(Self { cache_blocks: config.cache.blocks(), config, recorded: None });
        }
        let account: Account = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let config = Config::parse(path, folder, &account.setup.config)?;
        let trace = folder.join(&account.trace);
        Ok(Self { cache_blocks: account.setup.cache_blocks, config, recorded: Some((account, trace)) })
    }

    /// The account of the recording, where there is one.
    pub fn account(&self) -> Option<&Account> {
        self.recorded.as_ref().map(|(account, _)| account)
    }

    /// A run beside the recorded daemon; nothing of one under another allocator.
    pub fn beside(&self, run: &TenantsResult) -> Vec<Beside> {
        let same = run.allocator == self.allocator();
        self.account().filter(|_| same).map_or_else(Vec::new, |account| beside(account, run))
    }

    /// The name of the allocator that decided there.
    pub fn allocator(&self) -> &'static str {
        self.config.control.allocator.as_str()
    }

    /// The tenants with their traces: those of the recording, or those that the command line names.
    pub fn workload(&self, options: &Options) -> Result<Workload, Problem> {
        let asked = &options.asked.tenants;
        if self.recorded.is_some() {
            let arrivals = &options.arrivals;
            let own = !asked.is_empty() || arrivals.closed.is_some() || arrivals.rate.is_some();
            if own || arrivals.aligned {
                let what = "--like names a recording, which has its own requests and their times";
                return Err(Problem::new(
                    what,
                    "leave --tenant, --closed, --rate and --aligned out, or name the daemon's larder.toml",
                ));
            }
        }
        let known = |name: &str| self.config.tenants.iter().any(|tenant| tenant.name == name);
        if let Some(unknown) = asked.iter().find(|named| !known(&named.name)) {
            let what = format!("--tenant {}: the configuration has no such tenant", unknown.name);
            return Err(Problem::new(what, "name its tenants, each with a trace"));
        }
        let trace = |tenant: &TenantConfig| match &self.recorded {
            Some((_, trace)) => Ok(trace.clone().into_os_string().into()),
            None => {
                let named = asked.iter().find(|named| named.name == tenant.name);
                named.map(|named| named.trace.clone()).ok_or_else(|| {
                    let what = format!("nothing tells what tenant {} asks for", tenant.name);
                    Problem::new(what, format!("give its trace as --tenant {}=TRACE", tenant.name))
                })
            }
        };
        let tenant = |tenant: &TenantConfig| -> Result<Tenant, Problem> {
            Ok(Tenant { name: tenant.name.clone(), trace: trace(tenant)?, settings: Settings::default() })
        };
        Ok(Workload {
            tenants: self.config.tenants.iter().map(tenant).collect::<Result<_, _>>()?,
            ..Workload::default()
        })
    }

    /// The requests of the recording, by tenant; none where it is the command line's traces.
    pub fn openers(&self, options: &Options) -> Option<Vec<Opener>> {
        let (account, trace) = self.recorded.as_ref()?;
        let volumes = account.setup.volumes.iter();
        let numbers = Arc::new(volumes.map(|volume| (volume.name.clone(), volume.number)).collect());
        let of = |tenant: &TenantConfig| {
            let part = PartOf { tenant: tenant.name.clone(), numbers: Arc::clone(&numbers) };
            Opener::OfTenant(trace.clone(), options.format, part)
        };
        Some(self.config.tenants.iter().map(of).collect())
    }

    /// The runs: one for each allocator, or under the daemon's own.
    pub fn plans(&self, options: &Options) -> Result<Vec<TenantsPlan>, Problem> {
        let own = [self.allocator().to_owned()];
        let asked = &options.division.allocator;
        let names = options::allocators(if asked.is_empty() { &own } else { asked });
        names.iter().map(|allocator| self.plan(options, allocator)).collect()
    }

    fn plan(&self, options: &Options, allocator: &str) -> Result<TenantsPlan, Problem> {
        let Config { cache, control, tenants, .. } = &self.config;
        let block_bytes = u64::from(cache.block_bytes);
        let default = TenantsPlan::new(
            tenants.iter().map(|tenant| self.tenant(options, tenant)).collect(),
            allocator,
            u64::from(self.cache_blocks) * block_bytes,
        );
        self.check_population(allocator)?;
        let block = BlockSize::new(block_bytes)
            .map_err(|error| Problem::new(error, "give the configuration another block_size"))?;
        let epoch_seconds = control.epoch.as_secs_f64();
        let machine = &options.machine;
        Ok(TenantsPlan {
            caching: Caching {
                block: Some(block),
                epoch_seconds: Some(epoch_seconds),
                mover_seconds: machine.mover,
                ..Caching::default()
            },
            ssd: machine.ssd.unwrap_or(default.ssd),
            backing: machine.backing.unwrap_or(default.backing),
            backings: if machine.backing_each { Backing::Each } else { Backing::Shared },
            aligned: options.arrivals.aligned,
            duration_seconds: options.arrivals.duration,
            limit: options.limit,
            min_bytes: u64::from(control.min_blocks) * block_bytes,
            write_threshold: control.write_threshold,
            write_back: control.write_back,
            // As the daemon runs it.
            corrected: true,
            budget: write_budget(&self.config, self.cache_blocks),
            sampling: Sampling::Blocks(SAMPLED_BLOCKS),
            seed: options.seed,
            recorded: self.account().map(|account| self.recorded(account, allocator)).transpose()?,
            ..default
        })
    }

    fn tenant(&self, options: &Options, tenant: &TenantConfig) -> TenantPlan {
        let block_bytes = u64::from(self.config.cache.block_bytes);
        let wanted = loop_tenant(&self.config, tenant);
        TenantPlan {
            pace: Workload::pace(&options.arrivals),
            quota_bytes: wanted.quota_blocks.map(|blocks| u64::from(blocks) * block_bytes),
            write_policy: wanted.write_policy,
            caching: wanted.caching,
            goals: wanted.goals,
            ..TenantPlan::new(wanted.name)
        }
    }

    /// A simulated cache is filled as the allocator's system fills it.
    fn check_population(&self, allocator: &str) -> Result<(), Problem> {
        let profile = larder_alloc::by_name(allocator).map(|allocator| allocator.profile());
        let batched =
            profile.is_some_and(|it| matches!(it.population, larder_alloc::Population::Batched { .. }));
        let other = |tenant: &&TenantConfig| {
            tenant.population.is_some_and(|population| (population == Population::Batched) != batched)
        };
        let Some(tenant) = self.config.tenants.iter().find(other) else { return Ok(()) };
        let what = format!(
            "tenant {} has a population other than that of {allocator}, which a simulation cannot have",
            tenant.name
        );
        Err(Problem::new(what, "name an allocator that fills partitions so, with --allocator"))
    }

    /// What the daemon did, on the clock of a run that begins with the epoch in which the recording did.
    fn recorded(&self, account: &Account, allocator: &str) -> Result<Recorded, Problem> {
        let setup = &account.setup;
        let epochs = (setup.began_seconds / setup.epoch_seconds.max(f64::MIN_POSITIVE)).floor();
        let begin = epochs * setup.epoch_seconds;
        let named = |of: &[DecidedTenant], name: &str| of.iter().find(|it| it.name == name).cloned();
        let stand = |tenant: &TenantConfig| -> Result<(u32, Mode), Problem> {
            let stood = named(&setup.tenants, &tenant.name).unwrap_or_default();
            let understood = || {
                let (caching, write) = (stood.caching.parse().ok()?, stood.write_policy.parse().ok()?);
                Some((stood.quota_blocks, Mode { caching, write }))
            };
            understood().ok_or_else(|| {
                let what = format!("the account does not tell where tenant {} stood", tenant.name);
                Problem::new(what, "use the `larder` that recorded it")
            })
        };
        let measured = |decided: &Decided| {
            let of = |tenant: &TenantConfig| {
                let told = named(&decided.tenants, &tenant.name);
                told.map_or(Measured::default(), |told| told.measured.measured())
            };
            let is_renewed = |&at: &usize| {
                named(&decided.tenants, &self.config.tenants[at].name).is_some_and(|told| told.renewed)
            };
            let shaped = |tenant: &TenantConfig| {
                named(&decided.tenants, &tenant.name).and_then(|told| told.measured.shaped())
            };
            RecordedDecision {
                seconds: decided.seconds - begin,
                measured: self.config.tenants.iter().map(of).collect(),
                shaped: self.config.tenants.iter().map(shaped).collect(),
                record_share: record_share(&decided.written),
                renewed: (0..self.config.tenants.len()).filter(is_renewed).collect(),
            }
        };
        Ok(Recorded {
            begins_seconds: setup.began_seconds - begin,
            stand: match allocator == self.allocator() {
                true => self.config.tenants.iter().map(stand).collect::<Result<_, _>>()?,
                false => Vec::new(),
            },
            decisions: account.decisions.iter().map(measured).collect(),
            keeps_times: allocator == self.allocator(),
            seed: setup.seed.filter(|_| !setup.volumes.is_empty()),
            period: setup.period.map(|it| BudgetPeriod {
                began_seconds: it.began_seconds - begin,
                written_bytes: it.written_bytes,
                first: it.first,
            }),
        })
    }
}

/// Bytes of records for each byte of data; none where there was no data.
fn record_share(written: &WrittenSsd) -> f64 {
    if written.data_bytes > 0 { written.record_bytes as f64 / written.data_bytes as f64 } else { 0.0 }
}
