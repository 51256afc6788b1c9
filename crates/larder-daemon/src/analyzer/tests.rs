//! The thread of the loop, with batches and actuators made up.

use super::*;
use crate::actuator::Arrangement;
use crate::epoch::{LoopConfig, SsdSpending};
use larder_alloc::control::{Offers, Terms};
use larder_alloc::{ConfiguredPolicy, Goals};
use larder_engine::{Kind, VolumeId};
use larder_policy::spec::CachingSpec;

/// Tells the test what was applied.
struct Told(Sender<Step>);

impl Actuator for Told {
    fn apply(&mut self, step: Step) {
        // The test may have ended.
        let _ = self.0.send(step);
    }

    fn arrange(&mut self, _: Arrangement) {}

    fn move_in(&mut self) {}

    fn reports(&mut self) -> Vec<Option<Report>> {
        Vec::new()
    }

    fn spending(&mut self) -> Option<SsdSpending> {
        None
    }

    fn limit(&mut self, _: Vec<(usize, Option<Limit>)>) {}

    fn limits_all(&self) -> bool {
        true
    }

    fn limit_all(&mut self, _: Option<u64>) {}

    fn offers(&mut self) -> Vec<Option<Box<Offers>>> {
        Vec::new()
    }

    fn open(&mut self, _: Vec<(usize, Box<Terms>)>) {}

    fn seat(&mut self, _: &[Place]) {}
}

fn record(tenant: u16, block: u64) -> MonitorRecord {
    let (tenant, volume, asked) = (TenantId(tenant), VolumeId(0), Kind::default());
    let (kind, offset) = (RequestKind::Read, block * 4096);
    MonitorRecord { time_ns: 0, tenant, volume, kind, offset, len: 4096, asked }
}

fn place(reactor: usize, tenant: u16) -> Place {
    Place { reactor, tenant: TenantId(tenant) }
}

fn tenant(name: &str) -> LoopTenant {
    LoopTenant {
        name: name.into(),
        quota_blocks: None,
        write_policy: ConfiguredPolicy::Auto,
        caching: None,
        batched: None,
        goals: Goals::default(),
    }
}

fn epochs(epoch: Duration) -> EpochLoop {
    let config = LoopConfig {
        block_bytes: 4096,
        cache_blocks: 100,
        min_blocks: 1,
        write_threshold: 0.5,
        write_back: false,
        budget: None,
        epoch,
        seed: 0,
    };
    let allocator = larder_alloc::by_name("eci").expect("known");
    EpochLoop::new(config, allocator, vec![tenant("a"), tenant("b")]).expect("fits")
}

#[test]
fn batches_lead_to_decisions_that_are_applied_and_seen() {
    let analyzer = Analyzer::default();
    let mut sink = analyzer.sink(1);
    // Reactor 1 has one tenant, which is tenant 1 of the configuration; its neighbour there is unknown.
    let records =
        (0..2).flat_map(|_| (0..70).flat_map(|block| [record(0, block), record(7, block)])).collect();
    sink(records).expect("room");
    let (tell, told) = channel();
    let epoch = Duration::from_millis(50);
    let (view, thread) =
        analyzer.run(epochs(epoch), &[place(0, 3), place(1, 0)], Box::new(Told(tell))).expect("thread");
    assert_eq!(told.recv(), Ok(Step::Quota { tenant: 0, blocks: 1 }));
    assert_eq!(told.recv(), Ok(Step::Quota { tenant: 1, blocks: 70 }));
    drop(sink);
    thread.join().expect("ends with the last sink");
    let view = view.get();
    assert!(view.epoch >= 1);
    assert!(view.memory_bytes > 0);
}

#[test]
fn those_who_leave_give_up_first_and_those_who_come_get_last() {
    let analyzer = Analyzer::default();
    let handle = analyzer.handle();
    let (tell, told) = channel();
    let places = [place(0, 0), place(1, 0)];
    let hour = Duration::from_secs(3600);
    let (view, thread) = analyzer.run(epochs(hour), &places, Box::new(Told(tell))).expect("thread");
    let (b, c) = (tenant("b"), tenant("c"));
    handle.set_tenants(vec![c, b], vec![place(0, 1), place(1, 0)]).expect("fits");
    let steps: Vec<Step> = told.try_iter().collect();
    let policy = larder_alloc::WritePolicy::WriteThrough;
    assert_eq!(
        steps,
        [
            Step::Quota { tenant: 0, blocks: 0 },
            Step::WritePolicy { tenant: 0, policy },
            Step::Caching { tenant: 0, caching: CachingSpec::default() },
            Step::Population { tenant: 0, batched: false },
            Step::Quota { tenant: 0, blocks: 50 }
        ]
    );
    let seen = view.get();
    assert_eq!(seen.tenants, ["c", "b"]);
    let too_much = LoopTenant { quota_blocks: Some(101), ..tenant("d") };
    assert!(matches!(handle.set_tenants(vec![too_much], vec![place(0, 2)]), Err(ChangeError::Quotas(_))));
    assert_eq!((view.get().tenants, told.try_iter().count()), (seen.tenants, 0), "nothing has changed");
    handle.end();
    thread.join().expect("ends");
    assert!(matches!(handle.set_tenants(Vec::new(), Vec::new()), Err(ChangeError::Ended)));
}

#[test]
fn reactors_are_told_what_tenants_keep_and_may_hold_when_that_is_another() {
    let analyzer = Analyzer::default();
    let handle = analyzer.handle();
    let (tell, told) = channel();
    let hour = Duration::from_secs(3600);
    let places = [place(0, 0), place(1, 0)];
    let at_most =
        |name, max_blocks| LoopTenant { goals: Goals { max_blocks, ..Goals::default() }, ..tenant(name) };
    let mut epochs = epochs(hour);
    epochs.set_tenants(vec![tenant("a"), at_most("b", Some(50))], 0.0).expect("fits");
    let (_, thread) = analyzer.run(epochs, &places, Box::new(Told(tell))).expect("thread");
    assert_eq!(told.recv(), Ok(Step::Bounds { tenant: 1, least: 0, most: 50 }));
    let most = |tenants: [LoopTenant; 2]| {
        handle.set_tenants(tenants.into(), places.to_vec()).expect("fits");
        let steps = told.try_iter().filter(|step| matches!(step, Step::Bounds { .. }));
        steps.collect::<Vec<Step>>()
    };
    let step = |tenant, most| Step::Bounds { tenant, least: 0, most };
    assert_eq!(most([tenant("a"), at_most("b", Some(60))]), [step(1, 60)]);
    assert_eq!(most([tenant("a"), at_most("b", Some(60))]), []);
    assert_eq!(most([at_most("b", Some(70)), tenant("a")]), [step(0, 70)]);
    // Whoever comes has what is for it.
    assert_eq!(most([at_most("c", Some(70)), at_most("b", None)]), [step(0, 70), step(1, u32::MAX)]);
    // Who was promised something keeps what it has.
    let shared = LoopTenant { goals: Goals { share: Some(1.0), ..Goals::default() }, ..tenant("b") };
    let keeps = Step::Bounds { tenant: 1, least: u32::MAX, most: u32::MAX };
    assert_eq!(most([at_most("c", Some(70)), shared]), [keeps]);
    handle.end();
    thread.join().expect("ends");
}

#[test]
fn another_allocator_takes_over_and_its_decisions_are_told() {
    let analyzer = Analyzer::default();
    let handle = analyzer.handle();
    let (tell, told) = channel();
    let hour = Duration::from_secs(3600);
    let places = [place(0, 0), place(1, 0)];
    let (view, thread) = analyzer.run(epochs(hour), &places, Box::new(Told(tell))).expect("thread");
    assert_eq!(handle.decisions("a").expect("runs"), []);
    let wss = larder_alloc::by_name("wss").expect("known");
    handle.switch(wss, Duration::from_millis(20)).expect("fits");
    let seen = view.get();
    assert_eq!((seen.allocator, seen.epoch_seconds), ("wss", 0.02));
    let quota = told.recv_timeout(Duration::from_secs(60)).expect("it decides");
    assert!(matches!(quota, Step::Quota { .. }), "{quota:?}");
    let decisions = handle.decisions("b").expect("runs");
    assert!(!decisions.is_empty() && decisions.iter().all(|record| record.allocator == "wss"));
    handle.end();
    thread.join().expect("ends");
    assert!(handle.decisions("b").is_err());
}

#[test]
fn a_sink_gives_back_what_does_not_fit() {
    let analyzer = Analyzer::default();
    let mut sink = analyzer.sink(0);
    for _ in 0..BATCHES_MAX {
        sink(vec![record(0, 0)]).expect("room");
    }
    assert_eq!(sink(vec![record(0, 1)]), Err(vec![record(0, 1)]));
}
