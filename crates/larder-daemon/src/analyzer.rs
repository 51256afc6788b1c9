//! The thread around the loop of an epoch: it takes the monitors' batches, and decides when the time has come.
//!
//! Reactors hand their batches over through a bounded channel and never wait: what does not fit is dropped and counted
//! there. The thread ends when every reactor has ended.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, mem};

use larder_alloc::control::{BudgetPeriod, BudgetView, GRANT_ALL_SECONDS, GRANT_SECONDS, Limit, WriteBudget};
use larder_alloc::{AllocError, Allocator, Decision, Mode};
use larder_engine::{RequestKind, TenantId};
use larder_io::{MonitorRecord, MonitorSink, monitor_clock_ns};
use larder_locality::Op;
use thiserror::Error;

use crate::actuator::{Actuator, Step, steps};
use crate::budget_file::{BudgetFile, UnderWay};
use crate::decisions::Record;
use crate::epoch::explore::{ExploreError, ToldCurves, ToldWhatIf};
use crate::epoch::{Access, EpochLoop, Granted, LoopTenant, Report, Standing};
use crate::placement::{self, Place};
use crate::record::account::{Decided, DecidedTenant};

/// Batches that may wait for the analyzer: some ten megabytes, a quarter of a million requests.
const BATCHES_MAX: usize = 64;

/// Bytes given up in a decision from which they are given back to the system.
const MUCH_FREED: usize = 16 << 20;

/// What the thread is told.
enum Message {
    Batch(Batch),
    Change(Change),
    Switch(Switch),
    /// Something is to be looked up.
    Ask(Question),
    Budget(Option<WriteBudget>),
    /// Reactors are about to end.
    Close(Sender<()>),
    /// No batch comes any more.
    End,
}

/// Looks something up in the loop, and hands it to who asked.
type Question = Box<dyn FnOnce(&EpochLoop) + Send>;

/// Tenants have come, or gone.
struct Change {
    tenants: Vec<LoopTenant>,
    places: Vec<Place>,
    answer: Sender<Result<(), AllocError>>,
}

/// Another allocator, or another epoch.
struct Switch {
    allocator: Box<dyn Allocator + Send>,
    epoch: Duration,
    answer: Sender<Result<(), AllocError>>,
}

/// Records of one reactor.
#[derive(Debug)]
struct Batch {
    reactor: usize,
    records: Vec<MonitorRecord>,
}

/// Where the records of each reactor belong: by reactor and the tenant's identity there, the index of the tenant.
pub type Routes = HashMap<(usize, TenantId), usize>;

/// The state of the loop as others see it.
#[derive(Clone, Debug)]
pub struct LoopView {
    /// Who decides.
    pub allocator: &'static str,
    /// Seconds of an epoch.
    pub epoch_seconds: f64,
    /// Epochs that are over.
    pub epoch: u64,
    /// The tenants' names.
    pub tenants: Vec<String>,
    /// Where each of them stands.
    pub standings: Vec<Standing>,
    /// Bytes of memory that the analyzer holds.
    pub memory_bytes: usize,
    /// How far the budget of SSD writes is used up, where there is one.
    pub budget: Option<BudgetView>,
}

impl LoopView {
    fn of(epochs: &EpochLoop, now: f64) -> Self {
        let tenants = epochs.tenants().iter().map(|tenant| tenant.name.clone()).collect();
        let standings = epochs.standings().to_vec();
        Self {
            allocator: epochs.allocator(),
            epoch_seconds: epochs.epoch_seconds(),
            epoch: epochs.epoch(),
            tenants,
            standings,
            memory_bytes: epochs.memory_bytes(),
            budget: epochs.budget(now),
        }
    }
}

/// The view, shared. It is replaced as a whole, so that a panic while it was locked left it intact.
#[derive(Clone, Debug)]
pub struct SharedView(Arc<Mutex<LoopView>>, Instant);

impl SharedView {
    /// When the loop began.
    pub fn began(&self) -> Instant {
        self.1
    }

    /// A copy of what is there.
    pub fn get(&self) -> LoopView {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, view: LoopView) {
        let old = mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), view);
        // Freed after the lock.
        drop(old);
    }

    fn set_budget(&self, budget: Option<BudgetView>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).budget = budget;
    }
}

/// Where the tenants stand, for one who begins to record.
#[derive(Clone, Debug)]
pub struct Stands {
    /// Seconds between decisions.
    pub epoch_seconds: f64,
    /// What chooses the blocks of samples.
    pub seed: u64,
    /// The tenants.
    pub tenants: Vec<DecidedTenant>,
    /// The number of the next decision.
    pub next: u64,
    /// The budget's period that is under way.
    pub period: Option<BudgetPeriod>,
}

/// Tells a running analyzer what is not of a reactor. It keeps the thread alive until it is told to end, or dropped.
#[derive(Clone)]
pub struct AnalyzerHandle(SyncSender<Message>);

impl AnalyzerHandle {
    /// From now on the tenants are these, in these places: quotas change, and this returns when reactors were told of that.
    ///
    /// # Errors
    /// When the configured quotas exceed the cache, or the analyzer has ended: then nothing has changed.
    pub fn set_tenants(&self, tenants: Vec<LoopTenant>, places: Vec<Place>) -> Result<(), ChangeError> {
        let (answer, wait) = channel();
        let change = Message::Change(Change { tenants, places, answer });
        self.0.send(change).map_err(|_| ChangeError::Ended)?;
        Ok(wait.recv().map_err(|_| ChangeError::Ended)??)
    }

    /// Have this allocator decide from now on, this often.
    ///
    /// # Errors
    /// When it would have to give out more than the cache, or the analyzer has ended: then nothing has changed.
    pub fn switch(&self, allocator: Box<dyn Allocator + Send>, epoch: Duration) -> Result<(), ChangeError> {
        let (answer, wait) = channel();
        let switch = Message::Switch(Switch { allocator, epoch, answer });
        self.0.send(switch).map_err(|_| ChangeError::Ended)?;
        Ok(wait.recv().map_err(|_| ChangeError::Ended)??)
    }

    /// The SSD may be written so much from now on.
    ///
    /// # Errors
    /// When the analyzer has ended.
    pub fn set_budget(&self, budget: Option<WriteBudget>) -> Result<(), ChangeError> {
        self.0.send(Message::Budget(budget)).map_err(|_| ChangeError::Ended)
    }

    /// Before reactors end: but for the cache's own records nothing more is written to the SSD where there is a budget, and all that was is counted.
    pub fn close_budget(&self) {
        let (done, wait) = channel();
        if self.0.send(Message::Close(done)).is_ok() {
            // One that has ended has nothing to count.
            let _ = wait.recv();
        }
    }

    /// The last decisions about a tenant, the oldest first; none about one that is not there.
    ///
    /// # Errors
    /// When the analyzer has ended.
    pub fn decisions(&self, tenant: &str) -> Result<Vec<Record>, ChangeError> {
        let tenant = tenant.to_owned();
        self.ask(move |epochs| epochs.decisions().of(&tenant).cloned().collect())
    }

    /// Where the tenants stand.
    ///
    /// # Errors
    /// When the analyzer has ended.
    pub fn stands(&self) -> Result<Stands, ChangeError> {
        self.ask(|epochs| Stands {
            epoch_seconds: epochs.epoch_seconds(),
            seed: epochs.seed(),
            tenants: epochs.stands(),
            next: epochs.log().next(),
            period: epochs.budget_period(),
        })
    }

    /// The decisions about all tenants from this number on, as far as they are known; and the number of the next.
    ///
    /// # Errors
    /// When the analyzer has ended.
    pub fn decided_since(&self, number: u64) -> Result<(Vec<Decided>, u64), ChangeError> {
        self.ask(move |epochs| (epochs.log().since(number).cloned().collect(), epochs.log().next()))
    }

    /// What every size would bring to a tenant; why that is not known, where it is not.
    ///
    /// # Errors
    /// When the analyzer has ended.
    pub fn curves(&self, tenant: &str) -> Result<Result<ToldCurves, ExploreError>, ChangeError> {
        let tenant = tenant.to_owned();
        self.ask(move |epochs| epochs.curves(&tenant))
    }

    /// What would be if a tenant had this size; why that is not known, where it is not.
    ///
    /// # Errors
    /// When the analyzer has ended.
    pub fn what_if(&self, tenant: &str, bytes: u64) -> Result<Result<ToldWhatIf, ExploreError>, ChangeError> {
        let tenant = tenant.to_owned();
        self.ask(move |epochs| epochs.what_if(&tenant, bytes))
    }

    fn ask<T: Send + 'static>(
        &self,
        look_up: impl FnOnce(&EpochLoop) -> T + Send + 'static,
    ) -> Result<T, ChangeError> {
        let (answer, wait) = channel();
        // Nobody may be there to hear it.
        let question = Box::new(move |epochs: &EpochLoop| drop(answer.send(look_up(epochs))));
        self.0.send(Message::Ask(question)).map_err(|_| ChangeError::Ended)?;
        wait.recv().map_err(|_| ChangeError::Ended)
    }

    /// Have the thread end: every reactor has.
    pub fn end(&self) {
        // It may have ended already.
        let _ = self.0.send(Message::End);
    }
}

/// The tenants cannot be others.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// See there.
    #[error(transparent)]
    Quotas(#[from] AllocError),
    /// There is no analyzer any more.
    #[error("the daemon is stopping")]
    Ended,
}

/// The analyzer before its thread runs: the place from which reactors get their sinks.
pub struct Analyzer {
    sender: SyncSender<Message>,
    receiver: Receiver<Message>,
    budget_file: BudgetFile,
}

impl Default for Analyzer {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(BATCHES_MAX);
        Self { sender, receiver, budget_file: BudgetFile::default() }
    }
}

impl Analyzer {
    /// Where reactor number `reactor` puts its batches.
    pub fn sink(&self, reactor: usize) -> MonitorSink {
        let sender = self.sender.clone();
        Box::new(move |records| {
            let sent = sender.try_send(Message::Batch(Batch { reactor, records }));
            sent.map_err(|error| match error {
                TrySendError::Full(Message::Batch(batch))
                | TrySendError::Disconnected(Message::Batch(batch)) => batch.records,
                // It was a batch.
                TrySendError::Full(_) | TrySendError::Disconnected(_) => Vec::new(),
            })
        })
    }

    /// How far the budget of SSD writes is used up is kept in this file.
    pub fn keep_budget(&mut self, file: BudgetFile) {
        self.budget_file = file;
    }

    /// Tells it what is not of a reactor.
    pub fn handle(&self) -> AnalyzerHandle {
        AnalyzerHandle(self.sender.clone())
    }

    /// Run the loop for tenants in these places, until every sink and every handle is dropped, or a handle says so.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn run(
        self,
        epochs: EpochLoop,
        places: &[Place],
        mut actuator: Box<dyn Actuator>,
    ) -> io::Result<(SharedView, JoinHandle<()>)> {
        let routes = placement::routes(places);
        actuator.arrange(epochs.arrangement());
        epochs.bounds(&[]).into_iter().for_each(|step| actuator.apply(step));
        let began = Instant::now();
        let view = SharedView(Arc::new(Mutex::new(LoopView::of(&epochs, 0.0))), began);
        let began_ns = monitor_clock_ns(began);
        let (budget_file, next_grant) = (self.budget_file, f64::INFINITY);
        let mut runner =
            Runner { epochs, routes, actuator, began, began_ns, view: view.clone(), next_grant, budget_file };
        runner.resume_budget();
        runner.begin_to_grant(0..places.len());
        let runner = runner;
        let receiver = self.receiver;
        let thread = thread::Builder::new().name("analyzer".into()).spawn(move || runner.run(&receiver))?;
        Ok((view, thread))
    }
}

/// What the thread owns.
struct Runner {
    epochs: EpochLoop,
    routes: Routes,
    actuator: Box<dyn Actuator>,
    began: Instant,
    /// The same on the clock of the records.
    began_ns: u64,
    view: SharedView,
    /// When tenants are told next how far they may go with what they write to the SSD; never without a budget.
    next_grant: f64,
    budget_file: BudgetFile,
}

impl Runner {
    fn run(mut self, messages: &Receiver<Message>) {
        self.run_until_the_end(messages);
        self.keep_budget(true);
    }

    fn run_until_the_end(&mut self, messages: &Receiver<Message>) {
        loop {
            // No epoch is longer than a year.
            let due = self.epochs.due_seconds().min(self.next_grant);
            let wait = Duration::try_from_secs_f64((due - self.now()).max(0.0));
            match messages.recv_timeout(wait.unwrap_or(Duration::from_secs(1))) {
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.epochs.movers_come(self.now()) {
                self.actuator.move_in();
            }
            if self.now() >= self.next_grant {
                self.grant();
            }
            if self.now() < self.epochs.due_seconds() {
                continue;
            }
            let decides = self.epochs.must_decide(self.now());
            let changed = if decides { Vec::new() } else { self.epochs.changed(self.now()) };
            if self.decide_or_look(messages, decides, &changed).is_none() {
                return;
            }
        }
    }

    /// Decide, or look at the tenants, of which these have changed; where what is offered to the SSD has a price that is found anew. None at the end.
    fn decide_or_look(
        &mut self,
        messages: &Receiver<Message>,
        decides: bool,
        changed: &[usize],
    ) -> Option<()> {
        // Whoever has reports finds prices as soon as they are due, which may be a moment from now.
        let reports = decides || !changed.is_empty();
        let prices = self.epochs.prices() && (reports || self.epochs.finds_prices(self.now()));
        if prices {
            let offers = self.ask(messages, |actuator| actuator.offers())?;
            self.epochs.absorb_offers(offers);
        }
        let reports = match reports || prices {
            true => self.ask(messages, |actuator| actuator.reports())?,
            false => Vec::new(),
        };
        match decides {
            true => self.decide(&reports),
            false => self.epochs.look(self.now(), changed, &reports),
        }
        if prices {
            self.actuator.open(self.epochs.terms());
        }
        Some(())
    }

    /// What reactors say of the tenants, after what they had gathered was taken: they hand it on before. None at the end.
    fn ask<T>(&mut self, messages: &Receiver<Message>, ask: impl Fn(&mut dyn Actuator) -> T) -> Option<T> {
        let mut answer = ask(&mut *self.actuator);
        loop {
            match messages.try_recv() {
                Ok(Message::End) => return None,
                Ok(Message::Change(change)) => {
                    self.change(change);
                    answer = ask(&mut *self.actuator);
                }
                Ok(message) => self.take(message),
                Err(_) => return Some(answer),
            }
        }
    }

    /// Seconds since the start.
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Batch(batch) => self.observe(&batch),
            Message::Change(change) => self.change(change),
            Message::Switch(switch) => self.switch(switch),
            Message::Ask(question) => question(&self.epochs),
            Message::Budget(budget) => self.set_budget(budget),
            Message::Close(done) => {
                self.close_budget();
                // Nobody may wait any more.
                let _ = done.send(());
            }
            Message::End => {}
        }
    }

    fn observe(&mut self, batch: &Batch) {
        for record in &batch.records {
            if let (Some(op), Some(tenant)) =
                (op_of(record.kind), self.routes.get(&(batch.reactor, record.tenant)))
            {
                let MonitorRecord { time_ns, volume, offset, len, asked, .. } = *record;
                let seconds = time_ns.saturating_sub(self.began_ns) as f64 / 1e9;
                let (tenant, volume) = (*tenant, volume.0);
                self.epochs.observe(&Access { tenant, volume, op, offset, len, asked, seconds });
            }
        }
    }

    /// Other tenants: those who left give their blocks up first, then those who stay give up what newcomers get.
    fn change(&mut self, Change { tenants, places, answer }: Change) {
        let former = self.epochs.tenants().to_vec();
        let names: Vec<String> = former.iter().map(|tenant| tenant.name.clone()).collect();
        let before = self.epochs.standings().to_vec();
        let changed = self.epochs.set_tenants(tenants, self.now());
        if changed.is_ok() {
            let stays = |name: &String| self.epochs.tenants().iter().any(|tenant| tenant.name == *name);
            for (tenant, _) in names.iter().enumerate().filter(|(_, name)| !stays(name)) {
                self.actuator.apply(Step::Quota { tenant, blocks: 0 });
            }
            self.actuator.seat(&places);
            self.routes = placement::routes(&places);
            self.actuator.arrange(self.epochs.arrangement());
            self.epochs.bounds(&former).into_iter().for_each(|step| self.actuator.apply(step));
            let is_new = |at: &usize| !names.contains(&self.epochs.tenants()[*at].name);
            let newcomers: Vec<usize> = (0..self.epochs.tenants().len()).filter(is_new).collect();
            self.begin_to_grant(newcomers);
            let after = self.epochs.standings();
            let mut stood = Vec::with_capacity(after.len());
            for (index, (tenant, standing)) in self.epochs.tenants().iter().zip(after).enumerate() {
                let known = names.iter().position(|name| *name == tenant.name);
                stood.push(known.map_or_else(|| nothing_yet(standing), |at| before[at].clone()));
                if known.is_none() {
                    let Mode { write: policy, caching } = standing.decision.mode;
                    self.actuator.apply(Step::WritePolicy { tenant: index, policy });
                    self.actuator.apply(Step::Caching { tenant: index, caching });
                    self.actuator.apply(Step::Population { tenant: index, batched: standing.batched });
                }
            }
            steps(&stood, after).into_iter().for_each(|step| self.actuator.apply(step));
            log_changes(&stood, &self.epochs);
            self.view.set(LoopView::of(&self.epochs, self.now()));
        }
        // Nobody may be there to hear it.
        let _ = answer.send(changed);
    }

    /// Another allocator decides: reactors are told what its system is like, and tenants what changes for them at once.
    fn switch(&mut self, Switch { allocator, epoch, answer }: Switch) {
        let before = self.epochs.standings().to_vec();
        // Where tenants share, a quota does not say what they hold.
        let reports = if self.epochs.shares() { self.actuator.reports() } else { Vec::new() };
        let switched = self.epochs.switch(allocator, epoch, self.now(), &reports);
        if switched.is_ok() {
            self.actuator.arrange(self.epochs.arrangement());
            self.carry_out(&before);
            tracing::info!(
                allocator = self.epochs.allocator(),
                epoch_seconds = self.epochs.epoch_seconds(),
                "the allocator is another from now on"
            );
        }
        // Nobody may be there to hear it.
        let _ = answer.send(switched);
    }

    /// The period that was under way when the last daemon ended goes on, or is over since.
    fn resume_budget(&mut self) {
        let now = self.now();
        let Some(view) = self.epochs.budget(now) else { return };
        let period = view.budget.period_seconds;
        let unix_seconds = unix_seconds();
        if let Some(UnderWay { written_bytes, since_seconds, first }) =
            self.budget_file.under_way(period, unix_seconds)
        {
            let rhythm = self.budget_file.rhythm(period, unix_seconds - since_seconds);
            self.epochs.resume_budget(written_bytes, since_seconds, first, rhythm.as_ref());
            self.view.set_budget(self.epochs.budget(now));
        }
    }

    fn keep_budget(&mut self, at_last: bool) {
        let now = self.now();
        let Some(view) = self.epochs.budget(now) else { return };
        let (epochs, times) = (&self.epochs, (now, unix_seconds()));
        self.budget_file.keep(view, times, at_last);
        self.budget_file.keep_rhythm(view, || epochs.budget_rhythm(now), times, at_last);
    }

    /// Another budget, or none.
    fn set_budget(&mut self, budget: Option<WriteBudget>) {
        let (now, priced) = (self.now(), self.epochs.prices());
        self.epochs.set_budget(budget, now);
        if self.epochs.prices() != priced {
            self.actuator.arrange(self.epochs.arrangement());
        }
        self.view.set_budget(self.epochs.budget(now));
        if budget.is_some() {
            self.next_grant = now;
        } else {
            self.next_grant = f64::INFINITY;
            self.limit(0..self.epochs.tenants().len(), None);
            self.actuator.limit_all(None);
        }
    }

    /// Tenants may go so far, each or together, and no further.
    fn tell_granted(&mut self, granted: Option<Granted>) {
        match granted {
            Some(Granted::Each(limits)) => {
                let limits = limits.into_iter().map(|(tenant, limit)| (tenant, Some(limit)));
                self.actuator.limit(limits.collect());
                self.actuator.limit_all(None);
            }
            Some(Granted::All(bytes)) => {
                self.actuator.limit_all(Some(bytes));
                self.limit(0..self.epochs.tenants().len(), None);
            }
            None => {}
        }
    }

    /// These tenants may go so far, or as far as they like.
    fn limit(&mut self, tenants: impl IntoIterator<Item = usize>, limit: Option<Limit>) {
        self.actuator.limit(tenants.into_iter().map(|tenant| (tenant, limit)).collect());
    }

    /// Where there is a budget these tenants write nothing to the SSD before they are told how much they may, which is soon.
    fn begin_to_grant(&mut self, tenants: impl IntoIterator<Item = usize>) {
        if self.epochs.budget(self.now()).is_some() {
            self.limit(tenants, Some(Limit::default()));
            self.next_grant = self.now();
        }
    }

    /// Tell tenants how far they may go. Where a reactor does not say how far they have come, the next time.
    fn grant(&mut self) {
        if let Some(spending) = self.actuator.spending() {
            let now = self.now();
            let granted = self.epochs.grant(now, &spending, self.actuator.limits_all());
            self.tell_granted(granted);
            self.view.set_budget(self.epochs.budget(now));
            self.keep_budget(false);
        }
        let together = self.epochs.prices() && self.actuator.limits_all();
        self.next_grant = self.now() + if together { GRANT_ALL_SECONDS } else { GRANT_SECONDS };
    }

    /// Tenants write nothing more to the SSD, and how far they have come counts.
    fn close_budget(&mut self) {
        let now = self.now();
        if self.epochs.budget(now).is_none() {
            return;
        }
        self.limit(0..self.epochs.tenants().len(), Some(Limit::default()));
        if let Some(spending) = self.actuator.spending() {
            self.epochs.grant(now, &spending, false);
        }
        self.next_grant = f64::INFINITY;
    }

    fn decide(&mut self, reports: &[Option<Report>]) {
        let (before, bytes) = (self.epochs.standings().to_vec(), self.epochs.memory_bytes());
        let decided = self.epochs.decide(self.now(), unix_seconds(), reports);
        if let Err(error) = decided {
            tracing::error!(%error, "the allocator cannot decide: every tenant keeps what it has");
        }
        self.carry_out(&before);
        // Analyzers of tenants that have long been idle were given up.
        if bytes.saturating_sub(self.epochs.memory_bytes()) >= MUCH_FREED {
            larder_io::give_memory_back();
        }
    }

    /// From where the tenants stood to where they stand.
    fn carry_out(&mut self, before: &[Standing]) {
        let after = self.epochs.standings();
        steps(before, after).into_iter().for_each(|step| self.actuator.apply(step));
        log_changes(before, &self.epochs);
        self.view.set(LoopView::of(&self.epochs, self.now()));
    }
}

/// The time of the day, in seconds since 1970.
fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// How a tenant stands before it has anything.
fn nothing_yet(standing: &Standing) -> Standing {
    let decision = Decision { quota_blocks: 0, ..standing.decision.clone() };
    Standing { decision, ..standing.clone() }
}

/// How a request counts for reuse. Flushes touch no block; discards and write-zeroes leave nothing to be read again
/// from the cache.
fn op_of(kind: RequestKind) -> Option<Op> {
    match kind {
        RequestKind::Read => Some(Op::Read),
        RequestKind::Write => Some(Op::Write),
        RequestKind::Discard | RequestKind::WriteZeroes { .. } => Some(Op::Discard),
        RequestKind::Flush => None,
    }
}

/// One line for each tenant whose size or policy has changed.
fn log_changes(before: &[Standing], epochs: &EpochLoop) {
    for ((tenant, before), after) in epochs.tenants().iter().zip(before).zip(epochs.standings()) {
        let (old, new) = (&before.decision, &after.decision);
        if (old.quota_blocks, old.mode) != (new.quota_blocks, new.mode) {
            tracing::info!(
                epoch = after.epoch,
                tenant = tenant.name,
                quota_blocks = new.quota_blocks,
                write_policy = new.mode.write.as_str(),
                caching = %new.mode.caching,
                reason = new.reason,
                "decided"
            );
        }
    }
}
