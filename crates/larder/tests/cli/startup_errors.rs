//! Every error at the start names the thing and the remedy, ends with 1, and leaves every file as it was.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::lab::{Lab, tenant};

/// Start on a configuration that cannot be served. The error must contain all of `names`, the help all of `remedy`, and
/// no file may change.
fn refuse(lab: &Lab, config: &Path, names: &[&str], remedy: &[&str]) {
    let before = lab.fingerprint();
    let output = lab.larder(&["serve", "--config", config.to_str().expect("UTF-8")]);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let (error, help) = said.split_once("\nhelp: ").unwrap_or_else(|| panic!("no help: {said}"));
    let error = error.find("error: ").map(|at| &error[at..]).unwrap_or_else(|| panic!("no error: {said}"));
    for name in names {
        assert!(error.contains(name), "{name} is missing: {error}");
    }
    for word in remedy {
        assert!(help.contains(word), "{word} is missing: {help}");
    }
    assert_eq!(lab.fingerprint(), before, "something was written");
}

#[test]
fn a_missing_configuration() {
    let lab = Lab::new();
    refuse(&lab, &lab.path("larder.toml"), &["larder.toml", "No such file"], &["--config"]);
}

#[test]
fn an_unknown_key() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = lab.one_volume("disk", "unix:s");
    let text = fs::read_to_string(&config).expect("readable").replace("size =", "sise =");
    fs::write(&config, text).expect("writable");
    let names = ["larder.toml:3: unknown key \"sise\" in [cache]", "3 | sise = \"4MiB\"", "^^^^"];
    refuse(&lab, &config, &names, &["correct the key"]);
}

#[test]
fn a_missing_backing() {
    let lab = Lab::new();
    let config = lab.one_volume("disk", "unix:s");
    refuse(
        &lab,
        &config,
        &[lab.path("disk").to_str().expect("UTF-8")],
        &["check the path; if it is a new disk: truncate"],
    );
}

#[test]
fn a_backing_that_is_a_directory() {
    let lab = Lab::new();
    fs::create_dir(lab.path("disk")).expect("directory");
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &["/disk is a directory"], &["a block device"]);
}

#[test]
fn a_backing_of_half_a_sector() {
    let lab = Lab::new();
    lab.disk("disk", 4096 + 100);
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &["/disk", "4196", "512"], &["truncate -s 4608"]);
}

#[test]
fn the_second_of_two_backings() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = lab.config(&(tenant("a", "va", "disk", "unix:s") + &tenant("b", "vb", "other", "unix:s")));
    refuse(&lab, &config, &["/other"], &["check the path"]);
}

#[test]
fn one_disk_under_two_names() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    std::os::unix::fs::symlink("disk", lab.path("alias")).expect("link");
    let config = lab.config(&(tenant("a", "va", "disk", "unix:s") + &tenant("b", "vb", "alias", "unix:s")));
    refuse(&lab, &config, &["/disk", "/alias", "same"], &["of its own"]);
}

#[test]
fn a_disk_that_is_the_cache() {
    let lab = Lab::new();
    lab.disk("disk", 8 << 20);
    std::os::unix::fs::symlink("disk", lab.path("cache.img")).expect("link");
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &["/disk", "/cache.img"], &["of its own"]);
}

#[test]
fn a_cache_file_that_is_too_small() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    fs::write(lab.path("cache.img"), [0; 1 << 20]).expect("write");
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &["/cache.img has 1048576 bytes", "4194304"], &["configure a size of at most"]);
}

#[test]
fn a_cache_file_with_something_else_in_it() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    lab.disk("cache.img", 8 << 20);
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &["cache.img"], &["wipefs"]);
}

#[test]
fn a_cache_in_a_directory_that_is_missing() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = lab.one_volume("disk", "unix:s");
    let text = fs::read_to_string(&config).expect("readable").replace("cache.img", "nowhere/cache.img");
    fs::write(&config, text).expect("writable");
    refuse(&lab, &config, &["nowhere"], &["mkdir -p"]);
}

#[test]
fn an_nbd_backing_that_nobody_serves() {
    let lab = Lab::new();
    let socket = lab.path("backing.sock");
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let config = lab.one_volume(&uri, "unix:s");
    refuse(&lab, &config, &["nbd+unix:///?socket=", "backing.sock"], &["server"]);
}

#[test]
fn a_tcp_port_in_use() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let config = lab.one_volume("disk", &format!("tcp:{address}"));
    refuse(&lab, &config, &[&address, "in use"], &["port"]);
}

#[test]
fn an_export_socket_that_answers() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let _taken = UnixListener::bind(lab.path("s")).expect("a socket");
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &[lab.path("s").to_str().expect("UTF-8")], &["stop"]);
}

#[test]
fn a_control_socket_that_answers() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let _taken = UnixListener::bind(lab.path("ctl")).expect("a socket");
    let config = lab.one_volume("disk", "unix:s");
    refuse(&lab, &config, &["/ctl", "another daemon"], &["control.socket"]);
}

/// The same with a cache that is not kept: its daemon writes nothing by itself.
fn silent(config: &Path) -> PathBuf {
    let text = fs::read_to_string(config).expect("readable").replace("[cache]", "[cache]\nkeep = false");
    let silent = config.with_file_name("silent.toml");
    fs::write(&silent, text).expect("writable");
    silent
}

#[test]
fn a_second_daemon_on_the_same_cache() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    lab.disk("other", 8192);
    let daemon = lab.serve(&silent(&lab.one_volume("disk", "unix:s")));
    let first = lab.one_volume("other", "unix:s2");
    let text = fs::read_to_string(&first).expect("readable").replace("\"ctl\"", "\"ctl2\"");
    let second = lab.path("second.toml");
    fs::write(&second, text).expect("writable");
    refuse(&lab, &second, &["/cache.img is in use"], &["stop the other daemon"]);
    daemon.stop();
}

#[test]
fn a_second_daemon_on_the_same_disk() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let daemon = lab.serve(&silent(&lab.one_volume("disk", "unix:s")));
    let first = lab.one_volume("disk", "unix:s2");
    let text = fs::read_to_string(&first)
        .expect("readable")
        .replace("\"ctl\"", "\"ctl2\"")
        .replace("cache.img", "cache2.img");
    let second = lab.path("second.toml");
    fs::write(&second, text).expect("writable");
    refuse(&lab, &second, &["/disk", "in use"], &["fuser"]);
    daemon.stop();
}

#[test]
fn check_says_the_same_and_writes_nothing() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = lab.one_volume("disk", "unix:s");
    let before = lab.fingerprint();
    let output = lab.larder(&["serve", "--check", "--config", config.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lab.fingerprint(), before);
    fs::remove_file(lab.path("disk")).expect("remove");
    let output = lab.larder(&["serve", "--check", "--config", config.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn check_finds_addresses_that_cannot_be_listened_on() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!("tcp:{}", listener.local_addr().expect("an address"));
    let cases = [
        ("unix:nodir/s", "nodir/s does not exist", "mkdir -p"),
        ("tcp:192.0.2.1:10809", "192.0.2.1:10809 is not an address of this host", "ip address"),
        (taken.as_str(), "in use by another server", "another port"),
    ];
    for (listen, name, remedy) in cases {
        let config = lab.one_volume("disk", listen);
        let before = lab.fingerprint();
        let output = lab.larder(&["serve", "--check", "--config", config.to_str().expect("UTF-8")]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{listen}: {said}");
        assert!(said.contains(name) && said.contains(remedy), "{listen}: {said}");
        assert_eq!(lab.fingerprint(), before, "{listen}: something was left behind");
    }
}

/// A configuration whose `[control]` has one more line.
fn with_control(config: &Path, line: &str) {
    let text = fs::read_to_string(config).expect("readable");
    fs::write(config, text.replacen("[control]\n", &format!("[control]\n{line}\n"), 1)).expect("writable");
}

#[test]
fn a_group_that_nobody_has() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = lab.one_volume("disk", "unix:s");
    with_control(&config, "socket_group = \"no-such-group\"");
    refuse(&lab, &config, &["socket_group", "no group \"no-such-group\""], &["getent group", "groupadd"]);
}

#[test]
fn sockets_are_for_their_owner_and_the_group() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = lab.one_volume("disk", "unix:s");
    // Root may give files to any group; others only to one of theirs.
    let own = fs::metadata(&config).expect("a file");
    let group = if own.uid() == 0 { 64_055 } else { own.gid() };
    with_control(&config, &format!("socket_group = \"{group}\""));
    let daemon = lab.serve(&config);
    for socket in ["s", "ctl"] {
        let meta = fs::metadata(lab.path(socket)).expect("a socket");
        assert_eq!((meta.permissions().mode() & 0o777, meta.gid()), (0o660, group), "{socket}");
    }
    daemon.stop();
}

#[test]
fn the_same_daemon_twice() {
    let lab = Lab::new();
    lab.disk("disk", 8192);
    let config = silent(&lab.one_volume("disk", "unix:s"));
    let daemon = lab.serve(&config);
    refuse(&lab, &config, &["/ctl", "another daemon"], &["stop the other daemon", "control.socket"]);
    daemon.stop();
}
