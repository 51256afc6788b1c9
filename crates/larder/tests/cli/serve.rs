//! A daemon serves real clients, tells what it does, and ends cleanly.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{Lab, tenant};

/// Run a client that must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output
        .unwrap_or_else(|error| panic!("{program}: {error}; apt-get install nbdkit libnbd-bin qemu-utils"));
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    text(&output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What `larder status` says; it must succeed.
fn status(lab: &Lab, more: &[&str]) -> String {
    let socket = lab.path("ctl");
    let output = lab.larder(&[&["status", "--socket", socket.to_str().expect("UTF-8")], more].concat());
    assert!(output.status.success(), "{output:?}");
    text(&output)
}

fn status_json(lab: &Lab) -> Value {
    serde_json::from_str(&status(lab, &["--json"])).expect("JSON")
}

/// Wait for something to become true.
fn eventually(what: &str, mut test: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !test() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn uri(lab: &Lab, volume: &str) -> String {
    format!("nbd+unix:///{volume}?socket={}", lab.path("s").display())
}

#[test]
fn clients_read_and_write_and_the_backing_has_it_in_the_end() {
    let lab = Lab::new();
    let disk = lab.disk("disk", 1 << 20);
    let old = fs::read(&disk).expect("readable");
    let daemon = lab.serve(&lab.one_volume("disk", "unix:s"));
    let uri = uri(&lab, "v");
    let copy = lab.path("copy");
    for _ in 0..2 {
        run("nbdcopy", &[&uri, copy.to_str().expect("UTF-8")]);
        assert!(fs::read(&copy).expect("readable") == old, "what is read is what is there");
    }
    let new: Vec<u8> = old.iter().map(|byte| !byte).collect();
    fs::write(&copy, &new).expect("writable");
    run("nbdcopy", &[copy.to_str().expect("UTF-8"), &uri]);
    let now = &status_json(&lab)["tenants"][0];
    assert!(now["read_hits"].as_u64() >= Some(256), "the second pass hits: {now}");
    assert!(now["ssd_writes"]["fill"].as_u64() >= Some(1), "{now}");
    let log = daemon.stop();
    assert!(fs::read(&disk).expect("readable") == new, "every write is on the backing");
    assert!(log.contains(&uri), "the URI is in the log: {log}");
    let left: Vec<_> = ["s", "ctl"].into_iter().filter(|name| lab.path(name).exists()).collect();
    assert!(left.is_empty(), "sockets are removed: {left:?}");
}

#[test]
fn the_status_has_every_promised_key() {
    let lab = Lab::new();
    lab.disk("a", 8192);
    lab.disk("b", 1 << 20);
    let config = lab.config(&(tenant("one", "v1", "a", "unix:s") + &tenant("two", "v2", "b", "unix:s")));
    let daemon = lab.serve(&config);
    let json = status_json(&lab);
    assert_eq!(
        (&json["cache"]["size_bytes"], &json["cache"]["blocks"]),
        (&Value::from(4 << 20), &Value::from(1024))
    );
    assert_eq!(
        (&json["cache"]["state"], &json["cache"]["free_blocks"]),
        (&Value::from("ok"), &Value::from(1024))
    );
    let names: Vec<_> = [0, 1].iter().map(|index| json["tenants"][*index]["name"].as_str()).collect();
    assert_eq!(names, [Some("one"), Some("two")]);
    for key in "quota_blocks occupied_blocks dirty_blocks write_policy replacement admission read_hits read_misses write_hits write_misses \
        evictions ssd_writes backing_reads backing_writes urd_blocks trd_blocks decision volumes"
        .split_whitespace()
    {
        assert!(!json["tenants"][0][key].is_null(), "{key}: {json:#}");
    }
    let volume = &json["tenants"][1]["volumes"][0];
    assert_eq!((&volume["name"], &volume["size_bytes"]), (&Value::from("v2"), &Value::from(1 << 20)));
    assert_eq!(volume["export"], Value::from(uri(&lab, "v2")));
    let table = status(&lab, &[]);
    for word in ["one", "two", "v1", "v2", "read hit ratio", "(blocks)", "because"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    daemon.stop();
}

#[test]
fn several_volumes_share_an_address_and_are_told_apart() {
    let lab = Lab::new();
    lab.disk("a", 8192);
    lab.disk("b", 12_288);
    let config = lab.config(&(tenant("one", "v1", "a", "unix:s") + &tenant("two", "v2", "b", "unix:s")));
    let daemon = lab.serve(&config);
    for (volume, bytes) in [("v1", 8192), ("v2", 12_288)] {
        let info: Value =
            serde_json::from_str(&run("nbdinfo", &["--json", &uri(&lab, volume)])).expect("JSON");
        assert_eq!(info["exports"][0]["export-size"], Value::from(bytes));
    }
    let list = run("nbdinfo", &["--list", &format!("nbd+unix:///?socket={}", lab.path("s").display())]);
    assert!(list.contains("export=\"v1\"") && list.contains("export=\"v2\""), "{list}");
    daemon.stop();
}

#[test]
fn tcp_serves_as_well() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let daemon = lab.serve(&lab.one_volume("disk", &format!("tcp:{free}")));
    assert_eq!(run("nbdinfo", &["--size", &format!("nbd://{free}/v")]).trim(), "8192");
    daemon.stop();
}

#[test]
fn epochs_end_and_the_decision_has_its_reason() {
    let lab = Lab::new();
    lab.disk("disk", 1 << 20);
    let daemon = lab.serve(&lab.one_volume("disk", "unix:s"));
    assert_eq!(status_json(&lab)["tenants"][0]["decision"]["epoch"], Value::from(0));
    let copy = lab.path("copy");
    let mut wanted = 0;
    eventually("a decision from what was read twice", || {
        run("nbdcopy", &[&uri(&lab, "v"), copy.to_str().expect("UTF-8")]);
        let json = status_json(&lab);
        let tenant = &json["tenants"][0];
        wanted = tenant["urd_blocks"].as_u64().unwrap_or(0);
        assert!(!tenant["decision"]["reason"].as_str().unwrap_or("").is_empty(), "{tenant}");
        tenant["decision"]["epoch"].as_u64() >= Some(1) && wanted > 0
    });
    assert_eq!(wanted, 256, "the whole disk is read again and again");
    daemon.stop();
}

#[test]
fn interrupt_ends_it_as_well() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let daemon = lab.serve(&lab.one_volume("disk", "unix:s"));
    daemon.signal("INT");
    let (status, log) = daemon.wait();
    assert!(status.success(), "{status}: {log}");
}

#[test]
fn after_a_kill_it_starts_again() {
    let lab = Lab::new();
    let disk = lab.disk("disk", 1 << 20);
    let config = lab.one_volume("disk", "unix:s");
    let daemon = lab.serve(&config);
    daemon.signal("KILL");
    daemon.wait();
    assert!(lab.path("s").exists(), "a killed daemon leaves its sockets behind");
    let daemon = lab.serve(&config);
    let copy = lab.path("copy");
    run("nbdcopy", &[&uri(&lab, "v"), copy.to_str().expect("UTF-8")]);
    assert!(fs::read(&copy).expect("readable") == fs::read(&disk).expect("readable"));
    daemon.stop();
}

#[test]
fn a_connected_client_does_not_keep_it_from_ending() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let daemon = lab.serve(&lab.one_volume("disk", "unix:s"));
    let script = "import nbd, sys, time; h = nbd.NBD(); h.connect_uri(sys.argv[1]); h.pread(512, 0)\n\
        print('connected', flush=True); time.sleep(600)";
    // The system's Python is the one that has libnbd.
    let mut client = Command::new("/usr/bin/python3")
        .args(["-c", script, &uri(&lab, "v")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("apt-get install python3-libnbd");
    let mut line = String::new();
    let stdout = client.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("readable");
    assert_eq!(line.trim(), "connected");
    daemon.stop();
    client.kill().expect("a child");
    client.wait().expect("a child");
}

#[test]
fn a_tenant_that_is_not_there_has_no_decisions() {
    let lab = Lab::new();
    lab.disk("disk", 1 << 20);
    let daemon = lab.serve(&lab.one_volume("disk", "unix:s"));
    let socket = lab.path("ctl");
    let output = lab.larder(&["decisions", "nope", "--socket", socket.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("there is no tenant \"nope\""), "{said}");
    assert!(said.contains("\nhelp: larder status names the tenants"), "{said}");
    daemon.stop();
}
