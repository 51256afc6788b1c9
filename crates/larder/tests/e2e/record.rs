//! `larder record`: the trace holds what clients asked for, request by request, and the other commands read it.

use std::path::Path;

use serde_json::Value;

use crate::common::daemon::{Larder, larder};
use crate::common::nbd::Client;
use crate::common::process::{Background, Outcome, program, run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::{LIMIT, wait_for};

/// Requests of every kind to the volumes `a0` and `b0`.
const REQUESTS: &str = "
import os
a, b = nbd.NBD(), nbd.NBD()
a.connect_uri(os.environ['A'])
b.connect_uri(os.environ['B'])
a.pread(8192, 4096)
b.pwrite(bytes([1]) * 65536, 131072)
a.pwrite(bytes([2]) * 512, 1536)
a.flush()
b.trim(16384, 32768)
a.zero(4096, 65536)
b.pread(512, 0)
a.shutdown()
b.shutdown()
";

fn two_tenants() -> Larder {
    Setup::in_memory("4MiB")
        .tenant("a", "")
        .volume("a0", 8 * MIB)
        .tenant("b", "")
        .volume("b0", 8 * MIB)
        .start()
}

/// Start to record, and wait until that has begun.
fn recording(daemon: &Larder, arguments: &[&str]) -> Background {
    let before = daemon.log().matches("recording requests").count();
    let mut command = larder();
    command.arg("record").args(arguments).arg("--socket").arg(daemon.control_socket());
    command.current_dir(daemon.folder());
    let recorder = Background::start(&mut command, &daemon.path(&format!("record-{before}.log")));
    wait_for("the recording has begun", || {
        let log = daemon.log();
        (log.matches("recording requests").count() > before).then_some(()).ok_or(log)
    });
    recorder
}

/// A request of a trace: tenant, volume, kind, first byte, bytes.
type Asked = (String, String, String, u64, u64);

/// The requests of a trace, and their times.
fn requests(folder: &Path, file: &str) -> (Vec<Asked>, Vec<u64>) {
    let mut command = larder();
    let lines =
        run(command.args(["trace", "head", "--json", "-n", "100000", file]).current_dir(folder), folder);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let text =
        |line: &Value, key: &str| line[key].as_str().unwrap_or_else(|| panic!("{key}: {line}")).to_owned();
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key}: {line}"));
    let request = |line: &Value| {
        let [tenant, volume, kind] = ["tenant", "volume", "kind"].map(|key| text(line, key));
        (tenant, volume, kind, number(line, "offset"), number(line, "len"))
    };
    (lines.iter().map(request).collect(), lines.iter().map(|line| number(line, "time_ns")).collect())
}

fn ask(daemon: &Larder) {
    let mut nbdsh = program("nbdsh");
    nbdsh.env("A", daemon.uri("a0")).env("B", daemon.uri("b0"));
    run(nbdsh.args(["-c", REQUESTS]), daemon.folder());
}

#[test]
fn the_trace_is_what_was_asked() {
    let daemon = two_tenants();
    // What comes before is not in it.
    Client::connect(&daemon.socket("a0"), "a0").read(0, 512).expect("a read");
    let mut all = recording(&daemon, &["--out", "all.parquet"]);
    let mut one = recording(&daemon, &["b0", "--out", "b.parquet"]);
    ask(&daemon);
    for recorder in [&mut all, &mut one] {
        recorder.terminate();
        assert_eq!(recorder.wait(LIMIT).code(), Some(0), "{}", recorder.log());
    }
    let request = |tenant: &str, kind: &str, offset: u64, len: u64| {
        (tenant.to_owned(), format!("{tenant}0"), kind.to_owned(), offset, len)
    };
    let expected = [
        request("a", "read", 4096, 8192),
        request("b", "write", 131_072, 65_536),
        request("a", "write", 1536, 512),
        request("a", "flush", 0, 0),
        request("b", "discard", 32_768, 16_384),
        request("a", "discard", 65_536, 4096),
        request("b", "read", 0, 512),
    ];
    let (found, times) = requests(daemon.folder(), "all.parquet");
    assert_eq!(found, expected);
    assert!(times.is_sorted() && times[0] < times[6] && times[6] < LIMIT.as_nanos() as u64, "{times:?}");
    let of_b: Vec<_> = expected.iter().filter(|request| request.0 == "b").cloned().collect();
    assert_eq!(requests(daemon.folder(), "b.parquet").0, of_b);
    assert!(all.log().contains("7 requests written to all.parquet (parquet)"), "{}", all.log());
    daemon.stop();
}

/// The order of requests of many clients on several reactors; the other commands on the trace; a bound on the requests.
#[test]
fn a_recorded_load_is_simulated_analyzed_and_replayed() {
    let setup = Setup::in_memory("4MiB").cold().control("reactors = 2");
    let daemon = setup.tenant("a", "").volume("a0", 8 * MIB).tenant("b", "").volume("b0", 8 * MIB).start();
    let mut recorder = recording(&daemon, &["--out", "load.csv.zst", "--max-requests", "3000"]);
    let mut clients = ["a0", "b0"].map(|volume| Client::connect(&daemon.socket(volume), volume));
    for round in 0..1600 {
        for (client, stride) in clients.iter_mut().zip([3, 7]) {
            client.read(round * stride % 2048 * BLOCK, BLOCK as u32).expect("a read");
        }
    }
    assert_eq!(recorder.wait(LIMIT).code(), Some(0), "{}", recorder.log());
    let (found, times) = requests(daemon.folder(), "load.csv.zst");
    // The clients take turns, so the trace does.
    let expected: Vec<_> = (0..1500)
        .flat_map(|round| {
            [("a", 3), ("b", 7)].map(|(tenant, stride)| (tenant, round * stride % 2048 * BLOCK))
        })
        .collect();
    let places: Vec<_> = found.iter().map(|request| (&request.0[..1], request.3)).collect();
    assert!(places == expected, "{} requests, {:?} at {:?}", places.len(), &places[..12], &times[..12]);
    assert!(times.is_sorted());

    let json = |arguments: &[&str]| -> Value {
        let mut command = larder();
        let text = run(command.args(arguments).current_dir(daemon.folder()), daemon.folder());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let simulated = json(&["simulate", "load.csv.zst", "--policy", "lru", "--size", "64MiB", "--json"]);
    assert!(simulated.to_string().contains("3000"), "{simulated:#}");
    let analyzed = json(&["analyze", "load.csv.zst", "--json"]);
    assert!(analyzed.to_string().contains("3000"), "{analyzed:#}");
    // The two volumes side by side.
    daemon.sparse_file("target", 16 * MIB);
    let arguments =
        ["replay", "load.csv.zst", "--to", "target.img", "--reads-only", "--closed", "8", "--json"];
    assert_eq!(json(&arguments)["reads"]["requests"], 3000);
    daemon.stop();
}

#[test]
fn the_end_of_a_recording_is_told() {
    let daemon = two_tenants();
    let refused = |arguments: &[&str]| -> Outcome {
        let mut command = larder();
        command.arg("record").args(arguments).arg("--socket").arg(daemon.control_socket());
        let outcome = run_within(LIMIT, command.current_dir(daemon.folder()), daemon.folder());
        assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
        outcome
    };
    let outcome = refused(&["nobody", "--out", "x.csv"]);
    assert!(outcome.stderr.contains("no tenant and no volume \"nobody\""), "{outcome:?}");
    assert!(refused(&["--out", "trace.txt"]).stderr.contains("the name tells no format"));
    // It ends by itself, without a request.
    let mut command = larder();
    command
        .args(["record", "--for", "300ms", "--out", "empty.parquet", "--socket"])
        .arg(daemon.control_socket());
    run(command.current_dir(daemon.folder()), daemon.folder());
    assert!(requests(daemon.folder(), "empty.parquet").0.is_empty());

    let mut recorder = recording(&daemon, &["--out", "cut.parquet"]);
    ask(&daemon);
    let folder = daemon.folder().to_owned();
    let _setup = daemon.stop();
    let code = recorder.wait(LIMIT).code();
    assert!(code == Some(1) && recorder.log().contains("the daemon ended while"), "{}", recorder.log());
    assert!(requests(&folder, "cut.parquet").0.len() <= 7);
}
