//! `larder doctor` on setups that are whole, and on ones that are broken in one place each.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::lab::{Lab, tenant};

/// What it finds, and how it ends.
fn doctor(lab: &Lab, config: &Path) -> (Vec<Value>, Output) {
    let output = lab.larder(&["doctor", "--json", "--config", config.to_str().expect("UTF-8")]);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let findings = report["findings"].as_array().expect("a list").clone();
    let count = |level: &str| findings.iter().filter(|finding| finding["level"] == level).count();
    for (key, level) in [("ok", "ok"), ("warnings", "warning"), ("problems", "problem")] {
        assert_eq!(report[key], count(level), "{report:#}");
    }
    let code = if count("problem") > 0 { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{report:#}");
    (findings, output)
}

/// One of this level and area, whose message or help has these words.
fn assert_finds(findings: &[Value], level: &str, area: &str, words: &str) {
    let has = |finding: &&Value| {
        let text = format!("{}: {} ({})", finding["subject"], finding["message"], finding["help"]);
        finding["level"] == level && finding["area"] == area && text.contains(words)
    };
    assert!(
        findings.iter().any(|finding| has(&finding)),
        "no {level} in {area} with {words:?}: {findings:#?}"
    );
}

fn problems(findings: &[Value]) -> Vec<&Value> {
    findings.iter().filter(|finding| finding["level"] == "problem").collect()
}

#[test]
fn nothing_stands_in_the_way_of_a_whole_setup_and_nothing_is_written() {
    let lab = Lab::new();
    lab.disk("disk", 1 << 20);
    let config = lab.one_volume("disk", "unix:s");
    let before = lab.fingerprint();
    let (findings, output) = doctor(&lab, &config);
    assert!(problems(&findings).is_empty(), "{findings:#?}");
    assert_eq!(lab.fingerprint(), before);
    assert_finds(&findings, "ok", "kernel", "io_uring");
    assert_finds(&findings, "ok", "configuration", "tenants: 1, volumes: 1");
    assert_finds(&findings, "warning", "daemon", "no daemon runs");
    assert_finds(&findings, "ok", "cache", "made by the first start");
    assert_finds(&findings, "ok", "daemon", "would start");
    assert!(output.stderr.is_empty(), "{output:?}");

    let daemon = lab.serve(&config);
    let (findings, _) = doctor(&lab, &config);
    assert!(problems(&findings).is_empty(), "{findings:#?}");
    assert_finds(&findings, "ok", "daemon", "answers");
    assert_finds(&findings, "ok", "daemon", "volume v\": \"served");
    daemon.stop();

    let (findings, _) = doctor(&lab, &config);
    assert!(problems(&findings).is_empty(), "{findings:#?}");
    assert_finds(&findings, "ok", "cache", "that a start goes on with, 0 of them dirty");
    let text = lab.larder(&["doctor", "--config", config.to_str().expect("UTF-8")]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("\nwarning  daemon ") && text.contains("help: larder serve"), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("problems: 0, ")), "{text}");
}

#[test]
fn each_break_is_found_where_it_is() {
    let broken = |area: &str, words: &str, configure: &dyn Fn(&Lab) -> std::path::PathBuf| {
        let lab = Lab::new();
        lab.disk("disk", 1 << 20);
        let config = configure(&lab);
        let (findings, _) = doctor(&lab, &config);
        assert_finds(&findings, "problem", area, words);
        assert_eq!(problems(&findings).len(), 1, "{area}, {words}: {findings:#?}");
    };
    broken("configuration", "unknown key", &|lab| lab.config("[[tenant]]\nnam = \"a\"\n"));
    broken("configuration", "cannot read the configuration", &|lab| lab.path("nothing.toml"));
    broken("backing", "truncate -s", &|lab| lab.one_volume("missing", "unix:s"));
    broken("backing", "multiple of 512", &|lab| {
        fs::write(lab.path("odd"), [0; 700]).expect("a file");
        lab.one_volume("odd", "unix:s")
    });
    broken("backing", "127.0.0.1:1", &|lab| lab.one_volume("nbd://127.0.0.1:1/x", "unix:s"));
    broken("permissions", "mkdir -p", &|lab| lab.one_volume("disk", "unix:run/s"));
    broken("permissions", "there is no such group", &|lab| {
        let config = lab.one_volume("disk", "unix:s");
        let text = fs::read_to_string(&config).expect("a configuration");
        fs::write(&config, text.replace("[control]\n", "[control]\nsocket_group = \"nobody-has-this\"\n"))
            .expect("written");
        config
    });
    broken("cache", "are free for 8 TiB", &|lab| {
        let config = lab.one_volume("disk", "unix:s");
        let text = fs::read_to_string(&config).expect("a configuration");
        fs::write(&config, text.replace("4MiB", "8TiB")).expect("written");
        config
    });
    broken("cache", "neither a file nor a block device", &|lab| {
        fs::create_dir(lab.path("cache.img")).expect("a folder");
        lab.one_volume("disk", "unix:s")
    });
    broken("cache", "neither empty nor", &|lab| {
        fs::write(lab.path("cache.img"), [7; 1 << 20]).expect("a file");
        lab.one_volume("disk", "unix:s")
    });
    broken("kernel", "modprobe ublk_drv", &|lab| {
        assert!(!Path::new("/dev/ublk-control").exists(), "this host has ublk: the test cannot tell");
        lab.config(&tenant("t", "v", "disk", "unix:s").replace("nbd = \"unix:s\"", "ublk = true"))
    });
}

#[test]
fn what_works_and_could_be_better_is_a_warning() {
    let lab = Lab::new();
    lab.disk("disk", 1 << 20);
    fs::File::create(lab.path("cache.img")).and_then(|file| file.set_len(4 << 20)).expect("a sparse file");
    let (findings, _) = doctor(&lab, &lab.one_volume("disk", "unix:s"));
    assert_finds(&findings, "warning", "cache", "fallocate -l 4194304");
    assert!(problems(&findings).is_empty(), "{findings:#?}");
}

/// Each thing by itself is well; together they cannot be served.
#[test]
fn what_only_a_start_would_find_is_a_problem() {
    let refused = |words: &str, help: &str, configure: &dyn Fn(&Lab) -> std::path::PathBuf| {
        let lab = Lab::new();
        lab.disk("disk", 1 << 20);
        let config = configure(&lab);
        let before = lab.fingerprint();
        let (findings, _) = doctor(&lab, &config);
        assert_finds(&findings, "problem", "daemon", words);
        assert_finds(&findings, "problem", "daemon", help);
        assert_eq!(problems(&findings).len(), 1, "{words}: {findings:#?}");
        assert_eq!(lab.fingerprint(), before);
    };
    let two =
        |lab: &Lab| lab.config(&(tenant("a", "va", "disk", "unix:s") + &tenant("b", "vb", "link", "unix:s")));
    refused("are the same disk", "a disk of its own", &|lab| {
        fs::hard_link(lab.path("disk"), lab.path("link")).expect("a link");
        two(lab)
    });
    refused("are the same disk", "a disk of its own", &|lab| {
        std::os::unix::fs::symlink("disk", lab.path("link")).expect("a link");
        two(lab)
    });
    refused("it failed with data that no backing has", "bring back", &|lab| {
        let volume = r#"{ "volume": "v", "backing": "disk", "ranges": [{ "offset": 0, "len": 4096 }] }"#;
        let loss = format!(
            r#"{{ "cache": "cache.img", "since_unix_seconds": 1, "uuid": "{}", "session": 1, "record": 1, "volumes": [{volume}] }}"#,
            "07070707-0707-0707-0707-070707070707"
        );
        fs::write(lab.path("cache.img.loss.json"), loss).expect("written");
        lab.one_volume("disk", "unix:s")
    });
}
