//! An engine on what was recovered, as far as its first actions, and some seconds more.

// By another path for the fuzz target.
use super::sim::{FaultModel, HostConfig, SharedSlots, SimHost};
use larder_engine::format::*;
use larder_engine::{Engine, EngineConfig, OpenError, WritePolicy};

/// Operations that end before it is enough.
const STEPS: usize = 300;

/// Start an engine on a device with these bytes, of which this was recovered; with every other volume in order. Whatever is wrong panics.
pub fn start(bytes: &[u8], recovered: &Recovered) -> Result<(), OpenError> {
    let layout = recovered.superblock().layout;
    let config = EngineConfig {
        block_bytes: layout.block_bytes(),
        cache_align: layout.shape().sector_bytes,
        cache_blocks: layout.slots(),
    };
    let volumes = recovered.volumes().volumes.clone();
    let free = recovered.slots().filter(|(_, state)| *state == SlotState::Free).map(|(slot, _)| slot);
    let pool = SharedSlots::of(free.collect(), layout.slots());
    let mut engine = Engine::new(config, Box::new(pool.clone()));
    let tenant = engine.add_tenant(layout.slots(), WritePolicy::WriteBack);
    for volume in &volumes {
        let number = engine.add_volume(tenant, volume.bytes);
        engine.set_ordered(number, number.0 % 2 == 1);
    }
    engine.open_cache(recovered, volumes.clone())?;
    let host = HostConfig { engine: config, seed: 1, cache: FaultModel::default(), take_max: usize::MAX };
    let mut host = SimHost::with_metadata(host, &layout);
    let room = bytes.len().min(layout.device_bytes() as usize);
    host.cache().content_mut().write(0, &bytes[..room]);
    volumes.iter().for_each(|volume| _ = host.add_backing(volume.bytes, FaultModel::default()));
    host.restart(engine, pool);
    for _ in 0..STEPS {
        if !host.step() {
            host.tick();
        }
        host.engine().self_check();
    }
    Ok(())
}
