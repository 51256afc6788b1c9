//! Dirty blocks of tenants that share a partition: they fill it together, so their limits are held against all of it.

use crate::support::{BLOCK, plan};
use larder_engine::{CachingSpec, DirtyLimits, Sharing, TenantId, VolumeId, WritePolicy};
use larder_io::sim::ask;
use larder_simtest::{Plan, World};

/// Two tenants under `wb` with a volume of 16 blocks each; half of what they may hold may be dirty, and the cleaner rests.
fn two(quota: u32, sharing: Sharing) -> Plan {
    let mut plan = plan(16);
    plan.tenants[0].quota = quota;
    plan.tenants[0].policy = WritePolicy::WriteBack;
    plan.tenants[0].dirty = DirtyLimits { rest: 100, max: 50, age: 10_000 };
    let (tenant, mut disk) = (plan.tenants[0].clone(), plan.disks[0].clone());
    disk.tenant = 1;
    plan.tenants.push(tenant);
    plan.disks.push(disk);
    plan.sharing = sharing;
    plan
}

fn write(world: &mut World, disk: u16, blocks: u64) {
    for block in 0..blocks {
        world.submit(ask::write(VolumeId(disk), block * BLOCK, BLOCK));
        world.settle();
    }
}

fn dirty(world: &mut World) -> [u32; 2] {
    [0, 1].map(|tenant| world.host().engine().dirty(TenantId(tenant)))
}

#[test]
fn limits_of_dirty_blocks_are_held_against_what_is_shared() {
    let caching = CachingSpec::default();
    for (quota, sharing, expected) in [
        (10, Sharing::Off, [5, 5]),
        (10, Sharing::All { blocks: 20, caching }, [8, 2]),
        (6, Sharing::Spill { blocks: 8, caching }, [8, 2]),
        (0, Sharing::Spill { blocks: 20, caching }, [8, 2]),
    ] {
        let mut world = World::new(two(quota, sharing));
        world.settle();
        write(&mut world, 0, 8);
        write(&mut world, 1, 8);
        assert_eq!(dirty(&mut world), expected, "{sharing:?}");
        world.read_everything();
    }
}

#[test]
fn dirty_blocks_stay_so_when_they_change_their_partition() {
    let caching = CachingSpec::default();
    let mut world = World::new(two(10, Sharing::Off));
    world.settle();
    write(&mut world, 0, 5);
    write(&mut world, 1, 4);
    let kinds = [
        Sharing::All { blocks: 20, caching },
        Sharing::Spill { blocks: 4, caching },
        Sharing::All { blocks: 4, caching },
        Sharing::Off,
    ];
    for sharing in kinds {
        world.set_sharing(sharing);
        assert_eq!(dirty(&mut world), [5, 4], "{sharing:?}");
        assert_eq!(world.cached(), [5, 4], "a dirty block stays, whatever the quota: {sharing:?}");
    }
    world.read_everything();
}
