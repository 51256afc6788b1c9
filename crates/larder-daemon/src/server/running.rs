//! The parts of a daemon that runs: how they are wired together, and how they end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use larder_export::nbd::{self, ListenAddress, Listener, NbdCommand, NbdFrontend};
use larder_io::{CacheDevice, Handle, HandleError, Inbox, ReactorBuilder, ReactorThread};

use super::ServeError;
use super::checked::Checked;
use super::plan::{ReactorPlan, engine_policy};
use crate::actuator::{Actuator, Step};
use crate::analyzer::Analyzer;
use crate::collector::Collector;
use crate::config::Config;
use crate::control_socket::{Answer, ControlServer, ControlSocket};
use crate::placement::{self, Place};
use crate::units::HumanSize;

/// How long reactors may take to finish what is in flight when the daemon stops: less than systemd waits (90 s).
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A daemon that serves.
pub(super) struct Running {
    collector: Arc<Collector<NbdCommand>>,
    reactors: Vec<ReactorThread>,
    analyzer: JoinHandle<()>,
    control: ControlServer,
    /// Holds the lock.
    cache: CacheDevice,
}

impl Running {
    /// Bind every address, then mark the cache device, then start every thread.
    pub fn start(config: &Config, checked: Checked) -> Result<Self, ServeError> {
        let listeners = bind(config)?;
        let control = ControlSocket::bind(&config.control.socket)?;
        let count = placement::reactor_count(config);
        let places = placement::in_turn(config.tenants.len(), count);
        let (handles, inboxes) = mailboxes(count)?;
        let cache = checked.plan.format()?;

        let analyzer = Analyzer::default();
        let mut plan = ReactorPlan::new(&cache, count, &analyzer)?;
        plan.add_tenants(config, &places, checked.epochs.standings(), checked.backings)?;
        let frontends = plan.frontends(listeners, &handles);
        let actuator = Box::new(ReactorActuator { reactors: handles.clone(), places: places.clone() });
        let routes = placement::routes(&places, count);
        let (view, analyzer) = analyzer
            .run(checked.epochs, routes, actuator, config.control.epoch)
            .map_err(|source| ServeError::Os { action: "start the analyzer", source })?;

        let reactors = spawn(plan.builders, frontends, inboxes, &handles)?;
        let collector = Arc::new(Collector::new(config.clone(), cache.blocks(), places, handles, view));
        let control = match control.serve(answers(&collector)) {
            Ok(control) => control,
            Err(source) => {
                stop(&collector.reactors, reactors)?;
                return Err(ServeError::Os { action: "start the control socket's thread", source });
            }
        };
        Ok(Self { collector, reactors, analyzer, control, cache })
    }

    /// Tell in the log where everything is.
    pub fn announce(&self) {
        let config = &self.collector.config;
        for tenant in &config.tenants {
            for volume in &tenant.volumes {
                tracing::info!(tenant = tenant.name, volume = volume.name, backing = %volume.backing, "serving {}", volume.export_uri());
            }
        }
        let blocks = self.cache.blocks();
        tracing::info!(
            cache = %config.cache.path.display(),
            size = %HumanSize(self.cache.data_bytes()),
            blocks,
            reactors = self.reactors.len(),
            control = %config.control.socket.display(),
            "ready"
        );
    }

    /// False once a reactor has ended.
    pub fn is_alive(&self) -> bool {
        !self.reactors.iter().any(ReactorThread::is_finished)
    }

    /// Finish what is in flight, flush the backings, remove the sockets.
    pub fn stop(self) -> Result<(), ServeError> {
        let stopped = stop(&self.collector.reactors, self.reactors);
        // Its senders went with the reactors.
        if self.analyzer.join().is_err() {
            tracing::error!("the analyzer panicked");
        }
        drop(self.control);
        drop(self.cache);
        if stopped.is_ok() {
            tracing::info!("stopped");
        }
        stopped
    }
}

/// One listener for each distinct address, with the addresses' volumes told apart by name.
fn bind(config: &Config) -> Result<Vec<Listener>, ServeError> {
    let mut addresses: Vec<&ListenAddress> = config.volumes().map(|volume| &volume.listen).collect();
    addresses.sort();
    addresses.dedup();
    Ok(addresses.into_iter().map(nbd::bind).collect::<Result<_, _>>()?)
}

type Mailboxes = (Vec<Handle<NbdCommand>>, Vec<Inbox<NbdCommand>>);

fn mailboxes(count: usize) -> Result<Mailboxes, ServeError> {
    let pairs: io::Result<Mailboxes> = (0..count).map(|_| larder_io::mailbox()).collect();
    pairs.map_err(|source| ServeError::Os { action: "make a reactor's mailbox", source })
}

/// Start all reactors. Where one does not start, those that did are stopped.
fn spawn(
    builders: Vec<ReactorBuilder>,
    frontends: Vec<NbdFrontend>,
    inboxes: Vec<Inbox<NbdCommand>>,
    handles: &[Handle<NbdCommand>],
) -> Result<Vec<ReactorThread>, ServeError> {
    let mut started = Vec::with_capacity(builders.len());
    for ((builder, frontend), inbox) in builders.into_iter().zip(frontends).zip(inboxes) {
        match builder.spawn(frontend, inbox) {
            Ok(reactor) => started.push(reactor),
            Err(error) => {
                if let Err(error) = stop(handles, started) {
                    tracing::error!(%error, "while giving up");
                }
                return Err(error.into());
            }
        }
    }
    Ok(started)
}

/// Stop reactors, all at the same time; the first error of any.
fn stop(handles: &[Handle<NbdCommand>], reactors: Vec<ReactorThread>) -> Result<(), ServeError> {
    for (index, handle) in handles.iter().enumerate().take(reactors.len()) {
        if let Err(error) = handle.stop(STOP_WITHIN) {
            tracing::warn!(index, %error, "cannot stop a reactor");
        }
    }
    let ends: Vec<_> = reactors.into_iter().map(ReactorThread::join).collect();
    ends.into_iter().collect::<Result<(), _>>().map_err(Into::into)
}

/// What the control socket answers.
fn answers(collector: &Arc<Collector<NbdCommand>>) -> Arc<Answer> {
    let collector = Arc::clone(collector);
    let status = move || match collector.status() {
        Ok(status) => serde_json::to_string(&status).unwrap_or_else(|error| refusal(&error)),
        Err(silent) => refusal(&silent),
    };
    Arc::new(move |line| (line == "status").then(&status))
}

/// A JSON document that says why there is no other.
fn refusal(error: &dyn std::error::Error) -> String {
    serde_json::json!({ "error": error.to_string() }).to_string()
}

/// Carries the loop's steps to the reactors.
struct ReactorActuator {
    reactors: Vec<Handle<NbdCommand>>,
    places: Vec<Place>,
}

impl Actuator for ReactorActuator {
    fn apply(&mut self, step: Step) {
        let (Step::Quota { tenant, .. } | Step::WritePolicy { tenant, .. }) = step;
        let Some(place) = self.places.get(tenant) else { return };
        let Some(reactor) = self.reactors.get(place.reactor) else { return };
        let done = match step {
            Step::Quota { blocks, .. } => reactor.set_quota(place.tenant, blocks),
            Step::WritePolicy { policy, .. } => reactor.set_write_policy(place.tenant, engine_policy(policy)),
        };
        match done {
            // A reactor that has ended has no quotas: the daemon is stopping.
            Ok(()) | Err(HandleError::Ended) => {}
            Err(error) => tracing::error!(?step, %error, "a decision was not carried out"),
        }
    }
}
