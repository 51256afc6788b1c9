//! A runner against servers that answer late, early, or not at all, that go, and that come back as somebody else.

use super::*;
use crate::command::test_command;
use crate::lane::Operation;
use crate::loan::Place;
use crate::nbd_backing::fake_server::{FLUSH, FLUSHES, FakeServer, Greeting, Peer, READ, WRITE};
use crate::nbd_backing::outage::BACKOFF_MIN;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
const SECOND_NS: u64 = 1_000_000_000;

/// A runner on a ring of its own.
struct Bench {
    lane: Lane,
    runner: NbdRunner,
    ended: VecDeque<Ended>,
    now_ns: u64,
    /// What commands read from and write to.
    memory: Vec<Box<[u8]>>,
}

impl Bench {
    fn new(server: &FakeServer) -> Self {
        let mut lane = Lane::new().unwrap();
        let waker = Arc::new(Waker::new().unwrap());
        let backing = NbdBacking::connect(&server.uri()).unwrap();
        let runner = NbdRunner::new(backing, 1, &mut lane, &waker).unwrap();
        Self { lane, runner, ended: VecDeque::new(), now_ns: 0, memory: Vec::new() }
    }

    fn start(&mut self, kind: CommandKind, offset: u64, data: &[u8]) {
        let mut memory: Box<[u8]> = data.into();
        let command = Command {
            memory: Place::One(memory.as_mut_ptr()),
            ..test_command(kind, offset, data.len() as u64)
        };
        self.memory.push(memory);
        self.ended.extend(self.runner.start(command));
    }

    fn turn(&mut self) {
        let Self { lane, runner, ended, now_ns, .. } = self;
        runner.poll(*now_ns, lane, ended);
        lane.enter(Some(Duration::from_millis(5))).unwrap();
        let mut completions = Vec::new();
        lane.ring.collect(&mut completions, 64);
        for completion in completions {
            match lane.finish(completion.key) {
                Some(Operation::NbdSend { socket, batch, .. }) => {
                    lane.end(socket);
                    runner.sent(batch, completion.result, lane, ended);
                }
                Some(Operation::NbdReceive { socket, input, .. }) => {
                    lane.end(socket);
                    runner.received(input, completion.result, lane, ended);
                }
                _ => {}
            }
        }
    }

    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + LONG;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "what the test waits for does not come");
            self.turn();
        }
    }

    /// Wait for something that the server tells.
    fn hear<T>(&mut self, told: &mpsc::Receiver<T>) -> T {
        let mut heard = None;
        self.until(|_| {
            heard = told.try_recv().ok();
            heard.is_some()
        });
        heard.unwrap()
    }

    /// The next end.
    fn end(&mut self) -> (CommandKind, Result<(), IoError>) {
        self.until(|bench| !bench.ended.is_empty());
        let Ended { kind, result, .. } = self.ended.pop_front().unwrap();
        (kind, result)
    }

    fn is_down(&self) -> bool {
        matches!(self.runner.link, Link::Down(_))
    }
}

impl Drop for Bench {
    /// The kernel lets go of all memory first.
    fn drop(&mut self) {
        self.runner.closing();
        self.lane.close_all();
        let deadline = Instant::now() + LONG;
        while self.lane.in_flight() > 0 && Instant::now() < deadline {
            self.turn();
        }
    }
}

/// A server with the same greeting for all, that can be told to go on and tells what it did.
fn server<T: Send + 'static>(
    greeting: Greeting,
    serve: impl Fn(&mut Peer, usize, &mpsc::Receiver<()>, &mpsc::Sender<T>) -> io::Result<()>
    + Send
    + Sync
    + 'static,
) -> (FakeServer, mpsc::Sender<()>, mpsc::Receiver<T>) {
    let ((go, goes), (tell, told)) = (mpsc::channel(), mpsc::channel());
    let ends = Mutex::new((goes, tell));
    let serve = move |peer: &mut Peer, number| {
        let ends = ends.lock().unwrap();
        serve(peer, number, &ends.0, &ends.1)
    };
    (FakeServer::new(move |_| greeting, serve), go, told)
}

const WRITTEN: (CommandKind, Result<(), IoError>) = (CommandKind::Write, Ok(()));
const FLUSHED: (CommandKind, Result<(), IoError>) = (CommandKind::Flush, Ok(()));
const NOT_FLUSHED: (CommandKind, Result<(), IoError>) = (CommandKind::Flush, Err(IoError::Io));
const NOT_WRITTEN: (CommandKind, Result<(), IoError>) = (CommandKind::Write, Err(IoError::Io));
const READ_OK: (CommandKind, Result<(), IoError>) = (CommandKind::Read, Ok(()));

#[test]
fn a_flush_does_not_cover_a_write_that_ended_while_it_ran() {
    let (server, go, told) = server(Greeting::default(), |peer, number, goes, tell| {
        if number > 1 {
            return peer.serve();
        }
        let flush = peer.request()?;
        assert_eq!(flush.kind, FLUSH);
        tell.send(()).unwrap();
        let write = peer.request()?;
        peer.payload(write.len)?;
        peer.answer(write, &[])?;
        goes.recv().unwrap();
        peer.answer(flush, &[])?;
        goes.recv().unwrap();
        Ok(())
    });
    let mut bench = Bench::new(&server);
    bench.start(CommandKind::Flush, 0, &[]);
    bench.hear(&told);
    bench.start(CommandKind::Write, 0, &[1; 4096]);
    assert_eq!(bench.end(), WRITTEN);
    go.send(()).unwrap();
    assert_eq!(bench.end(), FLUSHED);
    assert!(!bench.runner.take_distrust());
    go.send(()).unwrap();
    bench.until(|bench| bench.is_down());
    assert!(bench.runner.take_distrust() && !bench.runner.take_distrust());
    bench.start(CommandKind::Flush, 0, &[]);
    assert_eq!(bench.end(), NOT_FLUSHED, "the server may have lost the write");
    bench.until(|bench| !bench.is_down());
    bench.start(CommandKind::Flush, 0, &[]);
    assert_eq!(bench.end(), FLUSHED);
}

#[test]
fn what_is_flushed_is_not_doubted() {
    let (server, go, _told) = server::<()>(Greeting::default(), |peer, number, goes, _| {
        if number > 1 {
            return peer.serve();
        }
        for _ in 0..2 {
            let asked = peer.request()?;
            peer.payload(asked.len)?;
            peer.answer(asked, &[])?;
        }
        goes.recv().unwrap();
        Ok(())
    });
    let mut bench = Bench::new(&server);
    bench.start(CommandKind::Write, 0, &[1; 4096]);
    assert_eq!(bench.end(), WRITTEN);
    bench.start(CommandKind::Flush, 0, &[]);
    assert_eq!(bench.end(), FLUSHED);
    go.send(()).unwrap();
    bench.until(|bench| bench.is_down());
    assert!(!bench.runner.take_distrust());
    bench.until(|bench| !bench.is_down());
    bench.start(CommandKind::Flush, 0, &[]);
    assert_eq!(bench.end(), FLUSHED);
}

#[test]
fn a_write_that_broke_off_raises_doubt_at_the_next_break_and_fails_no_flush() {
    let (server, go, told) = server(Greeting::default(), |peer, number, goes, tell| {
        if number > 2 {
            return peer.serve();
        }
        tell.send(()).unwrap();
        if number == 1 {
            let asked = peer.request()?;
            peer.payload(asked.len)?;
        }
        goes.recv().unwrap();
        Ok(())
    });
    let mut bench = Bench::new(&server);
    bench.hear(&told);
    bench.start(CommandKind::Write, 0, &[1; 4096]);
    go.send(()).unwrap();
    assert_eq!(bench.end(), NOT_WRITTEN);
    bench.hear(&told);
    assert!(!bench.runner.take_distrust(), "the engine drops what a failed write touched");
    go.send(()).unwrap();
    bench.until(|bench| bench.runner.take_distrust());
    bench.start(CommandKind::Flush, 0, &[]);
    assert_eq!(bench.end(), FLUSHED);
}

/// A server that answers a large write first; then it either takes the payload, and tells whether that was what was written, or goes.
fn answers_early(takes: bool) -> (FakeServer, mpsc::Sender<()>, mpsc::Receiver<bool>) {
    server(Greeting::default(), move |peer, _, goes, tell| {
        let write = peer.request()?;
        assert_eq!(write.kind, WRITE);
        peer.answer(write, &[])?;
        goes.recv().unwrap();
        if takes {
            let data = peer.payload(write.len)?;
            tell.send(data.iter().all(|&byte| byte == 7)).unwrap();
        }
        goes.recv().unwrap();
        Ok(())
    })
}

#[test]
fn memory_that_is_being_sent_is_not_given_back() {
    let (server, go, told) = answers_early(true);
    let mut bench = Bench::new(&server);
    bench.start(CommandKind::Write, 0, &[7; 16 << 20]);
    bench.until(|bench| !bench.runner.parked.is_empty() || !bench.ended.is_empty());
    assert!(bench.ended.is_empty(), "the payload is still on its way");
    go.send(()).unwrap();
    assert!(bench.hear(&told));
    assert_eq!(bench.end(), WRITTEN);
    assert!(bench.runner.parked.is_empty());
    go.send(()).unwrap();
}

#[test]
fn an_early_answer_counts_for_nothing_where_the_payload_was_not_taken() {
    let (server, go, _told) = answers_early(false);
    let mut bench = Bench::new(&server);
    bench.start(CommandKind::Write, 0, &[7; 16 << 20]);
    bench.until(|bench| !bench.runner.parked.is_empty() || !bench.ended.is_empty());
    assert!(bench.ended.is_empty());
    go.send(()).unwrap();
    go.send(()).unwrap();
    assert_eq!(bench.end(), NOT_WRITTEN);
    assert!(bench.runner.parked.is_empty());
}

#[test]
fn a_server_that_greets_and_hangs_up_is_tried_ever_more_rarely() {
    let server = FakeServer::new(|_| Greeting::default(), |_, _| Ok(()));
    let mut bench = Bench::new(&server);
    bench.until(|bench| {
        let pause = bench.runner.outage.pause();
        if let Link::Down(Some(helper)) = &bench.runner.link {
            assert_eq!(helper.pause, pause);
        }
        pause >= BACKOFF_MIN * 8
    });
    assert!(server.connections() >= 4, "each lost connection adds to the pause");
}

#[test]
fn a_helper_that_could_not_be_started_is_started_later() {
    let (server, go, _told) = server::<()>(Greeting::default(), |peer, number, goes, _| {
        if number > 1 {
            return peer.serve();
        }
        goes.recv().unwrap();
        Ok(())
    });
    let mut bench = Bench::new(&server);
    bench.runner.spawn = |_| Err(io::ErrorKind::WouldBlock.into());
    go.send(()).unwrap();
    bench.until(|bench| bench.is_down());
    bench.start(CommandKind::Read, 0, &[1; 4096]);
    assert_eq!(bench.end(), (CommandKind::Read, Err(IoError::Io)), "nobody connects, so it fails");
    assert_eq!(server.connections(), 1);
    bench.runner.spawn = spawn;
    bench.until(|bench| !bench.is_down());
    bench.start(CommandKind::Read, 0, &[1; 4096]);
    assert_eq!(bench.end(), READ_OK);
    assert!(bench.memory[1].iter().all(|&byte| byte == 0));
}

#[test]
fn silence_is_noticed_and_so_is_its_end() {
    let (server, go, told) = server(Greeting::default(), |peer, _, goes, tell| {
        let asked = peer.request()?;
        assert_eq!(asked.kind, READ);
        tell.send(()).unwrap();
        goes.recv().unwrap();
        peer.answer(asked, &vec![0; asked.len as usize])?;
        peer.serve()
    });
    let mut bench = Bench::new(&server);
    bench.start(CommandKind::Read, 0, &[1; 4096]);
    bench.hear(&told);
    bench.now_ns = 9 * SECOND_NS;
    bench.turn();
    assert!(!bench.runner.silence.is_told());
    bench.now_ns = 11 * SECOND_NS;
    bench.turn();
    assert!(bench.runner.silence.is_told());
    go.send(()).unwrap();
    assert_eq!(bench.end(), READ_OK);
    bench.now_ns = 12 * SECOND_NS;
    bench.turn();
    assert!(!bench.runner.silence.is_told());
}

#[test]
fn what_waited_is_asked_in_the_way_that_the_new_server_takes() {
    let (go, goes) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let (goes, tell) = (Mutex::new(goes), Mutex::new(tell));
    let greet = move |number| match number {
        1 => Greeting::default(),
        _ => {
            goes.lock().unwrap().recv().unwrap();
            Greeting { flags: FLUSHES & !0b100, block_max: 64 << 10, ..Greeting::default() }
        }
    };
    let server = FakeServer::new(greet, move |peer, number| {
        if number == 1 {
            return Ok(());
        }
        loop {
            let asked = peer.request()?;
            peer.payload(asked.len)?;
            tell.lock().unwrap().send((asked.kind, asked.offset, asked.len)).unwrap();
            peer.answer(asked, &[])?;
        }
    });
    let mut bench = Bench::new(&server);
    bench.until(|bench| bench.is_down());
    bench.start(CommandKind::Write, 4096, &[1; 128 << 10]);
    bench.start(CommandKind::Flush, 0, &[]);
    go.send(()).unwrap();
    assert_eq!(bench.end(), FLUSHED, "the new server has nothing to flush");
    assert_eq!(bench.end(), WRITTEN);
    let pieces: Vec<_> = told.try_iter().collect();
    assert_eq!(pieces, [(WRITE, 4096, 64 << 10), (WRITE, 4096 + (64 << 10), 64 << 10)]);
}
