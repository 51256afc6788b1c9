//! SIGTERM under load: a clean end, no sockets left, and every acknowledged write on the backing.

use std::fs;
use std::path::Path;
use std::thread;

use crate::common::nbd::Client;
use crate::common::pattern::stamp;
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::wait_for;

const BLOCKS: u64 = 64;

/// Write generation after generation to a client's own blocks until the server goes away; the last one acknowledged for each block.
fn write_until_the_end(socket: &Path, export: &str, first: u64) -> Vec<u64> {
    let mut client = Client::connect(socket, export);
    let mut acknowledged = vec![0; BLOCKS as usize];
    for round in 0.. {
        let (block, generation) = (round % BLOCKS, round / BLOCKS + 1);
        let offset = (first + block) * BLOCK;
        if client.write(offset, &stamp(8, generation, offset, BLOCK)).is_err() {
            break;
        }
        acknowledged[block as usize] = generation;
    }
    acknowledged
}

/// Each block holds its last acknowledged generation, or the one after it, whose write was under way.
fn assert_complete(image: &[u8], first: u64, acknowledged: &[u64]) {
    for (block, &generation) in (first..).zip(acknowledged) {
        let offset = block * BLOCK;
        let found = &image[offset as usize..(offset + BLOCK) as usize];
        let held = (generation..=generation + 1).find(|&held| match held {
            0 => found.iter().all(|&byte| byte == 0),
            _ => found == stamp(8, held, offset, BLOCK),
        });
        assert!(held.is_some(), "block {block} does not hold its generation {generation} or the next one");
    }
}

#[test]
fn sigterm_under_load_loses_nothing() {
    let setup = Setup::new("1MiB").tenant("a", "write_policy = \"wt\"").volume("a0", 4 * MIB);
    let larder = setup.tenant("b", "write_policy = \"ro\"").volume("b0", 4 * MIB).start();
    let clients: Vec<_> = [("a0", 0), ("a0", BLOCKS), ("b0", 0), ("b0", BLOCKS)]
        .into_iter()
        .map(|(volume, first)| {
            let socket = larder.socket(volume);
            (volume, first, thread::spawn(move || write_until_the_end(&socket, volume, first)))
        })
        .collect();
    wait_for("the clients are at work", || {
        let written = ["a", "b"].map(|name| larder.tenant(name)["backing_writes"].as_u64().unwrap_or(0));
        if written.iter().all(|&blocks| blocks > 500) {
            Ok(())
        } else {
            Err(format!("{written:?} blocks written"))
        }
    });

    let sockets = [larder.socket("a0"), larder.socket("b0"), larder.control_socket()];
    assert!(sockets.iter().all(|socket| socket.exists()));
    let setup = larder.stop();
    assert_eq!(sockets.iter().find(|socket| socket.exists()), None, "a socket is left");
    for (volume, first, client) in clients {
        let acknowledged = client.join().expect("a client's record");
        assert!(acknowledged.iter().any(|&generation| generation > 0), "{volume}: nothing was written");
        assert_complete(&fs::read(setup.backing(volume)).expect("the backing"), first, &acknowledged);
    }
}
