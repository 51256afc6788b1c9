//! The HTTP API: who may use it, what it tells, what it does, how it refuses, and that nothing that is asked makes it fail.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::daemon::{Larder, tenant};
use crate::common::http::{Reply, ask_tcp, ask_unix};
use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::process::{program, run, run_within};
use crate::common::setup::{BLOCK, MIB, Setup, TOKEN, free_tcp_address};
use crate::common::wait_for;

/// How long the fuzzer may take: far more than it needs.
const FUZZING: Duration = Duration::from_secs(600);

/// A daemon with one tenant under write-back.
fn setup() -> Setup {
    Setup::new("4MiB").tenant("db", "write_policy = \"wb\"").volume("db-root", 8 * MIB)
}

fn get(larder: &Larder, path: &str) -> Reply {
    ask_unix(&larder.api_socket(), "GET", path, None)
}

fn post(larder: &Larder, path: &str, body: Option<&Value>) -> Reply {
    ask_unix(&larder.api_socket(), "POST", path, body)
}

/// What was refused, with a problem of this type.
fn assert_problem(reply: &Reply, status: u16, kind: &str) {
    let problem = reply.json();
    assert_eq!((reply.status, &problem["status"]), (status, &status.into()), "{reply:?}");
    assert_eq!(problem["type"], format!("urn:larder:problem:{kind}"), "{reply:?}");
    assert!(problem["detail"].as_str().is_some_and(|text| !text.is_empty()), "{reply:?}");
    assert!(reply.head.contains("content-type: application/problem+json"), "{reply:?}");
}

#[test]
fn the_socket_is_for_whom_the_configuration_says() {
    for (keys, mode, group) in
        [("", 0o660, None), ("socket_mode = \"0640\"\nsocket_group = \"1\"", 0o640, Some(1))]
    {
        let larder = setup().api(keys).start();
        let socket = fs::metadata(larder.api_socket()).expect("the API's socket");
        assert_eq!(socket.permissions().mode() & 0o777, mode);
        let own = fs::metadata(larder.control_socket()).expect("the control socket").gid();
        assert_eq!(socket.gid(), group.unwrap_or(own));
        assert_eq!(get(&larder, "/v1/health").json(), json!({ "healthy": true, "problems": [] }));
        let stopped = larder.stop();
        assert!(!stopped.api_socket().exists(), "it goes with the daemon");
    }
}

#[test]
fn over_tcp_nothing_is_told_and_nothing_done_without_the_token() {
    let (setup, address) = setup().api_on_tcp();
    let larder = setup.start();
    let document = ask_tcp(address, "GET", "/v1/openapi.json", Some(TOKEN), None).json();
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() > 20, "{}", paths.len());
    for (path, operations) in paths {
        let path = path.replace("{tenant}", "db").replace("{volume}", "db-root");
        for method in operations.as_object().expect("operations").keys() {
            for token in [None, Some(""), Some("another-token-for-tests"), Some(&TOKEN[1..])] {
                let reply = ask_tcp(address, &method.to_uppercase(), &path, token, None);
                assert_problem(&reply, 401, "unauthorized");
                assert!(reply.head.contains("www-authenticate: Bearer"), "{reply:?}");
            }
        }
    }
    assert_problem(&ask_tcp(address, "GET", "/nowhere", None, None), 401, "unauthorized");
    assert_eq!(larder.status()["tenants"][0]["volumes"][0]["draining"], "off");
    assert_eq!(ask_tcp(address, "POST", "/v1/volumes/db-root/drain", Some(TOKEN), None).status, 202);
    larder.stop();
}

#[test]
fn what_is_told_is_what_the_status_tells() {
    let larder = setup().api("").tenant("web", "").volume("web-root", 8 * MIB).start();
    let mut client = Client::connect(&larder.socket("db-root"), "db-root");
    client.write(0, &stamp(1, 1, 0, 2 * BLOCK)).expect("written");
    client.read(0, BLOCK as u32).expect("read");
    let told = wait_for("both tell the same", || {
        let (mut told, mut status) = (get(&larder, "/v1/status").json(), larder.status());
        for one in [&mut told, &mut status] {
            one["uptime_seconds"] = Value::Null;
        }
        if told == status { Ok(told) } else { Err(format!("{told:#}\n{status:#}")) }
    });
    assert_eq!(tenant(&told, "db")["ssd_writes"]["guest_write"], 2);
    let db = get(&larder, "/v1/tenants/db").json();
    assert_eq!((&db["name"], &db["volumes"][0]["name"]), (&"db".into(), &"db-root".into()));
    assert_eq!(db["latency"]["write_hit"]["requests"], 1, "{db:#}");
    let names = |list: &Value| -> Vec<String> {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|one| one["name"].as_str().expect("a name").into())
            .collect()
    };
    assert_eq!(names(&get(&larder, "/v1/tenants").json()["tenants"]), ["db", "web"]);
    assert_eq!(names(&get(&larder, "/v1/volumes").json()["volumes"]), ["db-root", "web-root"]);
    let volume = get(&larder, "/v1/volumes/db-root").json();
    assert_eq!(
        (&volume["tenant"], &volume["requests"]["write"]["bytes"]),
        (&"db".into(), &(2 * BLOCK).into())
    );
    let decisions = get(&larder, "/v1/decisions").json();
    assert_eq!(decisions["decisions"][1]["tenant"], "web");
    assert!(decisions["decisions"][1]["reason"].is_string(), "{decisions:#}");
    assert_eq!(get(&larder, "/v1/tenants/db/decisions").json()["tenant"], "db");
    assert_eq!(get(&larder, "/v1/volumes/db-root/lost").json()["ranges"], json!([]));

    assert_problem(&get(&larder, "/v1/tenants/db-root"), 404, "unknown-tenant");
    assert_problem(&get(&larder, "/v1/volumes/db"), 404, "unknown-volume");
    assert_problem(&get(&larder, "/v1/volumes/%ff"), 400, "invalid");
    assert_problem(&get(&larder, "/v2/status"), 404, "unknown-path");
    assert_problem(&post(&larder, "/v1/status", None), 405, "wrong-method");
    larder.stop();
}

#[test]
fn what_the_control_socket_does_the_api_does() {
    let larder = setup().api("").start();
    let mut client = Client::connect(&larder.socket("db-root"), "db-root");
    client.write(0, &stamp(1, 1, 0, 2 * BLOCK)).expect("written");
    let volume = || get(&larder, "/v1/volumes/db-root").json();
    let draining = post(&larder, "/v1/tenants/db/drain", None);
    assert_eq!((draining.status, draining.json()), (202, json!({ "volumes": ["db-root"] })));
    wait_for("it is drained", || {
        let volume = volume();
        if volume["draining"] == "done" { Ok(()) } else { Err(volume.to_string()) }
    });
    assert_eq!(volume()["dirty_blocks"], 0);
    assert_eq!(post(&larder, "/v1/volumes/db-root/undrain", None).status, 200);

    let hold = json!({ "hold_seconds": 600 });
    assert_eq!(post(&larder, "/v1/volumes/db-root/quiesce", Some(&hold)).status, 200);
    assert_eq!(volume()["quiet"], true);
    assert_problem(&post(&larder, "/v1/volumes/db-root/quiesce", Some(&hold)), 409, "volume-state");
    assert_eq!(post(&larder, "/v1/volumes/db-root/thaw", None).json(), json!({ "was_quiet": true }));
    for hold in
        [json!({ "hold_seconds": 0 }), json!({ "hold_seconds": 3601 }), json!({ "hold": 1 }), json!([])]
    {
        assert_problem(&post(&larder, "/v1/volumes/db-root/quiesce", Some(&hold)), 422, "invalid");
    }
    assert_problem(&post(&larder, "/v1/volumes/db-root/quiesce", None), 415, "invalid");

    assert_problem(&post(&larder, "/v1/volumes/db-root/resize", None), 409, "volume-state");
    let backing = File::options().write(true).open(larder.backing("db-root")).expect("the backing");
    backing.set_len(16 * MIB).expect("grown");
    assert_eq!(post(&larder, "/v1/volumes/db-root/resize", None).json()["to_bytes"], 16 * MIB);

    let migration =
        |step: &str| post(&larder, "/v1/volumes/db-root/migration", Some(&json!({ "step": step })));
    assert_problem(&migration("complete"), 409, "not-migrating");
    assert_eq!(migration("prepare").status, 200);
    assert_problem(&migration("complete"), 409, "in-use");
    assert_problem(&post(&larder, "/v1/volumes/db-root/undrain", None), 409, "migrating");
    assert_eq!((migration("abort").status, migration("dance").status), (200, 422));

    assert_problem(&post(&larder, "/v1/cache/attach", None), 409, "cache-in-use");
    let nothing = json!({ "added": [], "removed": [], "draining": [] });
    assert_eq!(post(&larder, "/v1/reload", None).json(), nothing);
    larder.stop();
}

#[test]
fn what_is_set_is_in_effect_and_outlives_the_daemon() {
    let larder = setup().api("").start();
    let patch = |path: &str, body: Value| ask_unix(&larder.api_socket(), "PATCH", path, Some(&body));
    assert_eq!(get(&larder, "/v1/settings").json(), json!({ "changed": [] }));
    let set = patch("/v1/settings", json!({ "epoch": "7s" })).json();
    assert_eq!(
        (&set["changed"][0]["key"], &set["changed"][0]["now"]),
        (&"epoch".into(), &"7s".into()),
        "{set:#}"
    );
    assert_eq!(patch("/v1/tenants/db/settings", json!({ "weight": "3" })).status, 200);
    assert_problem(&patch("/v1/tenants/db/settings", json!({ "weight": "heavy" })), 422, "invalid");
    assert_problem(&patch("/v1/tenants/db/settings", json!({ "name": "x" })), 422, "invalid");
    assert_problem(&patch("/v1/tenants/nobody/settings", json!({ "weight": "3" })), 404, "unknown-tenant");
    let again = larder.stop().start();
    assert_eq!(get(&again, "/v1/status").json()["epoch_seconds"], 7.0);
    assert_eq!(get(&again, "/v1/settings").json()["changed"].as_array().map(Vec::len), Some(2));
    again.stop();
}

/// A certificate for 127.0.0.1 that signs itself, and its key.
fn certificate(setup: &Setup) {
    let mut command = program("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]);
    command.args(["-subj", "/CN=larder", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout"]);
    run(command.arg(setup.path("key.pem")).arg("-out").arg(setup.path("cert.pem")), setup.folder());
    fs::set_permissions(setup.path("key.pem"), fs::Permissions::from_mode(0o600)).expect("a mode");
}

#[test]
fn tls_is_spoken_where_it_is_configured_and_nothing_else() {
    let address = free_tcp_address();
    let setup = setup();
    certificate(&setup);
    fs::write(setup.path("token"), TOKEN).expect("a token");
    fs::set_permissions(setup.path("token"), fs::Permissions::from_mode(0o600)).expect("a mode");
    let keys = "token_file = \"token\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"";
    let larder = setup.api(&format!("listen = \"{address}\"\n{keys}")).start();
    let curl = |url: String, token: &str| {
        let mut command = program("curl");
        command.args([
            "--silent",
            "--show-error",
            "--max-time",
            "50",
            "--write-out",
            "\n%{http_code}",
            "--cacert",
        ]);
        command
            .arg(larder.path("cert.pem"))
            .arg("--header")
            .arg(format!("Authorization: Bearer {token}"))
            .arg(url);
        run_within(crate::common::LIMIT, &mut command, larder.folder())
    };
    let health = curl(format!("https://{address}/v1/health"), TOKEN);
    assert!(health.stdout.starts_with("{\"healthy\":true") && health.stdout.ends_with("\n200"), "{health:?}");
    let refused = curl(format!("https://{address}/v1/health"), "another-token-for-tests");
    assert!(refused.stdout.ends_with("\n401"), "{refused:?}");
    let plain = curl(format!("http://{address}/v1/health"), TOKEN);
    assert!(!plain.status.success() && plain.stdout.ends_with("\n000"), "{plain:?}");
    larder.stop();
}

/// The program of `scripts/schemathesis.sh`.
fn schemathesis() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/schemathesis.sh");
    let out = Command::new(script).output().expect("scripts/schemathesis.sh");
    assert!(out.status.success(), "scripts/schemathesis.sh: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().into()
}

/// All that the description allows, and much that it does not. What is set is judged by its value, which no description of it can: so a body that is as described
/// may be refused all the same (`positive_data_acceptance`). Everything else that is checked has to hold: no 5xx, statuses and bodies as described, nothing wrong accepted, the token wanted.
#[test]
fn nothing_that_is_asked_makes_it_fail() {
    let (setup, address) = setup().tenant("web", "").volume("web-root", 8 * MIB).api_on_tcp();
    let larder = setup.start();
    let document = ask_tcp(address, "GET", "/v1/openapi.json", Some(TOKEN), None);
    let path = larder.path("openapi.json");
    fs::write(&path, document.body).expect("a file in the test's folder");
    let mut fuzzer = Command::new(schemathesis());
    fuzzer.arg("run").arg(path).arg("--url").arg(format!("http://{address}"));
    fuzzer.args([
        "--header",
        &format!("Authorization: Bearer {TOKEN}"),
        "--seed",
        "1",
        "--max-examples",
        "25",
    ]);
    // It answers for as long as it is told to, up to a day; [`crate::explore`] asks it.
    fuzzer.args(["--exclude-operation-id", "record"]);
    fuzzer.args(["--exclude-checks", "positive_data_acceptance", "--no-color"]).current_dir(larder.folder());
    let outcome = run_within(FUZZING, &mut fuzzer, larder.folder());
    assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);
    assert!(!outcome.stdout.contains("unresolvable"), "{}", outcome.stdout);
    assert!(!larder.log().contains("panicked"), "{}", larder.log());
    assert_eq!(get(&larder, "/v1/health").json()["healthy"], true);
    larder.stop();
}
