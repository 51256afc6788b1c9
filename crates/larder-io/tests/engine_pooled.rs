//! Partitions over a pool of free blocks that a cleaner keeps from running dry: when it works, what it takes, and what it leaves.

use larder_engine::{EngineConfig, TenantId, VolumeId, Watermarks, WritePolicy};
use larder_io::sim::{FaultModel, HostConfig, Rig, ask};

const BLOCK: u64 = 4096;
const CACHE: u32 = 400;

/// 1 and 5 %.
const PAPER: Watermarks = Watermarks { low: 4, high: 20 };

/// Tenants with these quotas and a volume each of 1000 blocks, replaced by CLOCK as S-CAVE has it.
fn rig(quotas: &[u32]) -> (Rig, Vec<TenantId>, Vec<VolumeId>) {
    let engine = EngineConfig { block_bytes: BLOCK as u32, cache_align: 512, cache_blocks: CACHE };
    let config = HostConfig { engine, seed: 1, cache: FaultModel::default(), take_max: usize::MAX };
    let mut rig = Rig::new(config);
    let tenants: Vec<_> =
        quotas.iter().map(|&quota| rig.add_tenant(quota, WritePolicy::WriteThrough)).collect();
    let volumes =
        tenants.iter().map(|&tenant| rig.add_volume(tenant, 1000 * BLOCK, FaultModel::default())).collect();
    tenants.iter().for_each(|&tenant| rig.host().set_caching(tenant, "clock".parse().expect("known")));
    rig.host().set_watermarks(Some(PAPER));
    (rig, tenants, volumes)
}

fn read(rig: &mut Rig, volume: VolumeId, blocks: impl IntoIterator<Item = u64>) {
    for block in blocks {
        assert_eq!(rig.run(ask::read(volume, block * BLOCK, BLOCK)), Ok(()));
    }
    rig.host().engine().self_check();
}

fn held(rig: &mut Rig, tenants: &[TenantId]) -> Vec<u32> {
    tenants.iter().map(|&tenant| rig.host().engine().occupied(tenant)).collect()
}

#[test]
fn what_falls_below_the_low_watermark_is_brought_up_to_the_high_one() {
    let (mut rig, tenants, volumes) = rig(&[CACHE, CACHE]);
    read(&mut rig, volumes[0], 0..300);
    read(&mut rig, volumes[1], 0..97);
    assert_eq!(held(&mut rig, &tenants), [300, 97], "three are free");
    let before = rig.stats(tenants[0]).evictions + rig.stats(tenants[1]).evictions;
    assert_eq!(before, 0);
    // Each block that enters takes one of those that become free.
    let mut most = 0;
    for block in 500..520 {
        read(&mut rig, volumes[1], [block]);
        most = most.max(CACHE - held(&mut rig, &tenants).iter().sum::<u32>());
    }
    assert_eq!(most, PAPER.high - 1, "and then one has entered");
    // As long as enough is free, it rests.
    let left: u32 = held(&mut rig, &tenants).iter().sum();
    assert!((CACHE - PAPER.high..=CACHE - PAPER.low).contains(&left), "{left}");
    let evictions = [0, 1].map(|at| rig.stats(tenants[at]).evictions);
    assert!(evictions[0] >= 3 * evictions[1] - 3 && evictions[1] > 0, "by what they hold: {evictions:?}");
}

#[test]
fn what_was_used_lately_stays_whosever_it_is() {
    let (mut rig, tenants, volumes) = rig(&[CACHE, CACHE]);
    read(&mut rig, volumes[0], 0..200);
    read(&mut rig, volumes[0], (0..200).filter(|block| block % 2 == 0));
    read(&mut rig, volumes[1], 0..180);
    read(&mut rig, volumes[1], 200..240);
    assert!(rig.stats(tenants[0]).evictions > 0);
    let hits = rig.stats(tenants[0]).read_hits;
    read(&mut rig, volumes[0], (0..200).filter(|block| block % 2 == 0));
    assert_eq!(rig.stats(tenants[0]).read_hits, hits + 100, "no block that was hit has left");
}

#[test]
fn a_quota_is_a_limit_and_a_lower_one_frees_blocks() {
    let (mut rig, tenants, volumes) = rig(&[50, CACHE]);
    read(&mut rig, volumes[0], 0..200);
    assert_eq!(held(&mut rig, &tenants), [50, 0]);
    rig.host().set_quota(tenants[0], 20);
    while rig.trim(64) {}
    assert_eq!(held(&mut rig, &tenants), [20, 0]);
    read(&mut rig, volumes[1], 0..1000);
    let both = held(&mut rig, &tenants);
    assert!(both[0] < 20 && both.iter().sum::<u32>() <= CACHE - PAPER.low + 1, "{both:?}");
}

#[test]
fn without_a_cleaner_everything_may_be_in_use() {
    let (mut rig, tenants, volumes) = rig(&[CACHE, CACHE]);
    rig.host().set_watermarks(None);
    read(&mut rig, volumes[0], 0..300);
    read(&mut rig, volumes[1], 0..300);
    assert_eq!(held(&mut rig, &tenants), [300, 100]);
    rig.host().set_watermarks(Some(PAPER));
    read(&mut rig, volumes[1], 300..330);
    assert!(held(&mut rig, &tenants).iter().sum::<u32>() <= CACHE - PAPER.low + 1);
}
