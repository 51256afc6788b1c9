//! Backings behind `nbdkit`, with the filters that a test wants.

use std::fs;
use std::os::unix::net::UnixStream;

use super::process::{Background, program};
use super::setup::Setup;
use super::wait_for;

/// Start `nbdkit` on the unix socket `NAME.sock` of a setup; its URI.
pub fn nbdkit(setup: &Setup, name: &str, arguments: &[&str]) -> (Background, String) {
    let socket = setup.socket(name);
    // What a killed one left behind.
    let _ = fs::remove_file(&socket);
    let mut command = program("nbdkit");
    command.args(["--foreground", "--exit-with-parent", "--unix"]).arg(&socket).args(arguments);
    let mut process = Background::start(&mut command, &setup.path(&format!("{name}.log")));
    wait_for("nbdkit", || {
        assert_eq!(process.ended(), None, "nbdkit ended at start");
        // It is there before anybody listens.
        UnixStream::connect(&socket).map(drop).map_err(|error| error.to_string())
    });
    (process, format!("nbd+unix:///?socket={}", socket.display()))
}
