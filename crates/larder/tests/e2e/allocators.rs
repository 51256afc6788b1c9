//! Who decides, how often, and what tenants are promised, changed while guests work; and what is told of the decisions.

use serde_json::Value;

use crate::common::daemon::{Larder, count, larder, tenant};
use crate::common::nbd::Client;
use crate::common::pattern::{random, stamp};
use crate::common::process::run;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::wait_for;

const ALLOCATORS: [&str; 8] = ["centaur", "unified", "eci", "combined", "scave", "wss", "static", "larder"];

/// Blocks of each volume that are used.
const BLOCKS: u64 = 2048;

fn setup() -> Setup {
    Setup::in_memory("8MiB")
        .control("epoch = \"1s\"\nmin_blocks = 16")
        .tenant("a", "")
        .volume("a0", 16 * MIB)
        .tenant("b", "weight = 2")
        .volume("b0", 16 * MIB)
}

/// Reads and writes, mostly near the start, and every answer is looked at.
fn guest(larder: &Larder, volume: &'static str, seed: u64) -> Traffic {
    let mut client = Client::connect(&larder.socket(volume), volume);
    let (mut state, mut written) = (seed, vec![0; BLOCKS as usize]);
    Traffic::start(move || {
        let (one, other) = (random(&mut state, BLOCKS), random(&mut state, BLOCKS));
        let block = one.min(other);
        if random(&mut state, 4) == 0 {
            written[block as usize] += 1;
            let data = stamp(seed, written[block as usize], block * BLOCK, BLOCK);
            return client.write(block * BLOCK, &data).expect("a write");
        }
        let found = client.read(block * BLOCK, BLOCK as u32).expect("a read");
        if written[block as usize] > 0 {
            let wanted = stamp(seed, written[block as usize], block * BLOCK, BLOCK);
            assert!(found == wanted, "{volume}: block {block} is not what was written last");
        }
    })
}

fn told(larder_: &Larder, arguments: &[&str]) -> String {
    run(larder().args(arguments).arg("--socket").arg(larder_.control_socket()), larder_.folder())
}

fn decisions(larder_: &Larder, name: &str) -> Vec<Value> {
    let text = told(larder_, &["decisions", name, "--json"]);
    let told: Value = serde_json::from_str(&text).expect("JSON");
    told["decisions"].as_array().expect("a list").clone()
}

#[test]
fn every_allocator_takes_over_under_load() {
    let larder = setup().start();
    assert_eq!(larder.status()["allocator"], "larder");
    let guests = [guest(&larder, "a0", 1), guest(&larder, "b0", 2)];
    for allocator in ALLOCATORS {
        told(&larder, &["set", &format!("allocator={allocator}")]);
        let status = larder.status();
        assert_eq!(status["allocator"], allocator);
        // Two decisions of its own, so that the first has come to something.
        wait_for("two decisions", || {
            let of = decisions(&larder, "a");
            let mine: Vec<_> = of.iter().filter(|it| it["allocator"] == allocator).collect();
            match mine[..] {
                [first, _, ..] if first["achieved"]["requests"].as_u64() > Some(0) => Ok(()),
                _ => Err(format!("{of:#?}")),
            }
        });
        let status = larder.status();
        let occupied: u64 =
            ["a", "b"].map(|name| count(&tenant(&status, name), "occupied_blocks")).iter().sum();
        assert!(occupied <= count(&status["cache"], "blocks"), "{status:#}");
    }
    guests.into_iter().for_each(Traffic::finish);
    let table = told(&larder, &["decisions"]);
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(" larder ")).collect();
    assert!(rows.len() == 2 && table.contains("hits expected"), "{table}");
    larder.stop();
}

#[test]
fn what_is_set_outlives_the_daemon_until_it_is_taken_back() {
    let larder = setup().start();
    assert_eq!(told(&larder, &["config", "diff"]), "everything is as larder.toml says\n");
    told(&larder, &["set", "allocator=wss", "epoch=1m"]);
    told(&larder, &["set", "--tenant", "b", "max=1MiB", "weight=3"]);
    let expected = "[control]: allocator = wss (larder.toml: larder)\n[control]: epoch = 1m (larder.toml: 1s)\n\
        tenant b: max = 1MiB (larder.toml: none)\ntenant b: weight = 3 (larder.toml: 2)\n";
    assert_eq!(told(&larder, &["config", "diff"]), expected);
    let setup = larder.stop();
    let larder = setup.start();
    let status = larder.status();
    assert_eq!((&status["allocator"], &status["epoch_seconds"]), (&"wss".into(), &60.0.into()));
    assert_eq!(told(&larder, &["config", "diff"]), expected);
    // What is read again does not count as another configuration.
    assert_eq!(told(&larder, &["reload"]), "nothing has changed\n");
    told(&larder, &["set", "allocator=default", "epoch=default"]);
    let left = told(&larder, &["set", "-t", "b", "max=default", "weight=default"]);
    assert_eq!(left, "everything is as larder.toml says\n");
    assert_eq!(larder.status()["allocator"], "larder");
    larder.stop();
}

#[test]
fn a_tenant_holds_no_more_than_its_maximum_however_much_is_free() {
    let larder = setup().start();
    let held = |larder: &Larder| count(&tenant(&larder.status(), "b"), "occupied_blocks");
    // Nobody else wants the 8 MiB.
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    let read = |client: &mut Client, blocks: std::ops::Range<u64>| {
        blocks.for_each(|block| _ = client.read(block * BLOCK, BLOCK as u32).expect("a read"));
    };
    read(&mut client, 0..1800);
    wait_for("what it reads enters", || match held(&larder) {
        1500.. => Ok(()),
        held => Err(format!("{held} blocks")),
    });
    told(&larder, &["set", "-t", "b", "max=1MiB"]);
    wait_for("what is above its maximum leaves", || match held(&larder) {
        ..=256 => Ok(()),
        held => Err(format!("{held} blocks")),
    });
    read(&mut client, 0..1800);
    assert!((128..=256).contains(&held(&larder)), "{} blocks", held(&larder));
    // It is as much after a restart, and grows when it may.
    let larder = larder.stop().start();
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    read(&mut client, 0..1800);
    assert!((128..=256).contains(&held(&larder)), "{} blocks", held(&larder));
    told(&larder, &["set", "-t", "b", "max=none"]);
    wait_for("it grows", || {
        read(&mut client, 0..1800);
        match held(&larder) {
            1000.. => Ok(()),
            held => Err(format!("{held} blocks")),
        }
    });
    larder.stop();
}

#[test]
fn what_cannot_be_set_changes_nothing() {
    let larder_ = setup().start();
    for (arguments, expected) in [
        (
            &["allocator=best"][..],
            "allocator = best: use one of larder, centaur, eci, scave, wss, unified, combined, static",
        ),
        (&["-t", "c", "weight=1"], "there is no tenant \"c\""),
        (&["-t", "a", "quota=1GiB"], "quotas"),
        (&["-t", "a", "latency=1ms", "iops=5"], "set iops=none as well"),
        (&["weight"], "\"weight\" is no setting"),
    ] {
        let mut command = larder();
        command.arg("set").args(arguments).arg("--socket").arg(larder_.control_socket());
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
    assert_eq!(told(&larder_, &["config", "diff"]), "everything is as larder.toml says\n");
    larder_.stop();
}
