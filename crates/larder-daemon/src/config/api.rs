//! `[api]`: where the HTTP API listens, and who may use it.
//!
//! The unix socket is guarded by its mode and group. TCP takes a token, and TLS unless it stays on this host: whoever reaches the API can drain volumes and
//! read what everybody does.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::SocketGroup;
use super::decode::{path, socket_group, socket_path};
use super::error::Complaint;
use super::reader::{Field, Table};
use super::write::quoted;

/// Where the API's socket is unless the configuration says otherwise.
pub const DEFAULT_API_SOCKET: &str = "/run/larder/api.sock";

/// Who may connect to it unless the configuration says otherwise: the owner and the group.
pub const DEFAULT_API_SOCKET_MODE: u32 = 0o660;

/// What the owner must be allowed: else the daemon's own user could not ask it.
const OWNER: u32 = 0o600;

/// `[api]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiConfig {
    /// The unix socket.
    pub socket: PathBuf,
    /// Its mode.
    pub socket_mode: u32,
    /// The group that it is given to; `None` for that of `[control]`.
    pub socket_group: Option<SocketGroup>,
    /// Where it listens besides, on TCP.
    pub tcp: Option<ApiTcp>,
}

/// The keys `listen`, `token_file`, `tls_cert` and `tls_key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiTcp {
    /// Where it listens; without TLS an address of the loopback device.
    pub listen: SocketAddr,
    /// The file with the token that every request has to bring.
    pub token_file: PathBuf,
    /// With TLS.
    pub tls: Option<ApiTls>,
}

/// `tls_cert` and `tls_key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiTls {
    /// The file with the certificate, and those that vouch for it, as PEM.
    pub cert: PathBuf,
    /// The file with its key, as PEM.
    pub key: PathBuf,
}

/// Judge the table.
pub(super) fn api(table: &Table<'_>, base: &Path) -> Result<ApiConfig, Complaint> {
    table.allow_only(&[
        "socket",
        "socket_mode",
        "socket_group",
        "listen",
        "token_file",
        "tls_cert",
        "tls_key",
    ])?;
    let socket = table.string("socket")?.map(|field| socket_path(&field, base)).transpose()?;
    let mode = table.string("socket_mode")?.map(|field| mode(&field)).transpose()?;
    let group = table.string("socket_group")?.map(|field| socket_group(&field)).transpose()?;
    Ok(ApiConfig {
        socket: socket.unwrap_or_else(|| DEFAULT_API_SOCKET.into()),
        socket_mode: mode.unwrap_or(DEFAULT_API_SOCKET_MODE),
        socket_group: group,
        tcp: tcp(table, base)?,
    })
}

/// A mode in octal digits, as `chmod` takes it.
fn mode(field: &Field<'_, &str>) -> Result<u32, Complaint> {
    let digits =
        (3..=4).contains(&field.value.len()) && field.value.bytes().all(|byte| byte.is_ascii_digit());
    let mode = u32::from_str_radix(field.value, 8).ok().filter(|mode| digits && *mode <= 0o777);
    match mode {
        Some(mode) if mode & OWNER == OWNER => Ok(mode),
        Some(_) => Err(field.complain(
            format!("with the mode \"{}\" the daemon's own user could not connect", field.value),
            "write \"0660\" for owner and group, or \"0600\" for the owner alone",
        )),
        None => Err(field.complain(
            format!("{:?} is no mode of a file", field.value),
            "write three octal digits, with a zero before them: \"0660\"",
        )),
    }
}

fn tcp(table: &Table<'_>, base: &Path) -> Result<Option<ApiTcp>, Complaint> {
    let cert = table.string("tls_cert")?;
    let key = table.string("tls_key")?;
    let token = table.string("token_file")?;
    let Some(listen) = table.string("listen")? else {
        return match [token, cert, key].into_iter().flatten().next() {
            Some(field) => Err(field.complain(
                "this is for TCP, and the API does not listen there",
                "add a line such as: listen = \"127.0.0.1:7480\"; or remove this one",
            )),
            None => Ok(None),
        };
    };
    let address = address(&listen)?;
    let Some(token) = token else {
        return Err(listen.complain(
            "on TCP anybody could use the API: there is no token",
            "add token_file = \"/etc/larder/token\", and create it: (umask 077; openssl rand -hex 32 > /etc/larder/token)",
        ));
    };
    let tls = match (cert, key) {
        (Some(cert), Some(key)) => Some(ApiTls { cert: path(&cert, base)?, key: path(&key, base)? }),
        (None, None) => None,
        (Some(field), None) => return Err(half(&field, "tls_key")),
        (None, Some(field)) => return Err(half(&field, "tls_cert")),
    };
    if tls.is_none() && !address.ip().is_loopback() {
        return Err(listen.complain(
            format!(
                "the token would cross the network in the clear: {} is not of this host alone",
                address.ip()
            ),
            "add tls_cert and tls_key, or listen on 127.0.0.1 or [::1]",
        ));
    }
    Ok(Some(ApiTcp { listen: address, token_file: path(&token, base)?, tls }))
}

fn half(field: &Field<'_, &str>, other: &str) -> Complaint {
    field.complain(
        format!("TLS needs {other} as well"),
        format!("add a line such as: {other} = \"/etc/larder/{other}.pem\""),
    )
}

/// An address and a port.
fn address(field: &Field<'_, &str>) -> Result<SocketAddr, Complaint> {
    let text = field.value.strip_prefix("tcp:").unwrap_or(field.value);
    // Port 0 would mean another port at every start.
    let address = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    address.ok_or_else(|| {
        field.complain(
            format!("{:?} is no address to listen on", field.value),
            "write an address and a port: \"127.0.0.1:7480\" or \"[::1]:7480\"",
        )
    })
}

impl fmt::Display for ApiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { socket, socket_mode, socket_group, tcp } = self;
        writeln!(f, "\n[api]")?;
        writeln!(f, "socket = {}", quoted(socket.display()))?;
        writeln!(f, "socket_mode = \"{socket_mode:04o}\"")?;
        if let Some(group) = socket_group {
            writeln!(f, "socket_group = {}", quoted(group))?;
        }
        let Some(ApiTcp { listen, token_file, tls }) = tcp else { return Ok(()) };
        writeln!(f, "listen = \"{listen}\"")?;
        writeln!(f, "token_file = {}", quoted(token_file.display()))?;
        if let Some(ApiTls { cert, key }) = tls {
            writeln!(f, "tls_cert = {}", quoted(cert.display()))?;
            writeln!(f, "tls_key = {}", quoted(key.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigError};

    const REST: &str = "[cache]\npath = \"/c\"\nsize = \"1MiB\"\n[[tenant]]\nname = \"a\"\n[[tenant.volume]]\nname = \"v\"\n\
        backing = \"/b\"\nnbd = \"unix:/s\"\n";

    fn parse(keys: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("larder.toml"), Path::new("/etc/larder"), &format!("[api]\n{keys}\n{REST}"))
    }

    #[test]
    fn there_is_none_unless_it_is_asked_for() {
        let config = Config::parse(Path::new("larder.toml"), Path::new("/"), REST).expect("valid");
        assert_eq!(config.api, None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for keys in [
            "",
            "socket = \"a.sock\"\nsocket_mode = \"600\"\nsocket_group = \"adm\"",
            "listen = \"127.0.0.1:7480\"\ntoken_file = \"token\"",
            "listen = \"[::1]:7480\"\ntoken_file = \"/t\"",
            "listen = \"0.0.0.0:7480\"\ntoken_file = \"token\"\ntls_cert = \"c.pem\"\ntls_key = \"k.pem\"",
        ] {
            let config = parse(keys).expect(keys);
            let again = Config::parse(Path::new("w.toml"), Path::new("/"), &config.to_string()).expect(keys);
            assert_eq!(again, config);
        }
        let api = parse("socket_mode = \"0640\"").expect("valid").api.expect("there");
        let expected = ApiConfig {
            socket: DEFAULT_API_SOCKET.into(),
            socket_mode: 0o640,
            socket_group: None,
            tcp: None,
        };
        assert_eq!(api, expected);
    }

    #[test]
    fn what_would_let_anybody_in_is_refused() {
        for (keys, message, help) in [
            ("listen = \"127.0.0.1:7480\"", "there is no token", "umask 077"),
            ("listen = \"10.0.0.1:7480\"\ntoken_file = \"t\"", "in the clear", "tls_cert and tls_key"),
            ("listen = \"0.0.0.0:7480\"\ntoken_file = \"t\"", "in the clear", "tls_cert and tls_key"),
            ("listen = \"127.0.0.1:0\"\ntoken_file = \"t\"", "no address to listen on", "127.0.0.1:7480"),
            ("listen = \"7480\"\ntoken_file = \"t\"", "no address to listen on", "127.0.0.1:7480"),
            ("listen = \"[::1]:1\"\ntoken_file = \"t\"\ntls_key = \"k\"", "needs tls_cert", "tls_cert.pem"),
            ("token_file = \"t\"", "does not listen there", "listen ="),
            ("socket_mode = \"0060\"", "own user could not connect", "0660"),
            ("socket_mode = \"rw\"", "no mode of a file", "octal"),
            ("socket_mode = \"1777\"", "no mode of a file", "octal"),
            ("socket = \"/run/larder/larder.sock\"", "is the control socket", "another path"),
            ("socket = \"/c\"", "is the cache device", "another path"),
            ("socket = \"/s\"", "is the API's socket", "another path"),
            ("port = 1", "unknown key \"port\" in [api]", "remove the line"),
        ] {
            let error = parse(keys).expect_err(keys);
            let (said, helped) = (error.to_string(), error.help());
            assert!(said.contains(message) && helped.contains(help), "{keys}: {said}\nhelp: {helped}");
        }
    }
}
