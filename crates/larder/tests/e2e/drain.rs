//! `larder flush` and `larder drain` on a running daemon: what they promise of the backing, while guests go on writing, and when the backing fails.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::daemon::{Larder, count};
use crate::common::nbd::Client;
use crate::common::pattern::{first_difference, stamp};
use crate::common::process::{Background, Outcome, program, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::{LIMIT, wait_for};

/// Nothing is written back by itself, however long it rests.
const LAZY: &str = "write_policy = \"wb\"\ndirty_rest = 70\ndirty_max = 90\ndirty_age = \"1h\"";

fn lazy() -> Setup {
    Setup::new("16MiB").control("allocator = \"static\"")
}

fn ask(larder: &Larder, words: &[&str]) -> Outcome {
    let mut command = crate::common::daemon::larder();
    command.args(words).arg("--socket").arg(larder.control_socket());
    run_within(LIMIT, &mut command, larder.folder())
}

fn volume(larder: &Larder, of: &str, name: &str) -> Value {
    let tenant = larder.tenant(of);
    let volumes = tenant["volumes"].as_array().expect("volumes").clone();
    volumes.into_iter().find(|volume| volume["name"] == name).expect("the volume")
}

fn write(client: &mut Client, generation: u64, blocks: std::ops::Range<u64>) {
    for block in blocks {
        client.write(block * BLOCK, &stamp(3, generation, block * BLOCK, BLOCK)).expect("a write");
    }
}

/// What the file of a backing holds.
fn on_backing(path: &Path, generation: u64, blocks: std::ops::Range<u64>) {
    let found = fs::read(path).expect("the backing");
    for block in blocks {
        let at = (block * BLOCK) as usize;
        let expected = stamp(3, generation, block * BLOCK, BLOCK);
        assert_eq!(first_difference(&found[at..at + BLOCK as usize], &expected), None, "block {block}");
    }
}

/// Guests that never rest keep the cleaner from writing back for idleness.
fn busy(larder: &Larder, name: &str) -> Traffic {
    let mut client = Client::connect(&larder.socket(name), name);
    Traffic::start(move || {
        client.read(0, 4096).expect("a read of the busy client");
        std::thread::sleep(Duration::from_millis(2));
    })
}

#[test]
fn a_flush_brings_all_of_a_tenant_to_its_backings_and_write_back_goes_on() {
    let setup = lazy().tenant("a", LAZY).volume("a0", 4 * MIB).volume("a1", 4 * MIB).tenant("b", LAZY);
    let larder = setup.volume("b0", 4 * MIB).start();
    let busy = busy(&larder, "b0");
    let mut clients = ["a0", "a1", "b0"].map(|name| Client::connect(&larder.socket(name), name));
    clients.iter_mut().for_each(|client| write(client, 1, 0..300));
    let dirty = |name| count(&larder.tenant(name), "dirty_blocks");
    assert_eq!((dirty("a"), dirty("b")), (600, 300));
    assert_eq!(count(&larder.tenant("a"), "dirty_bytes"), 600 * BLOCK);

    let flushed = ask(&larder, &["flush", "a"]);
    assert!(flushed.status.success(), "{flushed:?}");
    let text = "a: all that was dirty is on the backings (600 blocks, 2.3 MiB, written back)\n";
    assert_eq!(flushed.stdout, text, "{flushed:?}");
    assert_eq!((dirty("a"), dirty("b")), (0, 300), "the other tenant's are none of its business");
    on_backing(&larder.backing("a0"), 1, 0..300);
    on_backing(&larder.backing("a1"), 1, 0..300);

    assert_eq!(volume(&larder, "a", "a0")["draining"], "off");
    // A machine so busy that nobody asks for anything over a tick has the cleaner write back before the flush.
    wait_for("a flush that finds what was written", || {
        write(&mut clients[0], 2, 0..10);
        let dirty = dirty("a");
        let again = ask(&larder, &["flush", "a0"]);
        let found = dirty == 10 && again.stdout.contains("10 blocks, 40 KiB");
        if found { Ok(()) } else { Err(format!("{dirty} dirty, {again:?}")) }
    });
    on_backing(&larder.backing("a0"), 2, 0..10);
    busy.finish();
    larder.stop();
}

#[test]
fn a_drained_volume_stays_so_until_it_is_said_otherwise() {
    let larder = lazy().tenant("a", LAZY).volume("a0", 4 * MIB).start();
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let traffic = busy(&larder, "a0");
    write(&mut client, 1, 0..200);
    let drained = ask(&larder, &["drain", "a0"]);
    assert!(drained.status.success() && drained.stdout.starts_with("a0: drained (200 blocks"), "{drained:?}");
    write(&mut client, 2, 100..400);
    let now = volume(&larder, "a", "a0");
    assert_eq!((count(&now, "dirty_blocks"), &now["draining"]), (0, &"done".into()));
    on_backing(&larder.backing("a0"), 1, 0..100);
    on_backing(&larder.backing("a0"), 2, 100..400);
    let mut status = crate::common::daemon::larder();
    status.arg("status").arg("--socket").arg(larder.control_socket());
    let text = run_within(LIMIT, &mut status, larder.folder()).stdout;
    assert!(text.contains("done"), "{text}");

    let off = ask(&larder, &["drain", "--off", "a0"]);
    assert_eq!(off.stdout, "a0: blocks may become dirty again\n");
    write(&mut client, 3, 0..7);
    assert_eq!(count(&larder.tenant("a"), "dirty_blocks"), 7);
    traffic.finish();
    larder.stop();
}

#[test]
fn what_is_not_there_is_told() {
    let larder = lazy().tenant("a", LAZY).volume("a0", MIB).start();
    let unknown = ask(&larder, &["drain", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        unknown.stderr.contains("error: there is no tenant and no volume \"nobody\"\nhelp: "),
        "{unknown:?}"
    );
    let setup = larder.stop();
    let mut command = crate::common::daemon::larder();
    command.args(["flush", "a", "--socket"]).arg(setup.control_socket());
    let gone = run_within(LIMIT, &mut command, setup.folder());
    assert!(gone.stderr.starts_with("error: no daemon answers"), "{gone:?}");
}

/// nbdkit in memory, whose writes fail as long as a file is there.
fn failing_backing(setup: &Setup, trigger: &Path) -> (Background, String) {
    let socket = setup.path("nbdkit.sock");
    let mut nbdkit = program("nbdkit");
    nbdkit.args(["-f", "-U"]).arg(&socket).args(["--filter=error", "memory", "8M", "error=EIO"]);
    nbdkit.args(["error-pwrite-rate=100%", &format!("error-pwrite-file={}", trigger.display())]);
    let nbdkit = Background::start(&mut nbdkit, &setup.path("nbdkit.log"));
    wait_for("nbdkit", || socket.exists().then_some(()).ok_or_else(|| nbdkit.log()));
    (nbdkit, format!("nbd+unix:///?socket={}", socket.display()))
}

#[test]
fn a_backing_that_fails_keeps_its_blocks_and_they_go_there_when_it_works_again() {
    let setup = lazy();
    let trigger = setup.path("trigger");
    let (_nbdkit, uri) = failing_backing(&setup, &trigger);
    let larder = setup.tenant("a", LAZY).volume_on("a0", &uri).tenant("b", LAZY).volume("b0", MIB).start();
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let mut other = Client::connect(&larder.socket("b0"), "b0");
    let traffic = busy(&larder, "b0");
    write(&mut client, 1, 0..100);
    write(&mut other, 1, 0..10);
    fs::write(&trigger, "").expect("the trigger");

    let flush = ask(&larder, &["flush", "a"]);
    assert_eq!(flush.status.code(), Some(1), "{flush:?}");
    for words in
        ["error: the backing of volume a0 fails", "100 dirty blocks (400 KiB) wait", "help: mend the backing"]
    {
        assert!(flush.stderr.contains(words), "no {words:?} in {flush:?}");
    }
    let a0 = volume(&larder, "a", "a0");
    assert_eq!(
        (count(&a0, "dirty_blocks"), &a0["state"], &a0["draining"]),
        (100, &"ok".into(), &"once".into())
    );
    // It is tried again, at once, and fails again.
    let again = ask(&larder, &["flush", "a"]);
    assert!(again.status.code() == Some(1) && again.stderr.contains("100 dirty blocks"), "{again:?}");
    assert!(a0["backing_failing_seconds"].as_f64().is_some_and(|seconds| seconds >= 10.0), "{a0:#}");
    // Guests get their data, and other tenants are flushed.
    assert_eq!(client.read(5 * BLOCK, BLOCK as u32).expect("a dirty block"), stamp(3, 1, 5 * BLOCK, BLOCK));
    assert!(ask(&larder, &["flush", "b"]).status.success());

    fs::remove_file(&trigger).expect("the trigger");
    wait_for("what was asked for goes on by itself", || {
        let a0 = volume(&larder, "a", "a0");
        let done = count(&a0, "dirty_blocks") == 0 && a0["draining"] == "off";
        done.then_some(()).ok_or_else(|| format!("{a0:#}"))
    });
    assert_eq!(volume(&larder, "a", "a0")["backing_failing_seconds"], Value::Null);
    let mut copy = Command::new("nbdcopy");
    copy.arg(&uri).arg(larder.path("copy.img"));
    assert!(run_within(LIMIT, &mut copy, larder.folder()).status.success());
    on_backing(&larder.path("copy.img"), 1, 0..100);
    traffic.finish();
    larder.stop();
}

/// The daemon leaves a backing alone for longer each time that it fails. An operator who has mended it does not wait for that, and is not told of what was.
#[test]
fn a_backing_that_is_mended_is_tried_when_somebody_asks() {
    let setup = lazy();
    let trigger = setup.path("trigger");
    let (_nbdkit, uri) = failing_backing(&setup, &trigger);
    let larder = setup.tenant("a", LAZY).volume_on("a0", &uri).tenant("b", LAZY).volume("b0", MIB).start();
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let traffic = busy(&larder, "b0");
    write(&mut client, 1, 0..1);
    fs::write(&trigger, "").expect("the trigger");
    let flush = ask(&larder, &["flush", "a"]);
    assert!(
        flush.status.code() == Some(1) && flush.stderr.contains("1 dirty block (4 KiB) waits"),
        "{flush:?}"
    );
    // Tries after 1, 3, 7, 15 and 31 seconds: after the next one it rests for 32 s.
    wait_for("the try after which it is left alone for long", || {
        let seconds = volume(&larder, "a", "a0")["backing_failing_seconds"].as_f64().unwrap_or(0.0);
        if seconds >= 20.0 { Ok(()) } else { Err(seconds.to_string()) }
    });
    fs::remove_file(&trigger).expect("the trigger");
    // It would fail at once, and tell of errors from before, if nobody tried.
    let flush = ask(&larder, &["flush", "a"]);
    let is_written = flush.stdout.starts_with("a: all that was dirty is on the backings (");
    assert!(flush.status.success() && is_written, "{flush:?}");
    assert_eq!(volume(&larder, "a", "a0")["backing_failing_seconds"], Value::Null);
    traffic.finish();
    larder.stop();
}
