//! A cache device that is lost under ordered write-back: the backing alone, as it was at any moment, is the volume after some of its flushes; an ext4
//! on it mounts after its journal is replayed, and `e2fsck` finds nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::daemon::{Larder, count};
use crate::common::disk::{Disk, is_root};
use crate::common::files::Worker;
use crate::common::kills::{a_while, seed};
use crate::common::nbd::Client;
use crate::common::pattern::random;
use crate::common::process::{program, run};
use crate::common::setup::{BLOCK, MIB, Setup};

/// Blocks are written back all the time.
const EAGER: &str = "write_policy = \"wb\"\ndirty_rest = 1\ndirty_max = 60\ndirty_age = \"1s\"";

const WORKERS: u64 = 3;
const BLOCKS: u64 = 512;
const MOMENTS: usize = 20;

/// What the backing holds at this moment, which the daemon lives to see pass.
fn snapshot(larder: &Larder, name: &str) -> PathBuf {
    let (daemon, copy) = (larder.id().to_string(), larder.path(name));
    run(program("kill").args(["-STOP", &daemon]), larder.folder());
    while !is_stopped(larder.id()) {
        std::thread::yield_now();
    }
    let copied = fs::copy(larder.backing("a0"), &copy);
    run(program("kill").args(["-CONT", &daemon]), larder.folder());
    copied.expect("a copy of the backing");
    copy
}

/// A thread of a busy machine hears of the signal some milliseconds later. What the kernel has accepted goes on either way.
fn is_stopped(process: u32) -> bool {
    let mut threads = fs::read_dir(format!("/proc/{process}/task")).expect("the daemon's threads");
    threads.all(|thread| {
        let stat = thread.and_then(|thread| fs::read_to_string(thread.path().join("stat")));
        // The name, in parentheses, may hold anything; the state follows it.
        let stat = stat.unwrap_or_default();
        let name_ends = stat.rfind(')').unwrap_or(0);
        stat.is_empty() || stat.contains("(iou-wrk") || stat[name_ends..].starts_with(") T")
    })
}

/// As after a power cut: the journal is replayed, then nothing is wrong.
fn assert_mountable(image: &Path, folder: &Path) {
    run(program("e2fsck").args(["-E", "journal_only", "-p"]).arg(image), folder);
    run(program("e2fsck").args(["-f", "-n"]).arg(image), folder);
}

#[test]
fn a_backing_alone_is_a_file_system_at_any_moment() {
    let setup = Setup::new("32MiB").tenant("a", EAGER).volume("a0", 64 * MIB).ordered();
    if !is_root(setup.folder()) {
        return;
    }
    let mut state = seed();
    let larder = setup.start();
    let mut disk = Disk::attach(&larder, "a0", &larder.uri("a0"));
    run(program("mkfs.ext4").args(["-q", &disk.device]), larder.folder());
    run(program("blockdev").args(["--flushbufs", &disk.device]), larder.folder());
    let mount = disk.mount(&larder);
    // The file system has to be on the backing before there is something to look at.
    run(program("sync").arg(&mount), larder.folder());
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    client.flush().expect("a flush");
    let mut drain = crate::common::daemon::larder();
    run(drain.args(["flush", "a0"]).arg("--socket").arg(larder.control_socket()), larder.folder());

    let dying = Arc::new(AtomicBool::new(false));
    let workers: Vec<Worker> =
        (0..WORKERS).map(|number| Worker::new(&mount, number, random(&mut state, u64::MAX))).collect();
    let running: Vec<_> = workers.into_iter().map(|worker| worker.run(&mount, dying.clone())).collect();
    let mut behind = 0;
    for moment in 0..MOMENTS {
        a_while(&mut state, Duration::from_millis(400));
        behind += u64::from(count(&larder.tenant("a"), "dirty_blocks") > 0);
        let image = snapshot(&larder, &format!("moment{moment}"));
        assert_mountable(&image, larder.folder());
        fs::remove_file(image).expect("the copy is removed");
    }
    assert!(running.iter().all(|worker| !worker.is_finished()), "an error while nothing failed");
    dying.store(true, Ordering::SeqCst);
    let synced: u64 =
        running.into_iter().map(|worker| worker.join().expect("a worker's record").synced).sum();
    let cleaned = count(&larder.tenant("a"), "backing_writes");
    eprintln!(
        "{synced} changes were synced, {cleaned} blocks written back; the backing was behind at {behind} of {MOMENTS} moments"
    );
    assert!(synced > MOMENTS as u64 && cleaned > 100 && behind > 0, "{synced} {cleaned} {behind}");
    disk.unmount();
    disk.detach();
    larder.stop();
}

/// A client's writes: the number of each, counted from 1, is in its block; with the flushes that had ended before it was sent.
type History = Arc<Mutex<Vec<(u64, u64)>>>;

/// Write blocks here and there, and flush now and then, until it is over.
fn write_on(client: &mut Client, history: &History, over: &AtomicBool, state: &mut u64) {
    let mut flushes = 0;
    while !over.load(Ordering::SeqCst) {
        for _ in 0..1 + random(state, 6) {
            let block = random(state, BLOCKS);
            let number = {
                let mut history = history.lock().expect("no panic");
                history.push((block, flushes));
                history.len() as u64
            };
            let data = number.to_le_bytes().repeat(BLOCK as usize / 8);
            client.write(block * BLOCK, &data).expect("a write");
        }
        client.flush().expect("a flush");
        flushes += 1;
    }
}

/// Of all that was flushed before the newest write that shows was sent, nothing is missing.
fn assert_prefix(image: &Path, history: &[(u64, u64)]) -> u64 {
    let bytes = fs::read(image).expect("the copy");
    let number = |block: u64| {
        let at = (block * BLOCK) as usize;
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let shown: Vec<u64> = (0..BLOCKS).map(number).collect();
    let newest = shown.iter().copied().max().unwrap_or(0);
    let flushed = newest.checked_sub(1).map_or(0, |at| history[at as usize].1);
    for (number, &(block, flushes)) in (1..).zip(history) {
        let has = shown[block as usize] >= number;
        assert!(
            has || flushes >= flushed,
            "write {newest} shows, and write {number} of block {block} does not"
        );
    }
    newest
}

#[test]
fn a_backing_alone_is_the_volume_after_some_of_its_flushes() {
    let setup = Setup::new("32MiB").tenant("a", EAGER).volume("a0", BLOCKS * BLOCK).ordered();
    let larder = setup.start();
    let (history, over) = (History::default(), Arc::new(AtomicBool::new(false)));
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let (log, end) = (history.clone(), over.clone());
    let writer = std::thread::spawn(move || write_on(&mut client, &log, &end, &mut seed()));
    let (mut state, mut newest) = (seed(), Vec::new());
    for moment in 0..MOMENTS {
        a_while(&mut state, Duration::from_millis(150));
        let image = snapshot(&larder, &format!("moment{moment}"));
        newest.push(assert_prefix(&image, &history.lock().expect("no panic")));
    }
    over.store(true, Ordering::SeqCst);
    writer.join().expect("the writer");
    let written = history.lock().expect("no panic").len();
    eprintln!("{written} writes; the backing was at {newest:?}");
    assert!(newest.is_sorted() && newest.last() > Some(&0), "{newest:?}");
    larder.stop();
}

/// The status tells what a loss of the cache device would cost.
#[test]
fn how_far_the_backing_is_behind_is_told() {
    let lazy = "write_policy = \"wb\"\ndirty_rest = 70\ndirty_max = 90\ndirty_age = \"1h\"";
    let setup = Setup::new("16MiB").control("allocator = \"static\"").tenant("a", lazy);
    let larder = setup.volume("a0", 4 * MIB).ordered().start();
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let behind = || {
        let tenant = larder.tenant("a");
        tenant["volumes"][0]["epochs_behind"].as_u64().expect("an ordered volume")
    };
    assert_eq!(behind(), 0);
    for round in 0..3 {
        client.write(round * BLOCK, &vec![7; BLOCK as usize]).expect("a write");
        client.flush().expect("a flush");
    }
    assert!(behind() > 0);
    let mut status = crate::common::daemon::larder();
    let text = run(status.arg("status").arg("--socket").arg(larder.control_socket()), larder.folder());
    assert!(text.contains("flush"), "{text}");
    let mut flush = crate::common::daemon::larder();
    run(flush.args(["flush", "a0"]).arg("--socket").arg(larder.control_socket()), larder.folder());
    assert_eq!(behind(), 0);
    larder.stop();
}
