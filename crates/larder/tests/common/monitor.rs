//! QEMU's human monitor, over a unix socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{LIMIT, wait_for};

/// A connection to it.
pub struct Monitor(UnixStream);

impl Monitor {
    /// Wait until it is there.
    pub fn connect(path: &Path) -> Self {
        let stream =
            wait_for("QEMU's monitor", || UnixStream::connect(path).map_err(|error| error.to_string()));
        stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
        let mut monitor = Self(stream);
        monitor.answer();
        monitor
    }

    /// What it answers to a command.
    pub fn ask(&mut self, command: &str) -> String {
        self.0.write_all(format!("{command}\n").as_bytes()).expect("QEMU listens");
        self.answer()
    }

    /// End QEMU.
    pub fn quit(mut self) {
        self.0.write_all(b"quit\n").expect("QEMU listens");
        // It does not hear it where the connection ends first.
        self.0.read_to_end(&mut Vec::new()).expect("QEMU ends");
    }

    /// All up to the next prompt.
    fn answer(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"(qemu) ") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("QEMU answers");
            text.extend(byte);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}
