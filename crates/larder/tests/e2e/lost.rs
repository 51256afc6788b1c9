//! A dirty block is damaged on the cache device: nobody else has its data. That is told, and what waits for it to be written back ends.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::daemon::{Larder, count, larder};
use crate::common::nbd::{Client, Failure};
use crate::common::pattern::stamp;
use crate::common::process::{Outcome, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::{LIMIT, wait_for};

/// Nothing is written back by itself, however long it rests.
const LAZY: &str = "write_policy = \"wb\"\ndirty_rest = 70\ndirty_max = 90\ndirty_age = \"1h\"";

/// The block that is damaged.
const AT: u64 = 5;

/// `NBD_CMD_TRIM`.
const TRIM: u16 = 4;

fn outcome(of: &Larder, words: &[&str]) -> Outcome {
    let mut command: Command = larder();
    command.args(words).arg("--socket").arg(of.control_socket());
    run_within(LIMIT, &mut command, of.folder())
}

fn volume(of: &Larder) -> Value {
    of.tenant("a")["volumes"][0].clone()
}

/// A volume with ten dirty blocks, of which one is damaged while the daemon is stopped.
fn damaged(keys: &str) -> Larder {
    let setup = Setup::new("16MiB").control("allocator = \"static\"").tenant("a", LAZY);
    let larder = setup.volume("a0", 4 * MIB).tenant("b", keys).volume("b0", MIB).start();
    // While somebody is busy nothing is written back for idleness.
    let mut other = Client::connect(&larder.socket("b0"), "b0");
    let busy = Traffic::start(move || {
        other.read(0, 4096).expect("a read of the busy client");
        std::thread::sleep(Duration::from_millis(2));
    });
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    for block in 0..10 {
        client.write(block * BLOCK, &stamp(3, 1, block * BLOCK, BLOCK)).expect("a write");
    }
    client.flush().expect("a flush");
    assert_eq!(count(&larder.tenant("a"), "dirty_blocks"), 10);
    drop(client);
    busy.finish();
    let setup = larder.stop();
    let mut bytes = fs::read(setup.cache()).expect("the cache");
    let data = stamp(3, 1, AT * BLOCK, BLOCK);
    let mut found = 0;
    for slot in bytes.chunks_mut(BLOCK as usize).filter(|slot| **slot == data[..]) {
        slot[100] ^= 1;
        found += 1;
    }
    assert!(found > 0, "the block is on the cache device");
    fs::write(setup.cache(), bytes).expect("a damaged cache");
    setup.start()
}

/// It ends, says what is lost, and what can be done.
fn ends_without_it(outcome: &Outcome) {
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    for words in [
        "error: 1 dirty block of volume a0 (4 KiB) cannot be written back: the data is damaged on the cache device",
        "help: `larder status --lost a0` lists them; they are gone until the guest writes those ranges again, or discards them",
    ] {
        assert!(outcome.stderr.contains(words), "no {words:?} in {outcome:?}");
    }
}

/// The warnings about it.
fn warnings(of: &Larder) -> usize {
    let log = of.log();
    let is_told = |line: &&str| {
        let at = format!("offset={}", AT * BLOCK);
        line.contains("WARN") && line.contains("a0") && line.contains(&at) && line.contains("damaged")
    };
    log.lines().filter(is_told).count()
}

#[test]
fn a_read_that_finds_it_is_told_once_and_the_status_shows_it() {
    let larder = damaged(LAZY);
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    for _ in 0..3 {
        assert!(matches!(client.read(AT * BLOCK, BLOCK as u32), Err(Failure::Refused(5))));
    }
    wait_for("it is told", || (warnings(&larder) > 0).then_some(()).ok_or_else(|| larder.log()));
    for _ in 0..3 {
        assert!(matches!(client.read(AT * BLOCK, BLOCK as u32), Err(Failure::Refused(5))));
    }
    let a = larder.tenant("a");
    assert_eq!(count(&a, "cache_errors"), 1, "{a:#}");
    let a0 = volume(&larder);
    let counts = ["damaged_blocks", "lost_bytes", "lost_ranges"].map(|key| count(&a0, key));
    assert_eq!((counts, &a0["state"]), ([1, BLOCK, 1], &"damaged".into()), "{a0:#}");
    let listed = outcome(&larder, &["status", "--lost", "a0"]);
    assert_eq!(listed.stdout, format!("{} {BLOCK}\n", AT * BLOCK));
    let table = outcome(&larder, &["status"]).stdout;
    let words = "damaged: 4 KiB in 1 range lost";
    assert!(table.contains(words), "no {words:?} in {table}");
    // The guest has it written again.
    client.write(AT * BLOCK, &[7; BLOCK as usize]).expect("a write");
    let a0 = volume(&larder);
    assert_eq!((count(&a0, "lost_bytes"), &a0["state"]), (0, &"ok".into()), "{a0:#}");
    let flushed = outcome(&larder, &["flush", "a"]);
    assert!(flushed.status.success(), "{flushed:?}");
    assert_eq!(fs::read(larder.backing("a0")).expect("the backing")[(AT * BLOCK) as usize], 7);
    assert_eq!(warnings(&larder), 1, "{}", larder.log());
    drop(client);
    larder.stop();
}

#[test]
fn what_waits_for_it_ends_with_an_error() {
    let larder = damaged(LAZY);
    ends_without_it(&outcome(&larder, &["flush", "a"]));
    let a0 = volume(&larder);
    let left = (count(&a0, "dirty_blocks"), &a0["draining"], &a0["state"]);
    assert_eq!(left, (1, &"off".into(), &"damaged".into()), "all else is written back: {a0:#}");
    let backing = fs::read(larder.backing("a0")).expect("the backing");
    let at = (9 * BLOCK) as usize;
    assert!(backing[at..at + BLOCK as usize] == stamp(3, 1, 9 * BLOCK, BLOCK));

    ends_without_it(&outcome(&larder, &["volume", "quiesce", "a0"]));
    assert_eq!(volume(&larder)["quiet"], false);
    ends_without_it(&outcome(&larder, &["volume", "migrate", "prepare", "a0"]));
    assert!(!larder.log().contains("all is written back"), "{}", larder.log());
    let complete = outcome(&larder, &["volume", "migrate", "complete", "a0"]);
    assert!(complete.stderr.contains("blocks of the volume are lost (1)"), "{complete:?}");
    assert!(outcome(&larder, &["volume", "migrate", "abort", "a0"]).status.success());
    ends_without_it(&outcome(&larder, &["drain", "a"]));
    assert_eq!(volume(&larder)["draining"], "on", "nothing becomes dirty, as was asked");
    assert!(outcome(&larder, &["flush", "b"]).status.success(), "others have nothing to do with it");
    wait_for("it is told", || (warnings(&larder) == 1).then_some(()).ok_or_else(|| larder.log()));

    // Discarded, it is in nobody's way.
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let cookie = client.send(TRIM, AT * BLOCK, BLOCK as u32, &[]).expect("a trim");
    client.reply(cookie).expect("trimmed");
    wait_for("the drain ends", || {
        let a0 = volume(&larder);
        (a0["draining"] == "done" && a0["state"] == "ok").then_some(()).ok_or_else(|| format!("{a0:#}"))
    });
    assert!(outcome(&larder, &["flush", "a"]).status.success());
    drop(client);
    larder.stop();
}

#[test]
fn a_volume_with_it_does_not_leave() {
    let larder = damaged(LAZY);
    let path = larder.path("larder.toml");
    let text = fs::read_to_string(&path).expect("the configuration");
    let (others, gone) =
        (text.find("[[tenant]]\nname = \"b\"").expect("b"), text.find("[[tenant]]").expect("a"));
    let without = format!("{}{}", &text[..gone], &text[others..]);
    fs::write(&path, without).expect("a changed configuration");
    ends_without_it(&outcome(&larder, &["reload"]));
    let again = outcome(&larder, &["reload"]);
    assert_ne!(again.status.code(), Some(0), "{again:?}");
    for words in ["volume \"a0\"", "are lost", "help: `larder status --lost a0` lists them"] {
        assert!(again.stderr.contains(words), "no {words:?} in {again:?}");
    }
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    client.write(AT * BLOCK, &[7; BLOCK as usize]).expect("it is served on");
    drop(client);
    wait_for("it leaves", || {
        let again = outcome(&larder, &["reload"]);
        (again.stdout.trim() == "removed a0").then_some(()).ok_or_else(|| format!("{again:?}"))
    });
    larder.stop();
}
