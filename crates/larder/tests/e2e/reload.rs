//! Tenants and volumes come and go while the daemon serves others.

use std::fs;

use crate::common::daemon::{Larder, count, larder};
use crate::common::guest::Guest;
use crate::common::nbd::Client;
use crate::common::nbdkit::nbdkit;
use crate::common::pattern::stamp;
use crate::common::process::{Outcome, program, run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::{LIMIT, wait_for};

fn reload(of: &Larder) -> Outcome {
    let mut command = larder();
    command.args(["reload", "--socket"]).arg(of.control_socket());
    run_within(LIMIT, &mut command, of.folder())
}

fn reloaded(of: &Larder) -> String {
    let outcome = reload(of);
    assert!(outcome.status.success(), "{}", outcome.stderr);
    outcome.stdout
}

fn refused(of: &Larder) -> String {
    let outcome = reload(of);
    assert!(!outcome.status.success(), "{}", outcome.stdout);
    outcome.stderr
}

fn edit(of: &Larder, change: impl Fn(String) -> String) {
    let path = of.path("larder.toml");
    let text = fs::read_to_string(&path).expect("the configuration");
    fs::write(&path, change(text)).expect("a changed configuration");
}

/// The lines of a volume on a new sparse file.
fn volume(of: &Larder, name: &str, bytes: u64, way: &str) -> String {
    let backing = of.sparse_file(name, bytes);
    format!("[[tenant.volume]]\nname = \"{name}\"\nbacking = \"{backing}\"\n{way}\n")
}

fn over_nbd(of: &Larder, name: &str) -> String {
    format!("nbd = \"unix:{}\"", of.socket(name).display())
}

fn names(of: &Larder) -> Vec<String> {
    let status = of.status();
    let tenants = status["tenants"].as_array().expect("tenants");
    let volumes = tenants.iter().flat_map(|tenant| tenant["volumes"].as_array().expect("volumes"));
    volumes.map(|volume| volume["name"].as_str().expect("a name").to_owned()).collect()
}

/// Wait until these volumes have no clients.
fn nobody_uses(of: &Larder, volumes: &[&str]) {
    wait_for("all clients are gone", || {
        let status = of.status();
        let tenants = status["tenants"].as_array().expect("tenants");
        let all = tenants.iter().flat_map(|tenant| tenant["volumes"].as_array().expect("volumes"));
        let used =
            all.filter(|volume| volumes.iter().any(|name| volume["name"] == *name) && volume["clients"] != 0);
        match used.count() {
            0 => Ok(()),
            count => Err(format!("{count} are in use")),
        }
    });
}

fn write(client: &mut Client, version: u64, blocks: u64) {
    for block in 0..blocks {
        client.write(block * BLOCK, &stamp(version, 1, block * BLOCK, BLOCK)).expect("a write");
    }
    client.flush().expect("a flush");
}

fn reads(client: &mut Client, version: u64, blocks: u64) {
    for block in 0..blocks {
        let read = client.read(block * BLOCK, BLOCK as u32).expect("a read");
        assert!(read == stamp(version, 1, block * BLOCK, BLOCK), "block {block}, version {version}");
    }
}

#[test]
fn volumes_come_and_go_while_others_are_served() {
    for setup in [Setup::new("16MiB"), Setup::new("16MiB").cold()] {
        let larder = setup.tenant("a", "").volume("a1", 8 * MIB).start();
        let traffic = Traffic::verified(&larder.socket("a1"), "a1", 256);
        traffic.goes_on();
        assert_eq!(reloaded(&larder).trim(), "nothing has changed");
        // One more volume of a tenant, behind a listener that is there; and another tenant, behind one that is not.
        let beside = format!("nbd = \"unix:{}\"", larder.socket("a1").display());
        let a2 = volume(&larder, "a2", 4 * MIB, &beside);
        let b1 = volume(&larder, "b1", 4 * MIB, &over_nbd(&larder, "b1"));
        edit(&larder, |text| format!("{text}{a2}\n[[tenant]]\nname = \"b\"\n{b1}"));
        assert_eq!(reloaded(&larder).trim(), "added a2, b1");
        assert_eq!(names(&larder), ["a1", "a2", "b1"]);
        assert!(count(&larder.tenant("b"), "quota_blocks") > 0, "{:#}", larder.tenant("b"));
        let mut clients =
            [Client::connect(&larder.socket("a1"), "a2"), Client::connect(&larder.socket("b1"), "b1")];
        for client in &mut clients {
            write(client, 1, 50);
            reads(client, 1, 50);
        }
        assert!(count(&larder.tenant("b"), "read_hits") > 0);
        // Whoever is in use stays.
        edit(&larder, |text| text.replace(&a2, "").replace(&format!("[[tenant]]\nname = \"b\"\n{b1}"), ""));
        let in_use = refused(&larder);
        assert!(in_use.contains("volume \"a2\" is still in use (1 connected)"), "{in_use}");
        assert_eq!(names(&larder), ["a1", "a2", "b1"]);
        reads(&mut clients[0], 1, 50);
        drop(clients);
        nobody_uses(&larder, &["a2", "b1"]);
        assert_eq!(reloaded(&larder).trim(), "removed a2, b1");
        assert_eq!(names(&larder), ["a1"]);
        assert!(!larder.socket("b1").exists() && larder.socket("a1").exists());
        let list = run(program("nbdinfo").arg("--list").arg(larder.uri("a1")), larder.folder());
        assert!(list.contains("a1") && !list.contains("a2"), "{list}");
        traffic.goes_on();
        traffic.finish();
        larder.stop();
    }
}

/// Between its going and its coming somebody else writes to its backing; what was cached of it, and dirty, is old.
#[test]
fn one_that_comes_again_is_what_its_backing_is() {
    let keys = "write_policy = \"wb\"";
    let larder = Setup::new("16MiB").tenant("a", keys).volume("a1", 4 * MIB).volume("a2", 4 * MIB).start();
    let mut client = Client::connect(&larder.socket("a2"), "a2");
    write(&mut client, 1, 100);
    let whole = fs::read_to_string(larder.path("larder.toml")).expect("the configuration");
    let at = whole.rfind("[[tenant.volume]]").expect("a2");
    drop(client);
    nobody_uses(&larder, &["a2"]);
    edit(&larder, |text| text[..at].to_owned());
    assert_eq!(reloaded(&larder).trim(), "removed a2");
    let backing = fs::read(larder.backing("a2")).expect("the backing");
    assert!(backing[..BLOCK as usize] == stamp(1, 1, 0, BLOCK), "what was dirty is there");
    assert_eq!(count(&larder.tenant("a"), "occupied_blocks"), 0, "nothing is cached of it");
    let stamps: Vec<u8> = (0..100).flat_map(|block| stamp(2, 1, block * BLOCK, BLOCK)).collect();
    fs::write(larder.backing("a2"), [&stamps[..], &backing[stamps.len()..]].concat()).expect("a write");
    edit(&larder, |_| whole.clone());
    assert_eq!(reloaded(&larder).trim(), "added a2");
    let mut client = Client::connect(&larder.socket("a2"), "a2");
    reads(&mut client, 2, 100);
    write(&mut client, 3, 100);
    // Killed with dirty blocks of a volume that has come in the meantime, it has them at the next start.
    let larder = larder.kill().start();
    let mut client = Client::connect(&larder.socket("a2"), "a2");
    assert!(count(&larder.tenant("a"), "warm_blocks") >= 100);
    reads(&mut client, 3, 100);
    larder.stop();
}

#[test]
fn a_hangup_signal_does_the_same_and_waits_for_what_is_dirty() {
    let keys = "write_policy = \"wb\"\ndirty_rest = 70\ndirty_max = 90\ndirty_age = \"1h\"";
    let setup = Setup::new("16MiB").tenant("a", keys).volume("a1", 4 * MIB);
    let (_server, uri) = nbdkit(&setup, "slow", &["--filter=delay", "memory", "8M", "wdelay=200ms"]);
    let larder = setup.volume_on("a2", &uri).start();
    let mut client = Client::connect(&larder.socket("a2"), "a2");
    write(&mut client, 1, 500);
    assert!(count(&larder.tenant("a"), "dirty_blocks") > 0, "{:#}", larder.tenant("a"));
    drop(client);
    edit(&larder, |text| text[..text.rfind("[[tenant.volume]]").expect("a2")].to_owned());
    nobody_uses(&larder, &["a2"]);
    run(program("kill").args(["-HUP", &larder.id().to_string()]), larder.folder());
    wait_for("a2 is gone", || match names(&larder) {
        here if here == ["a1"] => Ok(()),
        here => Err(format!("{here:?}")),
    });
    reads(&mut Client::connect(&larder.socket("slow"), ""), 1, 500);
    larder.stop();
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let larder = Setup::new("16MiB").tenant("a", "").volume("a1", 4 * MIB).start();
    let whole = fs::read_to_string(larder.path("larder.toml")).expect("the configuration");
    let tries = [
        (whole.replace("16MiB", "32MiB"), "[cache] is not what is served: only a restart changes that"),
        (
            whole.replace("name = \"a\"\n", "name = \"a\"\nquota = \"1MiB\"\n"),
            "tenant \"a\" is not what is served",
        ),
        (whole.replace("a1.img", "other.img"), "volume \"a1\" is not what is served"),
        (format!("{whole}nonsense = 1\n"), "nonsense"),
        (
            format!(
                "{whole}[[tenant.volume]]\nname = \"x\"\nbacking = \"/nowhere\"\nnbd = \"unix:/tmp/x\"\n"
            ),
            "/nowhere",
        ),
        (
            format!(
                "{whole}[[tenant.volume]]\nname = \"x\"\nbacking = \"{}\"\nnbd = \"unix:/nowhere/x\"\n",
                larder.sparse_file("x", MIB)
            ),
            "mkdir -p /nowhere",
        ),
    ];
    for (text, told) in tries {
        edit(&larder, |_| text.clone());
        let stderr = refused(&larder);
        assert!(stderr.contains(told), "{told}: {stderr}");
        assert_eq!(names(&larder), ["a1"]);
    }
    edit(&larder, |_| whole.clone());
    assert_eq!(reloaded(&larder).trim(), "nothing has changed");
    reads(&mut Client::connect(&larder.socket("a1"), "a1"), 0, 0);
    larder.stop();
}

/// Somebody takes a snapshot of the backing meanwhile.
#[test]
fn one_that_cannot_leave_is_reached_as_before() {
    let larder = Setup::new("16MiB")
        .tenant("a", "write_policy = \"wb\"")
        .volume("a1", 4 * MIB)
        .volume("a2", 4 * MIB)
        .start();
    let told = |words: &[&str]| {
        let mut command = crate::common::daemon::larder();
        command.args(words).args(["a2", "--socket"]).arg(larder.control_socket());
        run(&mut command, larder.folder())
    };
    write(&mut Client::connect(&larder.socket("a2"), "a2"), 1, 50);
    nobody_uses(&larder, &["a2"]);
    told(&["drain"]);
    told(&["volume", "quiesce"]);
    let whole = fs::read_to_string(larder.path("larder.toml")).expect("the configuration");
    edit(&larder, |text| text[..text.rfind("[[tenant.volume]]").expect("a2")].to_owned());
    let busy = refused(&larder);
    assert!(busy.contains("volume \"a2\": something else is being done to the volume"), "{busy}");
    reads(&mut Client::connect(&larder.socket("a2"), "a2"), 1, 50);
    nobody_uses(&larder, &["a2"]);
    let without = fs::read_to_string(larder.path("larder.toml")).expect("the configuration");
    edit(&larder, |_| whole.clone());
    assert_eq!(reloaded(&larder).trim(), "nothing has changed");
    told(&["volume", "thaw"]);
    assert_eq!(larder.tenant("a")["volumes"][1]["draining"], "done", "as the operator wanted");
    edit(&larder, |_| without.clone());
    assert_eq!(reloaded(&larder).trim(), "removed a2");
    assert_eq!(names(&larder), ["a1"]);
    larder.stop();
}

const USES: &str = "
set -e
mkfs.ext4 -q /dev/vda
mount /dev/vda /mnt
fio --name=new --directory=/mnt --size=4M --rw=randwrite --bs=4k --iodepth=8 --ioengine=libaio --direct=1 --verify=crc32c --fsync=16
umount /mnt
e2fsck -fn /dev/vda
";

#[test]
fn a_guest_gets_a_disk_that_came_and_leaves_it() {
    let larder = Setup::new("16MiB").tenant("a", "").volume("a1", 4 * MIB).start();
    let way = format!("vhost_user = \"{}\"", larder.vhost_socket("d").display());
    let disk =
        format!("[[tenant]]\nname = \"vm\"\nwrite_policy = \"wb\"\n{}", volume(&larder, "d", 64 * MIB, &way));
    edit(&larder, |text| format!("{text}\n{disk}"));
    assert_eq!(reloaded(&larder).trim(), "added d");
    let guest = Guest::start(larder.folder(), "d", &larder.vhost_socket("d"), USES);
    wait_for("the hypervisor has connected", || {
        match larder.tenant("vm")["volumes"][0]["clients"].as_u64() {
            Some(1) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    edit(&larder, |text| text.replace(&disk, ""));
    assert!(refused(&larder).contains("still in use"));
    guest.succeeds();
    nobody_uses(&larder, &["d"]);
    assert_eq!(reloaded(&larder).trim(), "removed d");
    assert!(!larder.vhost_socket("d").exists());
    let check = run_within(LIMIT, program("e2fsck").arg("-fn").arg(larder.backing("d")), larder.folder());
    assert!(check.status.success(), "{}", check.stdout);
    larder.stop();
}
