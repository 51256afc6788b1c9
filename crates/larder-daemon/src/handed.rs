//! What a daemon that ends leaves to the next one, in the service manager's store of descriptors: listeners, connections, and a memory file that tells how far each
//! connection is.
//!
//! The file holds the length of a JSON document (8 bytes, little-endian), the document, and after it what each client had sent that was not understood yet, one
//! after the other. Connections are told apart by the inode of their socket, which stays the same. Whoever takes the file empties it before he serves anybody: what
//! it says is true once only, and a third process must not find it.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};

use larder_export::ClientState;
use rustix::fs::{MemfdFlags, fstat, memfd_create};
use serde::{Deserialize, Serialize};

/// Names in the store.
pub const LISTENER: &str = "larder-listener";
/// See [`LISTENER`].
pub const CLIENT: &str = "larder-client";
/// See [`LISTENER`].
pub const STATE: &str = "larder-state";
/// All of them.
pub const NAMES: [&str; 3] = [LISTENER, CLIENT, STATE];

/// The format of the file. Another one is not understood.
const FORMAT: u32 = 1;
/// The longest document that is believed: some 16,000 clients.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    clients: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    inode: u64,
    stream_bytes: u64,
    state: ClientState,
}

/// What tells a socket from all others, in whichever process.
///
/// # Errors
/// What the system says.
pub fn inode(socket: impl AsFd) -> io::Result<u64> {
    Ok(fstat(socket)?.st_ino)
}

/// The file that tells of these clients, each with its socket's inode.
///
/// # Errors
/// Where there is no memory.
pub fn write(clients: Vec<(u64, ClientState)>) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("larder-state", MemfdFlags::CLOEXEC)?);
    let mut streams = Vec::with_capacity(clients.len());
    let mut entries = Vec::with_capacity(clients.len());
    for (inode, mut state) in clients {
        let stream = std::mem::take(&mut state.stream);
        entries.push(Entry { inode, stream_bytes: stream.len() as u64, state });
        streams.push(stream);
    }
    let document = serde_json::to_vec(&Document { format: FORMAT, clients: entries })?;
    file.write_all(&(document.len() as u64).to_le_bytes())?;
    file.write_all(&document)?;
    streams.iter().try_for_each(|stream| file.write_all(stream))?;
    Ok(file.into())
}

/// The clients of a file. One that was emptied has none.
///
/// # Errors
/// Where it is not such a file, or one of another format.
pub fn read(file: &OwnedFd) -> io::Result<Vec<(u64, ClientState)>> {
    let mut file = File::from(file.try_clone()?);
    file.rewind()?;
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > DOCUMENT_BYTES_MAX.min(bytes) {
        return Err(invalid("its document is too long"));
    }
    let mut document = vec![0; length as usize];
    file.read_exact(&mut document)?;
    let Document { format, clients } = serde_json::from_slice(&document)?;
    if format != FORMAT {
        return Err(invalid("it is of another format"));
    }
    let mut left = bytes - length - 8;
    let with_stream = |Entry { inode, stream_bytes, state }| {
        left = left.checked_sub(stream_bytes).ok_or_else(|| invalid("it is cut short"))?;
        let mut stream = vec![0; stream_bytes as usize];
        file.read_exact(&mut stream)?;
        Ok((inode, ClientState { stream, ..state }))
    };
    clients.into_iter().map(with_stream).collect()
}

/// Empty the file, in all processes that have it.
///
/// # Errors
/// What the system says: then it must not be used.
pub fn empty(file: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::ftruncate(file, 0)?)
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(export: &str, stream: &[u8]) -> ClientState {
        ClientState {
            export: export.into(),
            identity: "disk".into(),
            bytes: 1 << 30,
            min_block: 512,
            flags: 7,
            structured: true,
            base_allocation: false,
            skip: 3,
            stream: stream.into(),
        }
    }

    #[test]
    fn what_is_written_is_read_until_the_file_is_emptied() {
        let clients = vec![(7, client("a", b"abc")), (9, client("b", b"")), (8, client("c", &[0xff; 1000]))];
        let file = write(clients.clone()).unwrap();
        let other = file.try_clone().unwrap();
        assert_eq!(read(&file).unwrap(), clients);
        assert_eq!(read(&other).unwrap(), clients);
        empty(&file).unwrap();
        assert_eq!(read(&other).unwrap(), []);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let file = write(vec![(7, client("a", b"abc"))]).unwrap();
        let end = File::from(file.try_clone().unwrap()).metadata().unwrap().len();
        rustix::fs::ftruncate(&file, end - 1).unwrap();
        assert!(read(&file).is_err(), "cut short");
        let mut other = File::from(file.try_clone().unwrap());
        other.rewind().unwrap();
        other.write_all(&u64::MAX.to_le_bytes()).unwrap();
        assert!(read(&file).is_err(), "a length that cannot be");
        let newer = File::from(memfd_create("newer", MemfdFlags::CLOEXEC).unwrap());
        let document = br#"{"format":2,"clients":[]}"#;
        (&newer).write_all(&(document.len() as u64).to_le_bytes()).unwrap();
        (&newer).write_all(document).unwrap();
        assert!(read(&newer.into()).unwrap_err().to_string().contains("another format"));
    }
}
