//! Dry runs over the loop of an epoch.

use larder_locality::Op;

use super::*;
use crate::control::tests::{config, tenant};

/// Two tenants that read what they use again and again, and one that does nothing, after an epoch.
fn after_an_epoch(name: &str, used: [u64; 2]) -> ControlLoop {
    let allocator = crate::by_name(name).expect("known");
    let profile = allocator.profile();
    let tenants = ["a", "b", "idle"].map(tenant).to_vec();
    let mut control = ControlLoop::new(config(100.0), allocator, profile, tenants);
    control.arrive(&[0, 1, 2], 0.0).expect("fits");
    for _ in 0..5 {
        for (tenant, used) in used.into_iter().enumerate() {
            (0..used).for_each(|block| {
                let _ = control.observe(tenant, Op::Read, block..block + 1);
            });
            control.populate();
        }
    }
    control.decide(100.0, &[]).expect("decides");
    control
}

#[test]
fn what_one_gets_the_others_lose() {
    for name in ["larder", "centaur", "eci", "wss", "static"] {
        let control = after_an_epoch(name, [600, 600]);
        let before = control.positions().to_vec();
        let told = control.what_if(0, 900).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(control.positions(), before, "{name}: nothing has changed");
        let [a, b, idle] = &told[..] else { panic!("{name}: three tenants") };
        assert_eq!((a.tenant, b.tenant, idle.tenant, a.then.quota_blocks), (0, 1, 2, 900), "{name}");
        let quotas: u32 = told.iter().map(|prospect| prospect.then.quota_blocks).sum();
        assert!(quotas <= 1000, "{name}: {told:?}");
        let latency = |outlook: &Outlook| outlook.expected.expect("it did something").latency;
        assert!(b.then.quota_blocks <= 100 && latency(&b.then) > 4e-3, "{name}: {b:?}");
        let hits = a.then.expected.expect("it did something").request_hit_ratio;
        assert!(hits > 0.7 && latency(&a.then) < 2e-3, "{name}: {a:?}");
        assert!(idle.now.expected.is_none() && idle.requests_per_second == 0.0, "{name}: {idle:?}");
        assert_eq!(a.now.quota_blocks, before[0].decision.quota_blocks);
        assert_eq!(control.what_if(0, 0).map(|told| told[0].then.quota_blocks), Ok(0), "{name}");
    }
}

#[test]
fn what_is_not_known_is_said() {
    let control = after_an_epoch("larder", [100, 100]);
    assert_eq!(control.what_if(2, 10), Err(DryRunError::NothingFound));
    assert_eq!(control.ways(9).err(), Some(DryRunError::NothingFound));
    assert_eq!(control.what_if(0, 1001), Err(DryRunError::TooLarge { blocks: 1001, cache_blocks: 1000 }));
    let scave = after_an_epoch("scave", [100, 100]);
    assert_eq!(scave.ways(0).err(), Some(DryRunError::NoCurves { allocator: "scave" }));
}

#[test]
fn curves_tell_what_every_size_does() {
    for name in ["larder", "centaur", "eci"] {
        let control = after_an_epoch(name, [300, 100]);
        let menu = control.ways(0).unwrap_or_else(|error| panic!("{name}: {error}"));
        for way in &menu.ways {
            let (none, all) = (way.at(0), way.at(1000));
            assert!(none.request_hit_ratio < 0.01 && all.request_hit_ratio > 0.7, "{name}: {way:?}");
            assert!(way.points.is_sorted_by_key(|point| point.blocks), "{name}");
        }
        assert_eq!(control.ways(2).err(), Some(DryRunError::NothingFound), "{name}");
    }
}
