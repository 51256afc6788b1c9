//! The smallest world: one tenant, one volume, sound devices.

use larder_engine::format::Shape;
use larder_engine::{CachingSpec, DirtyLimits, Sharing, VolumeId, WritePolicy};
use larder_io::sim::FaultModel;
use larder_simtest::{Disk, Plan, Tenant, World};

pub const BLOCK: u64 = 4096;
pub const VOLUME: VolumeId = VolumeId(0);

/// A volume of so many blocks, and a quota that holds them all.
pub fn plan(blocks: u64) -> Plan {
    let (quota, caching) = (blocks as u32, CachingSpec::default());
    Plan {
        shape: Shape {
            block_bytes: 4096,
            sector_bytes: 512,
            slots: 1000,
            records: 32,
            volume_table_bytes: 4096,
        },
        region_blocks: 1,
        tenants: vec![Tenant {
            quota,
            most: u32::MAX,
            policy: WritePolicy::WriteThrough,
            dirty: DirtyLimits::default(),
            caching,
        }],
        disks: vec![Disk { tenant: 0, bytes: blocks * BLOCK, identity: 0, ordered: false }],
        seed: 5,
        backing: FaultModel::default(),
        cache: FaultModel::default(),
        holds_back: false,
        lending: false,
        pooled: false,
        watermarks: None,
        spare_slots: 0,
        shares: false,
        sharing: Sharing::Off,
        limited: false,
        meddling: false,
        planted: None,
    }
}

/// Let a few seconds pass.
pub fn tend(world: &mut World) {
    for _ in 0..6 {
        world.tick();
        world.settle();
    }
}
