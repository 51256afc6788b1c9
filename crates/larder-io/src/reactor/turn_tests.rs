//! How often a frontend whose guests share memory with it has its turn, while many requests end at once.

use super::run::COMPLETIONS_AT_ONCE;
use super::tests::{LONG, MIB, file};
use super::*;
use crate::frontend::{Event, GuestRequest};
use crate::{Buffer, CachePlan, CacheSpec, Context, Frontend, SharedPool, mailbox};
use larder_engine::{IoError, RequestKind, VolumeId, WritePolicy};
use std::sync::mpsc;
use std::time::Instant;

/// Requests that it is told to have under way.
const REQUESTS: u64 = 64;

/// Reads as many blocks at once, and tells how many replies there were in each of its turns.
struct Sharer {
    replies: usize,
    turns: Vec<usize>,
    left: u64,
    told: mpsc::Sender<Vec<usize>>,
}

impl Frontend for Sharer {
    type Command = ();

    fn start(&mut self, _: &mut Context) {}

    fn command(&mut self, cx: &mut Context, (): ()) {
        for block in 0..REQUESTS {
            let buffer = cx.buffer(4096).unwrap();
            let (volume, kind) = (VolumeId(0), RequestKind::Read);
            let request = GuestRequest { volume, kind, offset: block * 4096, len: 4096, fua: false };
            cx.submit(request, Some(buffer), block);
        }
    }

    fn event(&mut self, _: &mut Context, event: Event) {
        panic!("no socket was given: {event:?}");
    }

    fn reply(&mut self, cx: &mut Context, _: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        result.unwrap();
        buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        self.replies += 1;
        self.left -= 1;
    }

    fn wants_turn(&self) -> bool {
        self.replies > 0
    }

    fn end_of_batch(&mut self, _: &mut Context) {
        if self.replies > 0 {
            self.turns.push(std::mem::take(&mut self.replies));
            if self.left == 0 {
                self.told.send(std::mem::take(&mut self.turns)).unwrap();
            }
        }
    }

    fn tick(&mut self, _: &mut Context, _: Instant) {}
    fn stop(&mut self, _: &mut Context) {}

    fn is_idle(&self) -> bool {
        true
    }
}

/// Replies by turn.
fn turns() -> Vec<usize> {
    // Holes of a file on a disk, which the ring reads: they end all at once.
    let (_file, backing) = file(".", MIB);
    let directory = tempfile::tempdir_in(".").unwrap();
    let spec = CacheSpec { path: directory.path().join("cache.img"), size: MIB, block_bytes: 4096 };
    let cache = CachePlan::check(spec).unwrap().format().unwrap();
    let pool = SharedPool::new(cache.blocks());
    let mut builder = ReactorBuilder::new(ReactorConfig::default(), &cache, pool).unwrap();
    let tenant = builder.add_tenant(256, WritePolicy::WriteThrough).unwrap();
    builder.add_volume(tenant, backing).unwrap();
    let (handle, inbox) = mailbox().unwrap();
    let (told, answer) = mpsc::channel();
    let sharer = Sharer { replies: 0, turns: Vec::new(), left: REQUESTS, told };
    let thread = builder.spawn(sharer, inbox).unwrap();
    handle.frontend(()).unwrap();
    let turns = answer.recv_timeout(LONG).unwrap();
    handle.stop(LONG).unwrap();
    thread.join().unwrap();
    assert_eq!(turns.iter().sum::<usize>() as u64, REQUESTS);
    turns
}

#[test]
fn who_wants_a_turn_has_it_between_the_ends_of_a_batch() {
    let turns = turns();
    assert!(turns.iter().all(|&replies| replies <= COMPLETIONS_AT_ONCE), "{turns:?}");
}
