//! Metrics: a real Prometheus reads them and evaluates every rule of `docs/prometheus`; what it then knows is what was done; every name is documented.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::daemon::Larder;
use crate::common::http::ask_tcp;
use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::process::{Background, program, run};
use crate::common::setup::{BLOCK, MIB, Setup, TOKEN, free_tcp_address};
use crate::common::wait_for;

/// A file of the documentation.
fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// A daemon that has served something, under write-back and under write-through; and an error.
fn busy() -> (Larder, SocketAddr) {
    let setup = Setup::new("4MiB")
        .control("allocator = \"static\"")
        .tenant("db", "write_policy = \"wb\"")
        .volume("db-root", 8 * MIB)
        .volume("db-log", 8 * MIB)
        .ordered()
        .tenant("web", "write_policy = \"wt\"")
        .volume("web-root", 8 * MIB);
    let (setup, address) = setup.api_on_tcp();
    let larder = setup.start();
    for volume in ["db-root", "web-root"] {
        let mut client = Client::connect(&larder.socket(volume), volume);
        client.read(0, 4 * BLOCK as u32).expect("a miss");
        for _ in 0..3 {
            client.read(0, 4 * BLOCK as u32).expect("a hit");
        }
        client.write(0, &stamp(1, 1, 0, 2 * BLOCK)).expect("written");
        client.flush().expect("flushed");
    }
    let backing = File::options().write(true).open(larder.backing("web-root")).expect("the backing");
    backing.set_len(4 * MIB).expect("shrunk");
    let mut client = Client::connect(&larder.socket("web-root"), "web-root");
    client.read(6 * MIB, BLOCK as u32).expect_err("there is nothing");
    (larder, address)
}

fn page(address: SocketAddr) -> String {
    let reply = ask_tcp(address, "GET", "/metrics", Some(TOKEN), None);
    assert!(reply.head.contains("content-type: text/plain; version=0.0.4"), "{}", reply.head);
    reply.body
}

/// The names in backticks that begin with `larder_`, of the families of a page, or of a document.
fn names(text: &str, before: &str, after: char) -> BTreeSet<String> {
    let name =
        |part: &str| part.split(after).next().filter(|name| name.starts_with("larder_")).map(str::to_owned);
    text.split(before).skip(1).filter_map(name).collect()
}

#[test]
fn every_metric_is_documented_and_as_prometheus_wants_them() {
    let (larder, address) = busy();
    let page = page(address);
    let path = larder.path("metrics.txt");
    fs::write(&path, &page).expect("a file in the test's folder");
    let mut check = program("sh");
    let said = run(check.args(["-c", "promtool check metrics < \"$0\" 2>&1"]).arg(&path), larder.folder());
    assert_eq!(said, "", "promtool has nothing to say");
    let documented = fs::read_to_string(document("metrics.md")).expect("docs/metrics.md");
    let told = names(&page, "# TYPE ", ' ');
    let documented: BTreeSet<String> = names(&documented, "\n| `", '`');
    // What an allocator that predicts tells, and what disks do.
    let not_always = |name: &String| {
        name.starts_with("larder_tenant_decision_predicted_") || name.starts_with("larder_ssd_")
    };
    let always = |names: BTreeSet<String>| -> BTreeSet<String> {
        names.into_iter().filter(|name| !not_always(name)).collect()
    };
    assert!(told.is_subset(&documented), "{told:?}");
    assert_eq!(always(told), always(documented));
    larder.stop();
}

/// A Prometheus that reads a daemon every second, and evaluates the rules as often.
struct Prometheus {
    process: Background,
    address: SocketAddr,
}

impl Prometheus {
    fn start(larder: &Larder, target: SocketAddr) -> Self {
        let address = free_tcp_address();
        let (config, token) = (larder.path("prometheus.yml"), larder.path("token"));
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{}]\nscrape_configs:\n  - job_name: larder\n    authorization: {{credentials_file: {}}}\n    \
             static_configs: [{{targets: ['{target}']}}]\n",
            document("prometheus/larder.rules.yml").display(),
            token.display()
        );
        fs::write(&config, text).expect("a file in the test's folder");
        let mut command = program("prometheus");
        command.arg("--config.file").arg(config).arg("--storage.tsdb.path").arg(larder.path("tsdb"));
        command.arg(format!("--web.listen-address={address}")).current_dir(larder.folder());
        let process = Background::start(&mut command, &larder.path("prometheus.log"));
        Self { process, address }
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        if std::net::TcpStream::connect(self.address).is_err() {
            return Err(format!("not there yet: {}", self.process.log()));
        }
        let reply = ask_tcp(self.address, "GET", path, None, None);
        match reply.status {
            200 => Ok(reply.json()["data"].clone()),
            _ => Err(reply.body),
        }
    }

    /// What a query gives, where it gives one value.
    fn value(&self, query: &str) -> Result<f64, String> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = self.get(&format!("/api/v1/query?query={encoded}"))?;
        let result = data["result"].as_array().filter(|result| result.len() == 1);
        let value = result.and_then(|result| result[0]["value"][1].as_str()?.parse().ok());
        value.ok_or_else(|| format!("{query}: {data}"))
    }
}

#[test]
fn a_prometheus_reads_them_and_evaluates_every_rule() {
    let (larder, target) = busy();
    let prometheus = Prometheus::start(&larder, target);
    wait_for("the daemon is read", || match prometheus.value("up")? {
        1.0 => Ok(()),
        _ => Err(prometheus.get("/api/v1/targets")?.to_string()),
    });
    for (query, value) in [
        ("larder_volume_requests_total{tenant='db',volume='db-root',op='read'}", 4.0),
        ("larder_volume_request_bytes_total{volume='web-root',op='write'}", 2.0 * BLOCK as f64),
        ("larder_volume_request_errors_total{volume='web-root',op='read'}", 1.0),
        ("larder_tenant_block_hits_total{tenant='web',op='read'}", 12.0),
        ("larder_tenant_block_misses_total{tenant='web',op='read'}", 5.0),
        ("larder_tenant_ssd_written_bytes_total{tenant='web',cause='fill'}", 4.0 * BLOCK as f64),
        ("larder_tenant_ssd_written_bytes_total{tenant='db',cause='guest_write'}", 2.0 * BLOCK as f64),
        ("larder_tenant_cleaned_blocks_total{tenant='db'}", 2.0),
        ("larder_cache_state{state='ok'}", 1.0),
        // Those that waited for the first one's fill are misses too.
        ("sum(larder_tenant_request_duration_seconds_count{tenant='db',op='read'})", 4.0),
        ("larder_tenant_request_duration_seconds_count{tenant='db',op='read',result='miss'} >= bool 1", 1.0),
        ("larder_tenant_request_duration_seconds_count{tenant='db',op='write',result='hit'}", 1.0),
        ("larder_tenant_request_duration_seconds_count{tenant='web',op='write',result='miss'}", 1.0),
        ("larder_tenant_request_duration_seconds_bucket{tenant='web',op='flush',le='+Inf'}", 1.0),
        (
            "histogram_quantile(1, larder_tenant_request_duration_seconds_bucket{tenant='db',op='write',result='hit'}) > bool 0",
            1.0,
        ),
    ] {
        wait_for("a series", || {
            prometheus.value(query).and_then(|now| {
                if now == value { Ok(()) } else { Err(format!("{query}: {now}, not {value}")) }
            })
        });
    }
    let rules = fs::read_to_string(document("prometheus/larder.rules.yml")).expect("the rules");
    let expected = rules.matches("- alert: ").count() + rules.matches("- record: ").count();
    wait_for("every rule is evaluated", || {
        let groups = prometheus.get("/api/v1/rules")?;
        let all: Vec<Value> = groups["groups"]
            .as_array()
            .ok_or("no groups")?
            .iter()
            .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default())
            .collect();
        let well = all.iter().filter(|rule| rule["health"] == "ok").count();
        if (all.len(), well) == (expected, expected) {
            Ok(())
        } else {
            Err(format!("{well} of {expected}: {groups:#}"))
        }
    });
    let errors =
        prometheus.value("count(ALERTS{alertname!='LarderGuestErrors'}) or vector(0)").expect("alerts");
    assert_eq!(errors, 0.0, "only the guest's request beyond the end may alarm anybody");
    larder.stop();
}

#[test]
fn alerts_fire_where_they_have_to() {
    let rules = document("prometheus/larder.rules.yml");
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(program("promtool").args(["check", "rules"]).arg(&rules), folder.path());
    run(
        program("promtool").args(["test", "rules"]).arg(document("prometheus/larder.rules.test.yml")),
        folder.path(),
    );
}

/// Everything that the dashboard asks for is there.
#[test]
fn the_dashboard_asks_for_what_is_told() {
    let text = fs::read_to_string(document("grafana/larder.json")).expect("docs/grafana/larder.json");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let documented = fs::read_to_string(document("metrics.md")).expect("docs/metrics.md");
    let documented = names(&documented, "\n| `", '`');
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() >= 10, "{}", panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        for target in panel["targets"].as_array().expect("targets") {
            let query = target["expr"].as_str().expect("a query");
            let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let asked: Vec<&str> = words.filter(|word| word.starts_with("larder_")).collect();
            assert!(!asked.is_empty(), "{query}");
            for name in asked {
                let family = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| name.strip_suffix(end))
                    .unwrap_or(name);
                assert!(documented.contains(family), "{name} in {query}");
            }
        }
    }
}
