//! A small HTTP client: one request on a connection of its own. It speaks HTTP/1.0, so that answers end with the connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::LIMIT;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Reply {
    /// The body, which is JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Ask on a unix socket.
pub fn ask_unix(socket: &Path, method: &str, path: &str, body: Option<&Value>) -> Reply {
    let stream = UnixStream::connect(socket).expect("the API's socket");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    ask(stream, method, path, None, body)
}

/// Ask over TCP, with a token or without one.
pub fn ask_tcp(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Reply {
    let stream = TcpStream::connect(address).expect("the API's address");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    ask(stream, method, path, token, body)
}

fn ask(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Reply {
    let mut request = format!("{method} {path} HTTP/1.0\r\nHost: larder\r\n");
    if let Some(token) = token {
        request += &format!("Authorization: Bearer {token}\r\n");
    }
    let body = body.map(Value::to_string);
    if let Some(body) = &body {
        request += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    request += &format!("\r\n{}", body.unwrap_or_default());
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Reply {
        status: status.unwrap_or_else(|| panic!("no status: {head}")),
        head: head.into(),
        body: body.into(),
    }
}
