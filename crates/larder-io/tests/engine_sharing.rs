//! Tenants that share a partition: who holds what, held against the simplest model of it, and what becomes of blocks when that changes.

use larder_engine::{EngineConfig, Sharing, TenantId, VolumeId, WritePolicy};
use larder_io::sim::{FaultModel, HostConfig, Rig, Rng, ask};

const BLOCK: u64 = 4096;

/// Tenants with these quotas and a volume each of 1000 blocks, over a cache of so many.
fn rig(cache_blocks: u32, quotas: &[u32]) -> (Rig, Vec<TenantId>, Vec<VolumeId>) {
    let engine = EngineConfig { block_bytes: BLOCK as u32, cache_align: 512, cache_blocks };
    let config = HostConfig { engine, seed: 1, cache: FaultModel::default(), take_max: usize::MAX };
    let mut rig = Rig::new(config);
    let tenants: Vec<_> =
        quotas.iter().map(|&quota| rig.add_tenant(quota, WritePolicy::WriteThrough)).collect();
    let volumes =
        tenants.iter().map(|&tenant| rig.add_volume(tenant, 1000 * BLOCK, FaultModel::default())).collect();
    (rig, tenants, volumes)
}

fn read(rig: &mut Rig, volume: VolumeId, blocks: impl IntoIterator<Item = u64>) {
    for block in blocks {
        assert_eq!(rig.run(ask::read(volume, block * BLOCK, BLOCK)), Ok(()));
    }
}

fn share(rig: &mut Rig, sharing: Sharing) {
    rig.host().set_sharing(sharing);
    rig.host().engine().self_check();
    while rig.trim(64) {}
    rig.host().engine().self_check();
}

fn held(rig: &mut Rig, tenants: &[TenantId]) -> Vec<u32> {
    tenants.iter().map(|&tenant| rig.host().engine().occupied(tenant)).collect()
}

/// Hits and misses of reads, and evictions.
fn counts(rig: &Rig, tenant: TenantId) -> (u64, u64, u64) {
    let stats = rig.stats(tenant);
    (stats.read_hits, stats.read_misses, stats.evictions)
}

fn all(blocks: u32) -> Sharing {
    Sharing::All { blocks, caching: "lru".parse().expect("known") }
}

fn spill(blocks: u32) -> Sharing {
    Sharing::Spill { blocks, caching: "lru".parse().expect("known") }
}

#[test]
fn whoever_asks_for_more_takes_it_from_the_others() {
    let (mut rig, tenants, volumes) = rig(100, &[50, 50]);
    share(&mut rig, all(100));
    read(&mut rig, volumes[0], 0..40);
    assert_eq!(held(&mut rig, &tenants), [40, 0]);
    read(&mut rig, volumes[1], 0..90);
    assert_eq!(held(&mut rig, &tenants), [10, 90], "the first one's oldest blocks have left");
    assert_eq!([0, 1].map(|at| counts(&rig, tenants[at])), [(0, 40, 30), (0, 90, 0)]);
    read(&mut rig, volumes[0], 30..40);
    read(&mut rig, volumes[1], 90..180);
    assert_eq!(held(&mut rig, &tenants), [10, 90], "what was used last stays, whosever it is");
    assert_eq!([0, 1].map(|at| counts(&rig, tenants[at])), [(10, 40, 30), (0, 180, 90)]);
    // A quota means nothing meanwhile, but holds afterwards.
    rig.set_quota(tenants[1], 20);
    while rig.trim(64) {}
    assert_eq!(held(&mut rig, &tenants), [10, 90]);
    share(&mut rig, Sharing::Off);
    assert_eq!(held(&mut rig, &tenants), [10, 20]);
    read(&mut rig, volumes[1], 160..180);
    assert_eq!(counts(&rig, tenants[1]), (20, 180, 160), "the blocks used last are still there");
}

#[test]
fn a_tenant_without_a_quota_shares_all_the_same() {
    let (mut rig, tenants, volumes) = rig(20, &[20, 0]);
    read(&mut rig, volumes[1], [1, 1]);
    assert_eq!(counts(&rig, tenants[1]), (0, 2, 0), "alone it has nothing");
    for sharing in [all(20), spill(10)] {
        share(&mut rig, sharing);
        let before = counts(&rig, tenants[1]).0;
        read(&mut rig, volumes[1], [1, 1]);
        assert!(counts(&rig, tenants[1]).0 > before, "{sharing:?}");
    }
}

#[test]
fn what_leaves_a_partition_of_ones_own_stays_in_the_common_one_and_comes_back() {
    let (mut rig, tenants, volumes) = rig(100, &[4, 4]);
    share(&mut rig, spill(4));
    read(&mut rig, volumes[0], 0..8);
    assert_eq!(held(&mut rig, &tenants), [8, 0]);
    // 0 comes back, 4 makes room for it: 1, 2, 3, 4 are common.
    read(&mut rig, volumes[0], [0]);
    assert_eq!(counts(&rig, tenants[0]), (1, 8, 0));
    read(&mut rig, volumes[1], 0..7);
    assert_eq!(held(&mut rig, &tenants), [5, 7], "three of the second push out three of the first");
    read(&mut rig, volumes[0], [5, 6, 7, 0, 4]);
    assert_eq!(counts(&rig, tenants[0]), (6, 8, 3), "nobody takes from a tenant's own");
    read(&mut rig, volumes[0], [1, 2, 3]);
    assert_eq!(counts(&rig, tenants[0]).1, 11);
    // Less of its own: what is too much moves to the common partition.
    rig.set_quota(tenants[0], 1);
    while rig.trim(64) {}
    assert_eq!(held(&mut rig, &tenants), [5, 4]);
    share(&mut rig, Sharing::Off);
    assert_eq!(held(&mut rig, &tenants), [1, 4]);
}

#[test]
fn all_partitions_give_up_the_same_share_when_they_become_one() {
    let (mut rig, tenants, volumes) = rig(300, &[200, 100]);
    read(&mut rig, volumes[0], 0..200);
    read(&mut rig, volumes[1], 0..100);
    share(&mut rig, all(150));
    assert_eq!(held(&mut rig, &tenants), [100, 50]);
    read(&mut rig, volumes[0], 100..200);
    read(&mut rig, volumes[1], 50..100);
    assert_eq!([0, 1].map(|at| counts(&rig, tenants[at]).0), [100, 50], "those used last are there");
}

#[test]
fn partitions_that_are_shared_do_not_lend() {
    let (mut rig, tenants, volumes) = rig(100, &[10, 10]);
    rig.host().set_lending(true);
    share(&mut rig, all(30));
    read(&mut rig, volumes[0], 0..60);
    assert_eq!(held(&mut rig, &tenants), [30, 0]);
    share(&mut rig, Sharing::Off);
    read(&mut rig, volumes[0], 60..120);
    assert_eq!(held(&mut rig, &tenants), [90, 0], "they lend again");
}

/// LRU lists, the oldest block first.
#[derive(Default)]
struct Lists {
    own: Vec<Vec<(usize, u64)>>,
    common: Vec<(usize, u64)>,
}

impl Lists {
    /// One block is read, of a tenant with `own` blocks of its own, before `common` for all. True if it was there.
    fn read(&mut self, (tenant, block): (usize, u64), own: usize, common: usize) -> bool {
        let key = (tenant, block);
        let mine = &mut self.own[tenant];
        let known = mine.iter().chain(&self.common).any(|&other| other == key);
        mine.retain(|&other| other != key);
        self.common.retain(|&other| other != key);
        let (list, most) = if own == 0 { (&mut self.common, common) } else { (mine, own) };
        list.push(key);
        if list.len() > most {
            let out = list.remove(0);
            if own > 0 {
                self.common.push(out);
                if self.common.len() > common {
                    self.common.remove(0);
                }
            }
        }
        known
    }
}

#[test]
fn shared_lru_partitions_hit_where_plain_lists_do() {
    for (sharing, own, common) in
        [(all(24), [0, 0, 0], 24), (spill(12), [9, 5, 0], 12), (spill(0), [9, 5, 3], 0)]
    {
        let quotas = if matches!(sharing, Sharing::All { .. }) { [7, 8, 9] } else { own };
        let (mut rig, tenants, volumes) = rig(64, &quotas);
        share(&mut rig, sharing);
        let mut lists = Lists { own: vec![Vec::new(); 3], ..Lists::default() };
        let (mut rng, mut hits) = (Rng::new(7), [0; 3]);
        for _ in 0..6000 {
            let tenant = rng.below(3) as usize;
            let block = rng.below(20).min(rng.below(20));
            let known = lists.read((tenant, block), own[tenant] as usize, common);
            hits[tenant] += u64::from(known);
            read(&mut rig, volumes[tenant], [block]);
            assert_eq!(counts(&rig, tenants[tenant]).0, hits[tenant], "{sharing:?}, block {block}");
        }
        let lens = (0..3).map(|at| {
            let of = |list: &[(usize, u64)]| list.iter().filter(|key| key.0 == at).count() as u32;
            of(&lists.own[at]) + of(&lists.common)
        });
        assert_eq!(held(&mut rig, &tenants), lens.collect::<Vec<_>>(), "{sharing:?}");
        assert!(hits.iter().all(|&hits| hits > 300), "{hits:?}");
    }
}

#[test]
fn every_replacement_can_be_shared_and_left() {
    for name in ["s3-fifo", "lirs", "larc", "arc", "clock", "2q", "mq", "sieve", "lfu", "fifo", "w-tinylfu"] {
        let (mut rig, tenants, volumes) = rig(200, &[30, 20]);
        let caching = name.parse().expect("known");
        let mut rng = Rng::new(3);
        let mut work = |rig: &mut Rig, tenants: &[TenantId]| {
            for _ in 0..600 {
                let volume = volumes[rng.below(2) as usize];
                let block = rng.below(80).min(rng.below(80));
                read(rig, volume, [block]);
                let sum: u32 = held(rig, tenants).iter().sum();
                assert!(sum <= 100, "{name}: {sum}");
            }
            rig.host().engine().self_check();
        };
        rig.set_caching(tenants[0], caching);
        for sharing in [
            Sharing::All { blocks: 50, caching },
            Sharing::Spill { blocks: 50, caching },
            Sharing::All { blocks: 70, caching: "lru".parse().expect("known") },
            Sharing::Spill { blocks: 10, caching: "arc".parse().expect("known") },
            Sharing::Off,
        ] {
            share(&mut rig, sharing);
            work(&mut rig, &tenants);
        }
        assert!(held(&mut rig, &tenants)[0] > 0 && held(&mut rig, &tenants)[1] > 0, "{name}");
    }
}
