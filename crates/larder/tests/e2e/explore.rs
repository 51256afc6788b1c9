//! What other sizes would bring, by `larder curves`, `larder what-if` and the API: against what clients do. And recordings over the API.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::common::daemon::{Larder, count, larder, tenant};
use crate::common::http::{Reply, ask_unix};
use crate::common::nbd::Client;
use crate::common::nbdkit::nbdkit;
use crate::common::process::run;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::{LIMIT, wait_for};

/// Blocks that each client reads, over and over.
const USED: u64 = 512;

fn get(larder: &Larder, path: &str) -> Reply {
    ask_unix(&larder.api_socket(), "GET", path, None)
}

fn told(daemon: &Larder, arguments: &[&str]) -> Value {
    let mut command = larder();
    let text = run(command.args(arguments).arg("--socket").arg(daemon.control_socket()), daemon.folder());
    serde_json::from_str(&text).expect("JSON")
}

/// What the command says where it fails.
fn refused(daemon: &Larder, arguments: &[&str]) -> String {
    let mut command = larder();
    let output =
        command.args(arguments).arg("--socket").arg(daemon.control_socket()).output().expect("it runs");
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Blocks of a volume in turn.
fn reader(daemon: &Larder, volume: &'static str) -> Traffic {
    let mut client = Client::connect(&daemon.socket(volume), volume);
    let mut at = 0;
    Traffic::start(move || {
        client.read(at % USED * BLOCK, BLOCK as u32).expect("a read");
        at += 1;
    })
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value:#}"))
}

#[test]
fn what_another_size_would_bring_is_told_and_changes_nothing() {
    // Room for one of the two, and a bit.
    let setup = Setup::in_memory("4MiB").control("epoch = \"1s\"\nmin_blocks = 16").api("");
    // Backings that take longer than the cache, however busy the machine is: what is missed has to cost more than what is hit.
    let disks = ["a", "b"].map(|name| {
        nbdkit(&setup, &format!("{name}-disk"), &["--filter=delay", "memory", "16M", "rdelay=1ms"])
    });
    let setup =
        setup.tenant("a", "").volume_on("a0", &disks[0].1).tenant("b", "").volume_on("b0", &disks[1].1);
    let daemon = setup.tenant("idle", "").volume("c0", 16 * MIB).start();
    let nothing_yet = refused(&daemon, &["what-if", "a", "1MiB"]);
    assert!(nothing_yet.contains("did nothing") && nothing_yet.contains("help: ask again"), "{nothing_yet}");
    let problem = get(&daemon, "/v1/tenants/a/curves");
    assert_eq!((problem.status, &problem.json()["type"]), (409, &json!("urn:larder:problem:not-known")));

    let readers = [reader(&daemon, "a0"), reader(&daemon, "b0")];
    let used = USED * BLOCK;
    let curves = wait_for("curves that know what is used", || {
        let told = get(&daemon, "/v1/tenants/a/curves").json();
        let knows = |curve: &Value| {
            let points = curve["points"].as_array().expect("points");
            points.iter().any(|point| point["request_hit_ratio"].as_f64() > Some(0.9))
        };
        let curves =
            told["curves"].as_array().filter(|all| !all.is_empty() && all.iter().all(knows)).cloned();
        curves.ok_or_else(|| format!("{told:#}"))
    });
    for curve in &curves {
        let points = curve["points"].as_array().expect("points");
        assert!(points.len() <= 64 && points.is_sorted_by_key(|point| point["bytes"].as_u64()), "{curve:#}");
        let hits = points.iter().filter(|point| count(point, "bytes") < used / 2);
        assert!(hits.into_iter().all(|point| number(point, "request_hit_ratio") < 0.75), "{curve:#}");
    }
    let by_command = told(&daemon, &["curves", "a", "--json"]);
    assert_eq!(by_command["curves"].as_array().map(Vec::len), Some(curves.len()), "{by_command:#}");

    let size = (4 << 20) - 64 * BLOCK;
    let what_if = wait_for("both are known", || {
        let told = get(&daemon, &format!("/v1/tenants/a/what-if?bytes={size}")).json();
        let known = |at: usize| told["tenants"][at]["now"]["latency_seconds"].is_f64();
        if known(0) && known(1) { Ok(told) } else { Err(format!("{told:#}")) }
    });
    let [a, b, idle] = &what_if["tenants"].as_array().expect("tenants")[..] else { panic!("{what_if:#}") };
    assert_eq!([&a["tenant"], &b["tenant"], &idle["tenant"]], ["a", "b", "idle"]);
    assert_eq!((count(&what_if, "bytes"), count(&a["then"], "quota_bytes")), (size, size));
    assert!(number(&a["then"], "request_hit_ratio") > 0.9, "{what_if:#}");
    assert!(count(&b["then"], "quota_bytes") <= 64 * BLOCK, "{what_if:#}");
    assert!(number(&b["then"], "request_hit_ratio") < 0.5, "{what_if:#}");
    assert!(number(&b["then"], "latency_seconds") > number(&a["then"], "latency_seconds"), "{what_if:#}");
    assert_eq!(idle["now"]["latency_seconds"], Value::Null);
    let other = told(&daemon, &["what-if", "b", &size.to_string(), "--json"]);
    assert_eq!((&other["tenants"][0]["tenant"], &other["allocator"]), (&json!("b"), &json!("larder")));
    let status = daemon.status();
    assert!(count(&tenant(&status, "a"), "quota_blocks") < size / BLOCK, "nothing has changed: {status:#}");
    readers.into_iter().for_each(Traffic::finish);

    for (path, status, kind) in [
        ("nobody/what-if?bytes=1", 404, "unknown-tenant"),
        ("nobody/curves", 404, "unknown-tenant"),
        ("a/what-if", 422, "invalid"),
        ("a/what-if?bytes=-1", 422, "invalid"),
        ("a/what-if?bytes=8388608", 422, "invalid"),
    ] {
        let reply = get(&daemon, &format!("/v1/tenants/{path}"));
        let problem = reply.json();
        assert_eq!(reply.status, status, "{path}: {problem:#}");
        assert_eq!(problem["type"], format!("urn:larder:problem:{kind}"), "{path}: {problem:#}");
    }
    let too_large = refused(&daemon, &["what-if", "a", "1GiB"]);
    assert!(too_large.contains("cannot have 1GiB: the cache has"), "{too_large}");
    assert!(refused(&daemon, &["curves", "nobody"]).contains("there is no tenant \"nobody\""));
    daemon.stop();
}

/// The head of an answer, and the lines of its body as they come.
fn recording(daemon: &Larder, wanted: &Value) -> (String, impl Iterator<Item = Value> + use<>) {
    let mut stream = UnixStream::connect(daemon.api_socket()).expect("the API's socket");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let body = wanted.to_string();
    let head = "POST /v1/recordings HTTP/1.0\r\nHost: larder\r\nContent-Type: application/json\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("asked");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    (head.join("\n"), lines.map(|line| serde_json::from_str(&line).expect("JSON")))
}

#[test]
fn the_api_records_lists_and_ends_recordings() {
    let setup = Setup::in_memory("4MiB").api("").tenant("a", "").volume("a0", 16 * MIB);
    let daemon = setup.tenant("b", "").volume("b0", 16 * MIB).start();
    let list = || get(&daemon, "/v1/recordings").json()["recordings"].as_array().expect("a list").clone();
    assert_eq!(list(), Vec::<Value>::new());
    let (head, mut lines) = recording(&daemon, &json!({ "seconds": 86400, "names": ["a0"] }));
    assert!(head.contains(" 200 ") && head.contains("application/x-ndjson"), "{head}");
    assert!(lines.next().expect("a line")["recording"].is_string());
    let underway = list();
    assert_eq!((underway.len(), &underway[0]["names"]), (1, &json!(["a0"])), "{underway:?}");

    for (volume, block) in [("b0", 7), ("a0", 3)] {
        Client::connect(&daemon.socket(volume), volume).read(block * BLOCK, BLOCK as u32).expect("a read");
    }
    let found = lines.by_ref().find(|line| line["round"]["requests"][0].is_array()).expect("a request");
    let request = &found["round"]["requests"][0];
    assert_eq!((&request[2], &request[3], &request[4]), (&json!("read"), &json!(3 * BLOCK), &json!(BLOCK)));
    let end = format!("/v1/recordings/{}", underway[0]["id"]);
    assert_eq!(ask_unix(&daemon.api_socket(), "DELETE", &end, None).json(), json!({ "recordings": [] }));
    assert_eq!(lines.last().expect("a last line")["round"]["last"], true);
    wait_for("it is gone", || if list().is_empty() { Ok(()) } else { Err(format!("{:?}", list())) });
    let again = ask_unix(&daemon.api_socket(), "DELETE", &end, None);
    assert_eq!((again.status, &again.json()["type"]), (404, &json!("urn:larder:problem:unknown-recording")));

    // By its time, and when the client hangs up.
    let (_, lines) = recording(&daemon, &json!({ "seconds": 0.3 }));
    assert_eq!(lines.last().expect("a last line")["round"]["last"], true);
    drop(recording(&daemon, &json!({ "seconds": 86400 })));
    wait_for("nobody records", || if list().is_empty() { Ok(()) } else { Err(format!("{:?}", list())) });

    let refused = |body: Value| ask_unix(&daemon.api_socket(), "POST", "/v1/recordings", Some(&body)).status;
    let wrong =
        [json!({ "seconds": 0 }), json!({ "seconds": 90000 }), json!({}), json!({ "seconds": 1, "x": 1 })];
    assert!(wrong.into_iter().all(|body| refused(body) == 422));
    assert_eq!(refused(json!({ "seconds": 1, "names": ["nobody"] })), 404);
    daemon.stop();
}
