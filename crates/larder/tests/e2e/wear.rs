//! The wear of the SSD in the status, with a `smartctl` that says what the test wants: the daemon finds the disk under its cache file, and asks.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::common::daemon::larder;
use crate::common::process::{Background, run};
use crate::common::setup::{MIB, Setup};
use crate::common::wait_for;

/// 100 TB written, a quarter used, on for a thousand days.
const TOLD: &str = r#"{"smartctl":{"exit_status":0},"model_name":"TEST SSD","user_capacity":{"bytes":1000000000000},"logical_block_size":512,
"smart_status":{"passed":true},"nvme_smart_health_information_log":{"percentage_used":25,"data_units_written":195312500},"power_on_time":{"hours":24000}}"#;

#[test]
fn the_status_has_what_the_disk_tells_and_when_it_is_worn_out() {
    let setup = Setup::new("4MiB").tenant("a", "").volume("a0", 8 * MIB);
    let folder = setup.path("bin");
    fs::create_dir(&folder).expect("a folder");
    let smartctl = folder.join("smartctl");
    let asked = setup.path("asked");
    fs::write(
        &smartctl,
        format!("#!/bin/sh\necho \"$@\" >> {}\ncat <<'END'\n{TOLD}\nEND\nexit 4\n", asked.display()),
    )
    .and_then(|()| fs::set_permissions(&smartctl, Permissions::from_mode(0o755)))
    .expect("a script");
    let config = setup.write_config();
    let text = fs::read_to_string(&config).expect("a configuration");
    fs::write(&config, text.replacen("[cache]\n", "[cache]\nendurance = \"600TBW\"\n", 1)).expect("written");

    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command: Command = larder();
    command.env("PATH", path).args(["serve", "--config"]).arg(&config);
    let mut daemon = Background::start(&mut command, &setup.path("larder.log"));
    let ask = |json: bool| {
        let mut command = larder();
        command.arg("status").args(json.then_some("--json")).arg("--socket").arg(setup.control_socket());
        run(&mut command, setup.folder())
    };
    wait_for("larder is ready", || {
        assert_eq!(daemon.ended(), None, "larder ended at start");
        daemon.log().contains(" ready").then_some(()).ok_or_else(|| daemon.log())
    });
    let wear = wait_for("the disk has told", || {
        let status: Value = serde_json::from_str(&ask(true)).expect("JSON");
        let wear = status["cache"]["wear"].clone();
        (wear["disks"].as_array().is_some_and(|disks| !disks.is_empty()))
            .then_some(wear)
            .ok_or_else(|| status.to_string())
    });
    let disk = &wear["disks"][0];
    assert_eq!((&disk["model"], &disk["used_ratio"]), (&"TEST SSD".into(), &0.25.into()), "{wear:#}");
    assert_eq!(disk["written_bytes"], 100_000_000_000_000_u64, "{wear:#}");
    assert_eq!((&wear["rated_bytes"], &wear["rated_by"]), (&600e12.into(), &"configured".into()), "{wear:#}");
    assert_eq!(
        (&wear["written_bytes_per_day"], &wear["pace_by"]),
        (&1e11.into(), &"life".into()),
        "{wear:#}"
    );
    // 500 TB at a tenth of a terabyte a day.
    assert_eq!(wear["worn_out_in_seconds"], 5000.0 * 86_400.0, "{wear:#}");
    let said = fs::read_to_string(&asked).expect("it was asked");
    assert!(said.contains("--json=c") && said.lines().all(|line| line.contains("/dev/")), "{said}");
    let text = ask(false);
    let line =
        text.lines().find(|line| line.starts_with("wear: ")).unwrap_or_else(|| panic!("no wear in {text}"));
    assert!(line.contains("TEST SSD: 25.00 % used") && line.contains("worn out in 13.7 years ("), "{line}");
    daemon.terminate();
    assert_eq!(daemon.wait(crate::common::LIMIT).code(), Some(0));
}
