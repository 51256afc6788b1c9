//! The real `larder`, running.

use std::ops::Deref;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::process::{Background, run};
use super::setup::Setup;
use super::wait_for;

/// The command under test.
pub fn larder() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.env_remove("RUST_LOG");
    command
}

/// A running daemon. It ends with its owner.
pub struct Larder {
    process: Background,
    setup: Setup,
}

impl Larder {
    /// Start it with the configuration of a setup, and wait until it says that it is ready.
    pub fn start(setup: Setup) -> Self {
        let config = setup.write_config();
        let mut command = larder();
        command.arg("serve").arg("--config").arg(config);
        Self::launched(setup, &mut command)
    }

    /// Start it by this command, which names the setup's configuration, and wait until it says that it is ready.
    pub fn launched(setup: Setup, command: &mut Command) -> Self {
        let mut process = Background::start(command, &setup.path("larder.log"));
        wait_for("larder is ready", || {
            assert_eq!(process.ended(), None, "larder ended at start");
            process
                .log()
                .contains(" ready")
                .then_some(())
                .ok_or_else(|| "no line \"ready\" in its log".into())
        });
        Self { process, setup }
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ask it to end (SIGTERM), and go on.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// `larder status --json`.
    pub fn status(&self) -> Value {
        let mut command = larder();
        command.args(["status", "--json", "--socket"]).arg(self.control_socket());
        let text = run(&mut command, self.folder());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The status of one tenant.
    pub fn tenant(&self, name: &str) -> Value {
        tenant(&self.status(), name)
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// SIGKILL.
    pub fn kill(mut self) -> Setup {
        self.process.kill();
        self.setup
    }

    /// SIGTERM, and wait for the end.
    pub fn stop(self) -> Setup {
        self.terminate();
        self.ended()
    }

    /// Wait for the end, which must be a clean one.
    pub fn ended(mut self) -> Setup {
        let status = self.process.wait(Duration::from_secs(30));
        assert_eq!(status.code(), Some(0), "larder after SIGTERM");
        self.setup
    }
}

impl Deref for Larder {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

/// One tenant of a status.
pub fn tenant(status: &Value, name: &str) -> Value {
    let tenants = status["tenants"].as_array().expect("a list of tenants");
    let found = tenants.iter().find(|tenant| tenant["name"] == name);
    found.unwrap_or_else(|| panic!("no tenant {name} in {status:#}")).clone()
}

/// A counter of a status.
pub fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {value:#}"))
}
