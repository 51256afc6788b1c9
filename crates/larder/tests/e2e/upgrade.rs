//! One daemon follows another, and its clients stay connected: listeners and connections go through the service manager's store.

use std::fs;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::daemon::{Larder, count};
use crate::common::manager::ServiceManager;
use crate::common::nbd::{Client, WRITE, request};
use crate::common::pattern::stamp;
use crate::common::process::{Background, program};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::wait_for;

/// Upgrades under load.
const UPGRADES: usize = 3;

fn one_volume() -> Setup {
    Setup::new("4MiB").tenant("a", "write_policy = \"wb\"").volume("a0", 64 * MIB)
}

fn requests(larder: &Larder) -> u64 {
    let tenants = ["a", "b"].map(|name| larder.tenant(name));
    tenants.iter().map(|tenant| count(tenant, "read_hits") + count(tenant, "read_misses")).min().unwrap_or(0)
}

/// Reads one block again and again; the longest that it had to wait.
fn longest_wait(larder: &Larder, ended: Arc<AtomicBool>) -> thread::JoinHandle<Duration> {
    let mut client = Client::connect(&larder.socket("b0"), "b0");
    thread::spawn(move || {
        let mut longest = Duration::ZERO;
        while !ended.load(Ordering::Relaxed) {
            let began = Instant::now();
            client.read(0, BLOCK as u32).expect("a read through an upgrade");
            longest = longest.max(began.elapsed());
        }
        longest
    })
}

/// fio with two connections to each of two volumes, one under write-back and one under write-through; it verifies all that it wrote, and would end with the first error.
#[test]
fn fio_verifies_through_upgrades() {
    let manager = ServiceManager::new();
    let setup = Setup::new("8MiB").tenant("a", "write_policy = \"wb\"").volume("a0", 64 * MIB);
    let mut larder = manager.start(setup.tenant("b", "write_policy = \"wt\"").volume("b0", 64 * MIB));
    let mut jobs = "[global]\nioengine=nbd\niodepth=16\nverify=crc32c\nverify_backlog=256\nverify_state_save=0\nverify_fatal=1\nthread=1\n\
                    rw=randwrite\nbs=4k\nsize=24M\nrate_iops=1500\nfsync=64\n"
        .to_owned();
    for (volume, half) in [("a0", 0), ("a0", 1), ("b0", 0), ("b0", 1)] {
        jobs += &format!("[{volume}-{half}]\nuri={}\noffset={}M\n", larder.uri(volume), 24 * half);
    }
    let file = larder.path("jobs.fio");
    fs::write(&file, jobs).expect("the jobs");
    let report = larder.path("fio.json");
    let mut fio = program("fio");
    fio.arg("--output-format=json").arg("--output").arg(&report).arg(&file);
    let mut fio = Background::start(&mut fio, &larder.path("fio.log"));
    let ended = Arc::new(AtomicBool::new(false));
    let waits = longest_wait(&larder, Arc::clone(&ended));
    for _ in 0..UPGRADES {
        let before = requests(&larder);
        wait_for("fio reads and writes", || match requests(&larder) > before + 300 {
            true => Ok(()),
            false => Err(format!("{:#}", larder.status())),
        });
        assert_eq!(fio.ended(), None, "fio ended before all upgrades");
        larder = manager.restart(larder);
        assert!(larder.log().contains("5 of 5 connections of the daemon before go on"), "{}", larder.log());
    }
    let status = fio.wait(Duration::from_secs(300));
    ended.store(true, Ordering::Relaxed);
    let longest = waits.join().expect("reads without an error");
    assert!(status.success(), "fio: {status}");
    let text = fs::read_to_string(&report).expect("fio's report");
    let report: Value =
        text.find('{').map(|at| serde_json::from_str(&text[at..]).expect("JSON")).expect("JSON");
    for job in report["jobs"].as_array().expect("jobs") {
        assert_eq!(job["error"], 0, "{job:#}");
        assert!(count(&job["read"], "total_ios") > 0, "{} verified nothing", job["jobname"]);
    }
    println!("longest wait for a read over {UPGRADES} upgrades: {:.3} s", longest.as_secs_f64());
    larder.stop();
}

/// A client in the midst of requests: one header cut in two, a long write cut in two, one that is refused cut in two; and writes that it has not flushed.
#[test]
fn what_a_client_has_sent_goes_along() {
    let manager = ServiceManager::new();
    let larder = manager.start(one_volume());
    let open = || Client::connect(&larder.socket("a0"), "a0");
    let (mut short, mut long, mut refused, mut quiet) = (open(), open(), open(), open());
    quiet.write(0, &stamp(5, 1, 0, 8 * BLOCK)).expect("a write");
    let one = [&request(WRITE, 7, 16 * BLOCK, BLOCK as u32)[..], &stamp(5, 2, 16 * BLOCK, BLOCK)].concat();
    let all = [&request(WRITE, 8, 32 * MIB, 8 << 20)[..], &stamp(5, 3, 32 * MIB, 8 * MIB)].concat();
    let beyond = [&request(WRITE, 9, 64 * MIB, 1 << 20)[..], &vec![1; 1 << 20]].concat();
    for (client, bytes, cut) in
        [(&mut short, &one, 11), (&mut long, &all, 5 << 20), (&mut refused, &beyond, 500_000)]
    {
        client.stream.write_all(&bytes[..cut]).expect("the beginning of a request");
    }
    let larder = manager.restart(larder);
    assert!(larder.log().contains("4 of 4 connections of the daemon before go on"), "{}", larder.log());
    for (client, bytes, cut) in
        [(&mut short, &one, 11), (&mut long, &all, 5 << 20), (&mut refused, &beyond, 500_000)]
    {
        client.stream.write_all(&bytes[cut..]).expect("the rest of a request");
    }
    short.reply(7).expect("written");
    long.reply(8).expect("written");
    assert!(refused.reply(9).is_err(), "beyond the end");
    quiet.flush().expect("a flush");
    for client in [&mut short, &mut long, &mut refused, &mut quiet] {
        assert!(client.read(0, 8 * BLOCK as u32).expect("a read") == stamp(5, 1, 0, 8 * BLOCK));
        assert!(client.read(16 * BLOCK, BLOCK as u32).expect("a read") == stamp(5, 2, 16 * BLOCK, BLOCK));
        assert!(client.read(32 * MIB, 8 << 20).expect("a read") == stamp(5, 3, 32 * MIB, 8 * MIB));
    }
    drop((short, long, refused));
    wait_for("the status tells who is connected", || {
        let clients = &larder.tenant("a")["volumes"][0]["clients"];
        if clients == 1 { Ok(()) } else { Err(clients.to_string()) }
    });
    let setup = larder.stop();
    drop(quiet);
    let image = fs::read(setup.backing("a0")).expect("the backing");
    assert!(image[..8 * BLOCK as usize] == stamp(5, 1, 0, 8 * BLOCK));
}

/// Between two daemons clients and hypervisors wait where they connect.
#[test]
fn whoever_comes_meanwhile_waits() {
    let manager = ServiceManager::new();
    let larder = manager.start(one_volume().disk("a1", MIB));
    let (nbd, vhost) = (larder.socket("a0"), larder.vhost_socket("a1"));
    let setup = larder.stop();
    assert_eq!(manager.kept(), ["larder-listener", "larder-listener"]);
    let hypervisor = UnixStream::connect(&vhost).expect("somebody listens");
    let client = thread::spawn({
        let nbd = nbd.clone();
        move || Client::connect(&nbd, "a0").read(0, 512).expect("a read")
    });
    let larder = manager.start(setup);
    assert_eq!(client.join().expect("a client"), vec![0; 512]);
    wait_for("the hypervisor is served", || match larder.log().contains("a hypervisor has connected") {
        true => Ok(()),
        false => Err(larder.log()),
    });
    drop(hypervisor);
    assert_eq!(manager.kept(), [""; 0], "what was taken is kept no more");
    larder.stop();
}

/// Where another disk has the name of the old one, or the state of a connection is not there, its client is let go.
#[test]
fn a_client_whose_disk_is_another_is_let_go() {
    let manager = ServiceManager::new();
    let larder = manager.start(one_volume());
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    client.read(0, 512).expect("a read");
    let setup = larder.stop();
    let (backing, other) = (setup.backing("a0"), setup.path("other.img"));
    fs::File::create(&other).and_then(|file| file.set_len(64 * MIB)).expect("another disk");
    fs::rename(&other, &backing).expect("in its place");
    let larder = manager.start(setup);
    assert_eq!(client.until_closed(), b"", "closed without an answer");
    assert!(
        larder.log().contains("a client of the daemon before is let go: its volume is on another backing")
    );
    larder.stop();
}

/// A manager that passes everything again, as if the daemon had died before it was heard: nothing that a client sent is done twice.
#[test]
fn what_was_taken_is_never_taken_again() {
    let manager = ServiceManager::new().that_forgets_nothing();
    let larder = manager.start(one_volume());
    let mut client = Client::connect(&larder.socket("a0"), "a0");
    let write = [&request(WRITE, 1, 0, BLOCK as u32)[..], &stamp(6, 1, 0, BLOCK)].concat();
    client.stream.write_all(&write[..100]).expect("the beginning of a write");
    let larder = manager.restart(larder);
    client.stream.write_all(&write[100..]).expect("the rest of it");
    client.reply(1).expect("written");
    let mut other = Client::connect(&larder.socket("a0"), "a0");
    other.write(0, &stamp(6, 2, 0, BLOCK)).expect("a later write");
    other.flush().expect("a flush");
    let larder = manager.start(larder.kill());
    assert!(larder.log().contains("0 of 1 connections of the daemon before go on"), "{}", larder.log());
    assert_eq!(client.until_closed(), b"");
    let found = Client::connect(&larder.socket("a0"), "a0").read(0, BLOCK as u32).expect("a read");
    assert!(found == stamp(6, 2, 0, BLOCK));
    larder.stop();
}

/// A manager without a store: everything ends as it does without a manager.
#[test]
fn without_a_store_everything_is_closed() {
    let manager = ServiceManager::new().without_store();
    let larder = manager.start(one_volume());
    let socket = larder.socket("a0");
    let mut client = Client::connect(&socket, "a0");
    client.read(0, 512).expect("a read");
    let setup = larder.stop();
    assert_eq!(client.until_closed(), b"");
    assert!(!socket.exists() && manager.count("FDSTORE=1") == 0);
    manager.start(setup).stop();
}

/// Sockets of units are used where the configuration has their addresses, and stay when the daemon goes; others are not.
#[test]
fn sockets_of_units_are_used_and_left_alone() {
    let setup = one_volume();
    let (nbd, control, other) = (setup.socket("a0"), setup.control_socket(), setup.path("other.sock"));
    let manager = ServiceManager::new()
        .listening("larder.socket", &nbd)
        .listening("larder.socket", &control)
        .listening("foreign", &other);
    let larder = manager.start(setup);
    assert!(larder.log().contains("nobody is served there"), "{}", larder.log());
    let mut client = Client::connect(&nbd, "a0");
    client.write(0, &stamp(7, 1, 0, BLOCK)).expect("a write");
    assert_eq!(larder.tenant("a")["volumes"][0]["clients"], 1, "the control socket is served");
    let setup = larder.stop();
    assert_eq!(manager.kept(), ["larder-state", "larder-client"], "listeners are the manager's already");
    assert!(nbd.exists() && control.exists());
    assert!(UnixListener::bind(&nbd).is_err());
    let waiting = thread::spawn(move || Client::connect(&nbd, "a0").read(0, BLOCK as u32).expect("a read"));
    let larder = manager.start(setup);
    assert!(waiting.join().expect("a client") == stamp(7, 1, 0, BLOCK));
    assert!(client.read(0, BLOCK as u32).expect("a read") == stamp(7, 1, 0, BLOCK));
    larder.status();
    larder.stop();
}
