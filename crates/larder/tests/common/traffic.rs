//! Clients that work in the background of a test, and verify whatever they read.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use super::nbd::Client;
use super::pattern::{first_difference, random, stamp};
use super::setup::BLOCK;
use super::wait_for;

/// A thread that repeats a step until it is told to stop.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    /// Repeat `step`. It fails by panicking.
    pub fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (told, count) = (stop.clone(), rounds.clone());
        let thread = thread::spawn(move || {
            while !told.load(SeqCst) {
                step();
                count.fetch_add(1, SeqCst);
            }
        });
        Self { stop, rounds, thread: Some(thread) }
    }

    /// A client that writes random blocks of `blocks` of its own on an export and reads others back. All of them must be
    /// zeroes at the start.
    pub fn verified(socket: &Path, export: &str, blocks: u64) -> Self {
        let mut client = Client::connect(socket, export);
        let mut generations = vec![0; blocks as usize];
        let mut state = 0;
        Self::start(move || {
            let block = random(&mut state, blocks);
            generations[block as usize] += 1;
            let data = stamp(9, generations[block as usize], block * BLOCK, BLOCK);
            client.write(block * BLOCK, &data).expect("a write of the undisturbed client");
            verify(&mut client, &generations, random(&mut state, blocks));
        })
    }

    /// Wait until it has done some more.
    pub fn goes_on(&self) {
        let before = self.rounds.load(SeqCst);
        wait_for("the traffic goes on", || {
            assert!(
                self.thread.as_ref().is_some_and(|thread| !thread.is_finished()),
                "the traffic has failed"
            );
            let now = self.rounds.load(SeqCst);
            if now >= before + 10 { Ok(()) } else { Err(format!("{now} rounds after {before}")) }
        });
    }

    /// It must still be at work; stop it.
    pub fn finish(mut self) {
        self.goes_on();
        self.stop.store(true, SeqCst);
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.join();
    }
}

fn verify(client: &mut Client, generations: &[u64], block: u64) {
    let expected = match generations[block as usize] {
        0 => vec![0; BLOCK as usize],
        generation => stamp(9, generation, block * BLOCK, BLOCK),
    };
    let found = client.read(block * BLOCK, BLOCK as u32).expect("a read of the undisturbed client");
    assert_eq!(first_difference(&found, &expected), None, "block {block}");
}
