//! The parts of a daemon that runs: how they are wired together, and how they end.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io};

use larder_alloc::control::{Limit, Offers, Terms};
use larder_engine::format::{Recovered, Volume};
use larder_engine::{TenantId, WriteLimit};
use larder_export::{ExportCommand, Exports, ListenAddress};
use larder_io::{DrainCommand, Handle, HandleError, Inbox, ReactorBuilder, ReactorError, ReactorThread};

use super::ServeError;
use super::astray::{Cold, newest};
use super::checked::Checked;
use super::inherited::Inherited;
use super::leaving::Leaving;
use super::plan::{ReactorPlan, engine_policy};
use super::reload::Reloader;
use super::sockets::Sockets;
use crate::actuator::{Actuator, Arrangement, Step};
use crate::analyzer::{Analyzer, AnalyzerHandle, ChangeError};
use crate::api::{ApiServer, Services};
use crate::budget_file::BudgetFile;
use crate::collector::Collector;
use crate::config::{Config, VolumeConfig};
use crate::control::{Refusal, Request};
use crate::control_socket::{Answer, ControlServer, Reply};
use crate::decisions::ToldDecisions;
use crate::epoch::explore::ExploreError;
use crate::epoch::{Report, SsdSpending};
use crate::exported::Exported;
use crate::hosted::Hosted;
use crate::keeper::{Keeper, KeeperHandle, KeeperThread};
use crate::last_cache;
use crate::loss::Loss;
use crate::manager;
use crate::migration::Migrations;
use crate::placement::{self, Place};
use crate::record::Recorders;
use crate::record::session::Session;
use crate::reports::{offers, reports, spending};
use crate::settings::Settings;
use crate::units::HumanSize;
use crate::volumes::{VolumeRefusal, Volumes};
use crate::watchdog::Watchdog;
use crate::wear::Watcher;

/// How long reactors may take to finish what is in flight when the daemon stops: less than systemd waits (90 s).
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait for them beyond that: they still flush, and close what is open.
const STOP_GRACE: Duration = Duration::from_secs(15);
/// How long the host's block devices may take before the daemon is ready without them: they come later, or not at all.
const UBLK_WITHIN: Duration = Duration::from_secs(10);

/// A daemon that serves.
pub(super) struct Running {
    collector: Arc<Collector<ExportCommand>>,
    exported: Exported,
    reactors: Vec<ReactorThread>,
    analyzer: JoinHandle<()>,
    analyzer_handle: AnalyzerHandle,
    reloader: Arc<Reloader>,
    control: ControlServer,
    api: Option<ApiServer>,
    /// Looks after the cache device, and holds the lock on it.
    keeper: KeeperThread,
    /// Says which cache was used last; `None` of one that is not kept.
    last_cache: Option<last_cache::Keep>,
    /// Asks the SSD how far it is worn.
    wear: Watcher,
    blocks: u32,
    data_bytes: u64,
}

impl Running {
    /// Bind every address, then mark the cache device or find it as it was left, then start every thread.
    /// `file` is what the configuration file says, and what was set on top of it.
    pub fn start(
        config: &Config,
        path: PathBuf,
        checked: Checked,
        file: (Config, Settings),
        mut inherited: Inherited,
    ) -> Result<Self, ServeError> {
        let Sockets { nbd, vhost, control, api } = Sockets::bind(config, &mut inherited)?;
        let count = placement::reactor_count(config);
        let places = placement::in_turn(config.tenants.len(), count);
        let (handles, inboxes) = mailboxes(count)?;
        let mut cache = checked.plan.format()?;
        let recovered = cache.take_recovered();
        let last_cache =
            recovered.as_deref().map(|recovered| last_cache::Keep::begin(config, recovered)).transpose()?;

        let mut analyzer = Analyzer::default();
        analyzer.keep_budget(BudgetFile::at(config.budget_file(), config.rhythm_file()));
        let recorders = Recorders::default();
        let mut plan = ReactorPlan::new(&cache, recovered.as_deref(), count, &analyzer, &recorders, config)?;
        plan.add_tenants(config, &places, checked.epochs.standings(), checked.backings, vhost)?;
        plan.share(&places, checked.epochs.arrangement().sharing);
        if let Some(last) = &last_cache {
            let policies = checked.epochs.standings().iter().map(|it| engine_policy(it.decision.mode.write));
            policies.into_iter().try_for_each(|policy| last.before(policy))?;
        }
        let warm = recovered.map(|recovered| open(&mut plan, &recovered, checked.volumes)).transpose()?;
        if checked.given_up {
            // What the file says of the cache has been seen to: its clean blocks are gone, and its dirty ones are there.
            Loss::remove(&config.loss_file());
        }
        let frontends = plan.frontends(nbd, &handles);
        let exported = plan.take_exported();
        let (reactors, places_of) = (handles.clone(), places.clone());
        let actuator =
            Box::new(ReactorActuator { reactors, places: places_of, last_cache: last_cache.clone() });
        let analyzer_handle = analyzer.handle();
        let (view, analyzer) = analyzer
            .run(checked.epochs, &places, actuator)
            .map_err(|source| ServeError::Os { action: "start the analyzer", source })?;

        let hosted = Hosted::at_start(config.clone(), &places, &warm.unwrap_or_default());
        go_on_migrating(&hosted, &handles, &checked.migrations)?;
        inherited.resume(config, &exported, &handles);
        let reactors = spawn(plan.builders, frontends, inboxes, &handles)?;
        let (blocks, data_bytes) = (cache.blocks(), cache.data_bytes());
        let collector = Arc::new(Collector::new(hosted, blocks, handles, view));
        let (keeper, keeper_thread) =
            match Keeper::new(Arc::clone(&collector), cache, last_cache.clone()).start() {
                Ok(started) => started,
                Err(source) => {
                    stop(&collector.reactors, reactors)?;
                    return Err(ServeError::Os { action: "start the keeper of the cache device", source });
                }
            };
        let wear = match Watcher::start(config.cache.path.clone(), collector.wear.clone()) {
            Ok(watcher) => watcher,
            Err(source) => {
                stop(&collector.reactors, reactors)?;
                return Err(ServeError::Os {
                    action: "start the thread that looks at the SSD's wear",
                    source,
                });
            }
        };
        let migrations = Arc::new(checked.migrations);
        let volumes = Volumes::new(Arc::clone(&collector), exported.clone(), Arc::clone(&migrations));
        let reloader = Arc::new(Reloader::new(
            path,
            Arc::clone(&collector),
            exported.clone(),
            migrations,
            analyzer_handle.clone(),
            file,
        ));
        let api = api.map(|api| {
            api.serve(Services {
                collector: Arc::clone(&collector),
                volumes: volumes.clone(),
                keeper: keeper.clone(),
                analyzer: analyzer_handle.clone(),
                reloader: Arc::clone(&reloader),
                recorders: recorders.clone(),
            })
        });
        let api = match api.transpose() {
            Ok(api) => api,
            Err(source) => {
                stop(&collector.reactors, reactors)?;
                return Err(ServeError::Os { action: "start the API's thread", source });
            }
        };
        let control = match control.serve(answers(
            &collector,
            keeper,
            volumes,
            Arc::clone(&reloader),
            analyzer_handle.clone(),
            recorders,
        )) {
            Ok(control) => control,
            Err(source) => {
                stop(&collector.reactors, reactors)?;
                return Err(ServeError::Os { action: "start the control socket's thread", source });
            }
        };
        Ok(Self {
            collector,
            exported,
            reactors,
            analyzer,
            analyzer_handle,
            reloader,
            control,
            api,
            keeper: keeper_thread,
            last_cache,
            wear,
            blocks,
            data_bytes,
        })
    }

    /// Tell in the log where everything is.
    pub fn announce(&self) {
        let config = &self.collector.hosted.get().config;
        // What waits for "ready" may mount them. How each went is in the log already.
        self.exported.wait(Instant::now() + UBLK_WITHIN);
        for tenant in &config.tenants {
            tenant.volumes.iter().for_each(|volume| announce(&tenant.name, volume));
        }
        tracing::info!(
            cache = %config.cache.path.display(),
            size = %HumanSize(self.data_bytes),
            blocks = self.blocks,
            reactors = self.reactors.len(),
            control = %config.control.socket.display(),
            "ready"
        );
        manager::ready(&self.reloader.summary());
    }

    /// Tell the service manager that the daemon lives, for as long as what is returned does; `None` where it does not want to know.
    pub fn watchdog(&self) -> Result<Option<Watchdog>, ServeError> {
        let collector = Arc::clone(&self.collector);
        let start =
            |interval| Watchdog::start(interval, move || collector.snapshots().is_ok(), manager::alive);
        let failed = |source| ServeError::Os { action: "start the watchdog", source };
        manager::watchdog().map(start).transpose().map_err(failed)
    }

    /// Read the configuration file again, from a thread of its own.
    pub fn reload(&self) {
        let reloader = Arc::clone(&self.reloader);
        let begun = thread::Builder::new().name("reload".into()).spawn(move || reloader.reload_patiently());
        if let Err(error) = begun {
            tracing::error!(%error, "cannot read the configuration again: no thread");
        }
    }

    /// False once a reactor has ended.
    pub fn is_alive(&self) -> bool {
        !self.reactors.iter().any(ReactorThread::is_finished)
    }

    /// Finish what is in flight, flush the backings, remove the sockets. Where a device holds up the end, this tells which one and
    /// returns all the same: the process is then free to exit.
    pub fn stop(self) -> Result<(), ServeError> {
        // No cache is taken by a reactor that is about to end.
        self.keeper.stop();
        self.wear.stop();
        self.analyzer_handle.close_budget();
        let leaving = Leaving::begin(&self.collector.reactors);
        let stopped = stop(&self.collector.reactors, self.reactors);
        match &stopped {
            // It still has its sockets, and its sender to the analyzer.
            Err(ReactorError::Stuck { .. }) => remove_sockets(&self.collector.hosted.get().config),
            _ => {
                self.analyzer_handle.end();
                if self.analyzer.join().is_err() {
                    tracing::error!("the analyzer panicked");
                }
            }
        }
        let cache = &self.collector.hosted.get().config.cache.path;
        let is_clean = || larder_io::offline::is_clean(cache);
        if let Some(last) = self.last_cache.filter(|_| stopped.is_ok() && is_clean())
            && let Err(error) = last.clean()
        {
            tracing::warn!(%error, "the next start will not do without this cache");
        }
        drop(self.api);
        drop(self.control);
        if let Some(leaving) = leaving {
            leaving.hand_over(stopped.is_ok());
        }
        if stopped.is_ok() {
            tracing::info!("stopped");
        }
        Ok(stopped?)
    }
}

/// Tell in the log where a volume is.
pub(super) fn announce(tenant: &str, volume: &VolumeConfig) {
    let nbd = volume.export_uri().map(|uri| uri.to_string());
    let vhost = volume.vhost_user.as_ref().map(|path| format!("vhost-user:{}", path.display()));
    for place in nbd.into_iter().chain(vhost) {
        tracing::info!(tenant, volume = volume.name, backing = %volume.backing, "serving {place}");
    }
}

/// Go on with a cache that is kept. What each tenant holds then.
fn open(plan: &mut ReactorPlan, recovered: &Recovered, volumes: Vec<Volume>) -> Result<Vec<u32>, ServeError> {
    let cold = Cold::find(recovered, &volumes);
    let warm = plan.open_cache(recovered, volumes)?;
    let (found, used) = (newest(recovered).count(), warm.iter().sum::<u32>());
    let dropped = found.saturating_sub(used as usize);
    if dropped > 0 {
        let above = dropped.saturating_sub(cold.blocks());
        let why = if above > 0 { format!("; the quotas have no room for {above}") } else { String::new() };
        tracing::warn!("{used} of {found} cached blocks are used again; {dropped} are dropped{why}");
        cold.tell();
    } else if used > 0 {
        tracing::info!("{used} cached blocks are used again");
    }
    Ok(warm)
}

/// Remove the files of the sockets on which clients connect, in place of a reactor that no longer can.
fn remove_sockets(config: &Config) {
    for volume in config.volumes() {
        let addresses = volume.nbd.clone().into_iter().chain(volume.vhost_address());
        for address in addresses {
            if let ListenAddress::Unix(path) = &address
                && let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "cannot remove the socket's file");
            }
        }
    }
}

type Mailboxes = (Vec<Handle<ExportCommand>>, Vec<Inbox<ExportCommand>>);

fn mailboxes(count: usize) -> Result<Mailboxes, ServeError> {
    let pairs: io::Result<Mailboxes> = (0..count).map(|_| larder_io::mailbox()).collect();
    pairs.map_err(|source| ServeError::Os { action: "make a reactor's mailbox", source })
}

/// Volumes whose guests were leaving when the last daemon ended are drained, and not served from what is cached of them: the guest may be elsewhere, and write.
/// Told before the reactors run, this comes before any guest.
fn go_on_migrating(
    hosted: &Hosted,
    reactors: &[Handle<ExportCommand>],
    migrations: &Migrations,
) -> Result<(), ServeError> {
    for (volume, place) in hosted.volumes() {
        if migrations.has(&volume.name) {
            tracing::warn!(
                volume = volume.name,
                "its guest was leaving when the daemon ended: what is cached of it is dropped; end it with `larder volume migrate complete` or `abort`"
            );
            let reactor = &reactors[place.reactor];
            let told = reactor.drain(place.volume, DrainCommand::On);
            told.and_then(|()| reactor.forget_volume(place.volume)).map_err(|error| ServeError::Os {
                action: "tell a reactor which volumes are being migrated",
                source: io::Error::other(error),
            })?;
        }
    }
    Ok(())
}

/// Start all reactors. Where one does not start, those that did are stopped.
fn spawn(
    builders: Vec<ReactorBuilder>,
    frontends: Vec<Exports>,
    inboxes: Vec<Inbox<ExportCommand>>,
    handles: &[Handle<ExportCommand>],
) -> Result<Vec<ReactorThread>, ServeError> {
    let mut started = Vec::with_capacity(builders.len());
    for ((builder, frontend), inbox) in builders.into_iter().zip(frontends).zip(inboxes) {
        match builder.spawn(frontend, inbox) {
            Ok(reactor) => started.push(reactor),
            Err(error) => {
                // What went wrong then is in the log; this is why.
                let _ = stop(handles, started);
                return Err(error.into());
            }
        }
    }
    Ok(started)
}

/// Stop reactors, all at the same time. Every one that does not end well is logged; the worst error of any is returned.
fn stop(handles: &[Handle<ExportCommand>], reactors: Vec<ReactorThread>) -> Result<(), ReactorError> {
    for (index, handle) in handles.iter().enumerate().take(reactors.len()) {
        if let Err(error) = handle.stop(STOP_WITHIN) {
            tracing::warn!(index, %error, "cannot stop a reactor");
        }
    }
    let deadline = Instant::now() + STOP_WITHIN + STOP_GRACE;
    let mut worst = Ok(());
    for (index, reactor) in reactors.into_iter().enumerate() {
        if let Err(error) = reactor.join_within(deadline.saturating_duration_since(Instant::now())) {
            tracing::error!(index, %error, "a reactor did not end well");
            if worst.is_ok() || matches!(error, ReactorError::Stuck { .. }) {
                worst = Err(error);
            }
        }
    }
    worst
}

/// What the control socket answers.
fn answers(
    collector: &Arc<Collector<ExportCommand>>,
    keeper: KeeperHandle,
    volumes: Volumes<ExportCommand>,
    reloader: Arc<Reloader>,
    analyzer: AnalyzerHandle,
    recorders: Recorders,
) -> Arc<Answer> {
    let collector = Arc::clone(collector);
    Arc::new(move |line| {
        let document = match Request::parse(line)? {
            Request::Record(names) => match Session::begin(&recorders, Arc::clone(&collector), names) {
                Ok(session) => {
                    let session = session.with_decisions(analyzer.clone());
                    return Some(Reply::Stream(Box::new(|stream| session.run(stream))));
                }
                Err(error) => refusal(&error),
            },
            Request::Status => told(volumes.status()),
            Request::Drain { name, how } => told(volumes.drain(&name, how)),
            Request::Reload => match reloader.reload() {
                Err(error) => refusal_with_help(&error, &error.help()),
                reloaded => told(reloaded),
            },
            Request::Set { tenant, pairs } => match reloader.set(tenant.as_deref(), &pairs) {
                Err(error) => refusal_with_help(&error, &error.help()),
                set => told(set),
            },
            Request::Differences => told(Ok::<_, Infallible>(reloader.differences())),
            Request::Decisions(tenant) => match collector.hosted.get().tenant(&tenant) {
                None => {
                    let help = "larder status names the tenants; a volume is not one";
                    refusal_with_help(&Refusal::UnknownTenant(tenant), help)
                }
                Some(_) => {
                    told(analyzer.decisions(&tenant).map(|records| ToldDecisions::of(&tenant, &records)))
                }
            },
            Request::Curves(tenant) => explored(analyzer.curves(&tenant)),
            Request::WhatIf { tenant, bytes } => explored(analyzer.what_if(&tenant, bytes)),
            Request::Resize(volume) => helped(volumes.resize(&volume)),
            Request::Quiesce { name, hold } => helped(volumes.quiesce(&name, hold)),
            Request::Thaw(volume) => helped(volumes.thaw(&volume)),
            Request::Migrate { name, step } => helped(volumes.migrate(&name, step)),
            Request::Lost(volume) => told(collector.lost(&volume)),
            Request::Attach => match keeper.attach() {
                Err(error) => refusal_with_help(&error, &error.help()),
                attached => told(attached),
            },
        };
        Some(document.into())
    })
}

/// An answer as a JSON document.
fn told<T: serde::Serialize, E: std::error::Error>(answer: Result<T, E>) -> String {
    match answer {
        Ok(answer) => serde_json::to_string(&answer).unwrap_or_else(|error| refusal(&error)),
        Err(error) => refusal(&error),
    }
}

/// The same, with what the operator can do where it is refused.
fn helped<T: serde::Serialize>(answer: Result<T, VolumeRefusal>) -> String {
    match answer {
        Err(error) => refusal_with_help(&error, &error.help()),
        answer => told(answer),
    }
}

/// What the loop was asked.
fn explored<T: serde::Serialize>(answer: Result<Result<T, ExploreError>, ChangeError>) -> String {
    match answer {
        Ok(Err(error)) => refusal_with_help(&error, &error.help()),
        Ok(answer) => told(answer),
        Err(error) => refusal(&error),
    }
}

/// A JSON document that says why there is no other.
fn refusal(error: &dyn std::error::Error) -> String {
    serde_json::json!({ "error": error.to_string() }).to_string()
}

fn refusal_with_help(error: &dyn std::error::Error, help: &str) -> String {
    serde_json::json!({ "error": error.to_string(), "help": help }).to_string()
}

/// Carries the loop's steps to the reactors.
struct ReactorActuator {
    reactors: Vec<Handle<ExportCommand>>,
    places: Vec<Place>,
    last_cache: Option<last_cache::Keep>,
}

impl ReactorActuator {
    /// Tell each reactor what is for its tenants, of what is to be written to the SSD.
    fn tell<T>(
        &self,
        by_index: Vec<(usize, T)>,
        how: impl Fn(&Handle<ExportCommand>, Vec<(TenantId, T)>) -> Result<(), HandleError>,
    ) {
        let mut by_reactor: Vec<Vec<(TenantId, T)>> = self.reactors.iter().map(|_| Vec::new()).collect();
        for (place, told) in by_index.into_iter().filter_map(|(at, told)| Some((self.places.get(at)?, told)))
        {
            by_reactor[place.reactor].push((place.tenant, told));
        }
        for (reactor, told) in self.reactors.iter().zip(by_reactor).filter(|(_, told)| !told.is_empty()) {
            match how(reactor, told) {
                Ok(()) | Err(HandleError::Ended) => {}
                // It keeps to what it was told before.
                Err(error) => tracing::warn!(%error, "a reactor was not told what it may write to the SSD"),
            }
        }
    }
}

impl Actuator for ReactorActuator {
    fn apply(&mut self, step: Step) {
        let Some(place) = self.places.get(step.tenant()) else { return };
        let Some(reactor) = self.reactors.get(place.reactor) else { return };
        let done = match step {
            Step::Quota { blocks, .. } => reactor.set_quota(place.tenant, blocks),
            Step::Bounds { least, most, .. } => reactor.set_bounds(place.tenant, least, most),
            Step::WritePolicy { policy, .. } => {
                let policy = engine_policy(policy);
                if let Some(Err(error)) = self.last_cache.as_ref().map(|last| last.before(policy)) {
                    error.tell();
                }
                reactor.set_write_policy(place.tenant, policy)
            }
            Step::Caching { caching, .. } => reactor.set_caching(place.tenant, caching),
            Step::Population { batched, .. } => reactor.set_mover(place.tenant, batched),
        };
        match done {
            // A reactor that has ended has no quotas: the daemon is stopping.
            Ok(()) | Err(HandleError::Ended) => {}
            Err(error) => tracing::error!(?step, %error, "a decision was not carried out"),
        }
    }

    fn arrange(&mut self, arrangement: Arrangement) {
        // One that lends must have the whole cache device, and so must one that keeps blocks free.
        let whole = self.reactors.len() == 1;
        let lending = arrangement.lending && whole;
        let watermarks = arrangement.watermarks.filter(|_| whole);
        let remembered = arrangement.doors.map(|blocks| blocks.div_ceil(self.reactors.len().max(1) as u32));
        for (at, reactor) in self.reactors.iter().enumerate() {
            let told = reactor.set_lending(lending);
            let told = told.and_then(|()| reactor.set_watermarks(watermarks));
            let sharing = placement::shared_on(at, &self.places, arrangement.sharing);
            let told = told.and_then(|()| reactor.set_sharing(sharing));
            let told = told.and_then(|()| reactor.set_stream_bypass(arrangement.stream_bypass));
            let told = told.and_then(|()| reactor.set_doors(remembered));
            if let Err(error) = told.and_then(|()| reactor.watch_hits(arrangement.watches_hits))
                && error != HandleError::Ended
            {
                tracing::error!(?arrangement, %error, "a reactor does not know of the allocator");
            }
        }
    }

    fn move_in(&mut self) {
        for reactor in &self.reactors {
            // One that has ended has nothing to fill: the daemon is stopping.
            let _ = reactor.move_in();
        }
    }

    fn reports(&mut self) -> Vec<Option<Report>> {
        reports(&self.reactors, &self.places)
    }

    fn spending(&mut self) -> Option<SsdSpending> {
        spending(&self.reactors, &self.places)
    }

    fn limit(&mut self, limits: Vec<(usize, Option<Limit>)>) {
        self.tell(limits, |reactor, limits| {
            let limit = |Limit { admit_bytes, bytes }| WriteLimit { admit_bytes, bytes };
            let limits = limits.into_iter().map(|(tenant, told)| (tenant, told.map(limit)));
            reactor.set_write_limits(limits.collect())
        });
    }

    fn limits_all(&self) -> bool {
        self.reactors.len() == 1
    }

    fn limit_all(&mut self, bytes: Option<u64>) {
        for reactor in &self.reactors {
            match reactor.set_common_limit(bytes) {
                Ok(()) | Err(HandleError::Ended) => {}
                // It keeps to what it was told before.
                Err(error) => tracing::warn!(%error, "a reactor was not told what it may write to the SSD"),
            }
        }
    }

    fn offers(&mut self) -> Vec<Option<Box<Offers>>> {
        offers(&self.reactors, &self.places)
    }

    fn open(&mut self, terms: Vec<(usize, Box<Terms>)>) {
        self.tell(terms, Handle::open_doors);
    }

    fn seat(&mut self, places: &[Place]) {
        self.places = places.to_vec();
    }
}
