//! What is forgotten of a volume does not come back, not after a power cut either: meanwhile another host may have written to its backing.

use crate::support::{BLOCK, VOLUME};
use crate::warm;
use larder_engine::format::SlotState;
use larder_io::sim::ask;

#[test]
fn no_crash_brings_back_what_was_forgotten() {
    for cut in [false, true] {
        let mut world = warm(100);
        world.submit(ask::write(VOLUME, 0, 3 * BLOCK));
        world.settle();
        world.forget_volume(VOLUME);
        assert_eq!(world.cached(), [0]);
        if cut {
            world.cut()
        } else {
            world.kill()
        }
        assert_eq!(world.cached(), [0]);
        let left = world.recovered();
        assert!(left.slots().all(|(_, state)| state == SlotState::Free), "the journal knows of none");
        world.read_everything();
    }
}
