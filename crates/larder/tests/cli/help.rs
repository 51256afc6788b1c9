//! The contract of every command: help, version, bad options.

use crate::lab::Lab;

fn stdout(arguments: &[&str]) -> String {
    let output = Lab::new().larder(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn help_names_every_command_and_option() {
    let help = stdout(&["--help"]);
    for word in ["serve", "status", "cache", "--version", "RUST_LOG"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let help = stdout(&["serve", "--help"]);
    for word in ["--config", "/etc/larder/larder.toml", "--check", "SIGTERM"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let help = stdout(&["volume", "show", "--help"]);
    for word in ["QEMU", "libvirt", "Cloud Hypervisor", "--config"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let help = stdout(&["cache", "--help"]);
    for word in [
        "format",
        "info",
        "check",
        "dump",
        "restore",
        "repair",
        "writeback",
        "damage",
        "Exit code",
        "stop it",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let help = stdout(&["status", "--help"]);
    for word in ["--json", "--config", "--socket"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn version_is_the_package_version() {
    assert_eq!(stdout(&["--version"]), format!("larder {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_errors_end_with_2() {
    for arguments in
        [&["serve", "--confg", "x"][..], &["dance"], &[], &["status", "--socket", "a", "--config", "b"]]
    {
        let output = Lab::new().larder(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_status_without_a_daemon_says_how_to_get_one() {
    let lab = Lab::new();
    let socket = lab.path("nobody");
    let output = lab.larder(&["status", "--socket", socket.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "error: no daemon answers on the control socket: {}: No such file or directory (os error 2)\n\
         help: start it with `larder serve`, or name its socket with --socket or its configuration with --config\n",
        socket.display()
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}
