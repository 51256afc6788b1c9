//! `kill -9` under write-back below an ext4 with programs on it that call `fsync` all the time: after the restart its journal is replayed, every
//! file has what was synced, `e2fsck` finds nothing, and over half of the reads are hits.
//!
//! `LARDER_KILLS` sets how often (20 times where nothing is set).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::daemon::{Larder, count, larder};
use crate::common::disk::{Disk, is_root};
use crate::common::files::Worker;
use crate::common::kills::{a_while, seed, times};
use crate::common::pattern::random;
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup};

const WORKERS: u64 = 3;

pub(super) fn attach(larder: &Larder) -> Disk {
    Disk::attach(larder, "a0", &larder.uri("a0"))
}

/// An ext4 with the workers' folders on it.
pub(super) fn prepare(larder: &Larder, state: &mut u64) -> Vec<Worker> {
    let mut disk = attach(larder);
    run(program("mkfs.ext4").args(["-q", &disk.device]), larder.folder());
    let mount = disk.mount(larder);
    let workers = (0..WORKERS).map(|number| Worker::new(&mount, number, random(state, u64::MAX))).collect();
    disk.unmount();
    disk.detach();
    workers
}

/// Mount it, which replays the journal, and look at the files; then at the file system.
pub(super) fn verify(larder: &Larder, disk: &mut Disk, workers: &mut [Worker]) {
    let mount = disk.mount(larder);
    workers.iter_mut().for_each(|worker| worker.verify(&mount));
    disk.unmount();
    disk.check(larder);
}

/// All work until the daemon is killed, after what happens `meanwhile`: no error before the disk is said to be dying.
pub(super) fn until_killed(
    larder: Larder,
    mount: &Path,
    workers: Vec<Worker>,
    meanwhile: impl FnOnce(&Larder, &AtomicBool),
) -> (Setup, Vec<Worker>) {
    let dying = Arc::new(AtomicBool::new(false));
    let running: Vec<JoinHandle<Worker>> =
        workers.into_iter().map(|worker| worker.run(mount, dying.clone())).collect();
    meanwhile(&larder, &dying);
    let sound = running.iter().all(|worker| !worker.is_finished());
    assert!(sound || dying.load(Ordering::SeqCst), "an error before the daemon was killed");
    dying.store(true, Ordering::SeqCst);
    let setup = larder.kill();
    (setup, running.into_iter().map(|worker| worker.join().expect("a worker's record")).collect())
}

/// Hits and misses of reads since the start.
pub(super) fn reads(larder: &Larder) -> [u64; 2] {
    let tenant = larder.tenant("a");
    [count(&tenant, "read_hits"), count(&tenant, "read_misses")]
}

#[test]
fn ext4_is_clean_and_has_every_file_that_was_synced() {
    let setup = Setup::new("24MiB").tenant("a", "write_policy = \"wb\"").volume("a0", 96 * MIB);
    if !is_root(setup.folder()) {
        return;
    }
    let (mut state, kills) = (seed(), times(20));
    let larder = setup.start();
    let mut workers = prepare(&larder, &mut state);
    let (mut setup, mut first_reads) = (larder.stop(), [0, 0]);
    for kill in 0..=kills {
        let larder = setup.start();
        let mut disk = attach(&larder);
        verify(&larder, &mut disk, &mut workers);
        if kill > 0 {
            let now = reads(&larder);
            first_reads = [first_reads[0] + now[0], first_reads[1] + now[1]];
        }
        let mount = disk.mount(&larder);
        let wait = |_: &Larder, _: &AtomicBool| a_while(&mut state, Duration::from_millis(1500));
        (setup, workers) = until_killed(larder, &mount, workers, wait);
        disk.detach();
    }
    let larder = setup.start();
    let mut disk = attach(&larder);
    verify(&larder, &mut disk, &mut workers);
    disk.detach();
    let setup = larder.stop();
    backing_alone(&setup, "a0");

    let synced: u64 = workers.iter().map(|worker| worker.synced).sum();
    let [hits, misses] = first_reads;
    eprintln!("{synced} changes were synced; {hits} hits and {misses} misses right after the restarts");
    assert!(synced > kills, "the kills came before there was anything to lose: {synced} changes");
    assert!(hits > misses, "{hits} hits and {misses} misses right after the restarts");
}

/// Once the dirty blocks are saved the backing by itself is the whole file system.
pub(super) fn backing_alone(setup: &Setup, file: &str) {
    run(larder().args(["cache", "writeback"]).arg(setup.cache()), setup.folder());
    run(program("e2fsck").args(["-f", "-n"]).arg(setup.backing(file)), setup.folder());
}
