//! A frontend that echoes what it receives: sockets from adoption to the end.

use super::*;
use crate::frontend::Event;
use crate::{
    Backing, Buffer, CachePlan, CacheSpec, Context, Frontend, Handle, SendList, SharedPool, SocketId, mailbox,
};
use larder_engine::{IoError, WritePolicy};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
const COUNTER: u64 = 2;

enum Order {
    /// Close the connection while a receive on it is in flight.
    Close,
    /// Give the listener away; answer whether that was possible.
    Detach(mpsc::Sender<bool>),
    /// Watch this counter, and add to the other each time; answer whether both are counters.
    Watch(OwnedFd, OwnedFd, mpsc::Sender<bool>),
    /// Close the counter that is watched.
    Unwatch,
}

/// Serves one connection at a time.
struct Echo {
    listener: Option<OwnedFd>,
    door: Option<SocketId>,
    connection: Option<SocketId>,
    /// The one watched, and the one added to.
    counters: Option<(SocketId, SocketId)>,
    told: mpsc::Sender<String>,
    /// Operations started and not ended.
    open: i32,
}

impl Echo {
    fn receive(&mut self, cx: &mut Context) {
        let buffer = cx.buffer(4096).unwrap();
        self.open += 1;
        cx.recv(self.connection.unwrap(), buffer, 0..4096, CONNECTION);
    }

    fn accept(&mut self, cx: &mut Context) {
        self.open += 1;
        cx.accept(self.door.unwrap(), LISTENER);
    }

    fn echo(&mut self, cx: &mut Context, buffer: Buffer, count: usize) {
        let mut list = SendList::new();
        list.push(b"echo:", Some((buffer, 0..count))).unwrap();
        self.open += 1;
        cx.send(self.connection.unwrap(), list, 0, CONNECTION);
        self.receive(cx);
    }
}

impl Frontend for Echo {
    type Command = Order;

    fn start(&mut self, cx: &mut Context) {
        self.door = Some(cx.adopt(self.listener.take().unwrap()).unwrap());
        self.accept(cx);
    }

    fn command(&mut self, cx: &mut Context, order: Order) {
        match order {
            Order::Close => cx.close(self.connection.unwrap()),
            Order::Watch(watched, other, answer) => {
                let counters =
                    cx.adopt_counter(watched).and_then(|watched| Ok((watched, cx.adopt_counter(other)?)));
                answer.send(counters.is_ok()).unwrap();
                if let Ok(counters) = counters {
                    self.counters = Some(counters);
                    self.open += 1;
                    cx.watch(counters.0, COUNTER);
                }
            }
            Order::Unwatch => cx.close(self.counters.unwrap().0),
            Order::Detach(answer) => answer.send(cx.detach(self.door.unwrap()).is_some()).unwrap(),
        }
    }

    fn event(&mut self, cx: &mut Context, event: Event) {
        self.open -= 1;
        match event {
            Event::Accepted { token: LISTENER, result: Ok(fd) } => {
                self.connection = Some(cx.adopt(fd).unwrap());
                self.receive(cx);
                self.accept(cx);
            }
            Event::Received { token: CONNECTION, buffer, result: Ok(count) } if count > 0 => {
                self.echo(cx, buffer, count);
            }
            Event::Received { buffer, result, .. } => {
                cx.recycle(buffer);
                self.told.send(format!("end {}", result.unwrap_or(0))).unwrap();
            }
            Event::Sent { mut list, result, .. } => {
                assert_eq!(result.unwrap(), list.bytes());
                cx.recycle_list(&mut list);
            }
            Event::Accepted { result, .. } => self.told.send(format!("closed {}", result.is_err())).unwrap(),
            Event::Signalled { token: COUNTER, result: Ok(()) } => {
                let (watched, other) = self.counters.unwrap();
                self.open += 2;
                cx.watch(watched, COUNTER);
                cx.signal(other, COUNTER);
            }
            Event::Signalled { .. } => self.told.send("unwatched".into()).unwrap(),
            Event::SignalSent { token } => assert_eq!(token, COUNTER),
            Event::CalledAgain | Event::Commanded { .. } => unreachable!("nothing asks for it"),
        }
    }

    fn reply(&mut self, _: &mut Context, cookie: u64, _: Result<(), IoError>, _: Option<Buffer>) {
        panic!("nothing was asked: {cookie}");
    }

    fn end_of_batch(&mut self, _: &mut Context) {}

    fn tick(&mut self, _: &mut Context, _: Instant) {
        self.told.send("tick".into()).unwrap();
    }

    fn stop(&mut self, cx: &mut Context) {
        let counters = self.counters.into_iter().flat_map(|(watched, other)| [watched, other]);
        self.door.into_iter().chain(self.connection).chain(counters).for_each(|socket| cx.close(socket));
    }

    fn is_idle(&self) -> bool {
        self.open == 0
    }
}

struct Rig {
    directory: tempfile::TempDir,
    handle: Handle<Order>,
    thread: ReactorThread,
    told: mpsc::Receiver<String>,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = |name| directory.path().join(name);
        std::fs::write(path("disk"), [0; 4096]).unwrap();
        let spec = CacheSpec { path: path("cache"), size: 1 << 20, block_bytes: 4096 };
        let cache = CachePlan::check(spec).unwrap().format().unwrap();
        let pool = SharedPool::new(cache.blocks());
        let mut builder = ReactorBuilder::new(ReactorConfig::default(), &cache, pool).unwrap();
        let tenant = builder.add_tenant(1, WritePolicy::ReadOnly).unwrap();
        builder.add_volume(tenant, Backing::open(path("disk").to_str().unwrap()).unwrap()).unwrap();
        let listener = Some(UnixListener::bind(path("socket")).unwrap().into());
        let (tell, told) = mpsc::channel();
        let (handle, inbox) = mailbox().unwrap();
        let echo = Echo { listener, door: None, connection: None, counters: None, told: tell, open: 0 };
        let thread = builder.spawn(echo, inbox).unwrap();
        Self { directory, handle, thread, told }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.directory.path().join("socket")).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    fn hear(&self, what: &str) {
        let deadline = Instant::now() + LONG;
        while self.told.recv_timeout(LONG).unwrap() != what {
            assert!(Instant::now() < deadline, "never heard: {what}");
        }
    }
}

fn say(stream: &mut UnixStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = vec![0; 5 + text.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, format!("echo:{text}").into_bytes());
}

#[test]
fn bytes_go_in_and_out_and_ticks_come() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    say(&mut stream, "hello");
    say(&mut stream, "again");
    rig.hear("tick");
    drop(stream);
    rig.hear("end 0");
    say(&mut rig.connect(), "next");
    rig.handle.stop(LONG).unwrap();
    rig.thread.join().unwrap();
}

#[test]
fn closing_ends_what_is_in_flight() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    say(&mut stream, "x");
    let (answer, answered) = mpsc::channel();
    rig.handle.frontend(Order::Detach(answer)).unwrap();
    assert!(!answered.recv_timeout(LONG).unwrap(), "an accept is in flight on the listener");
    rig.handle.frontend(Order::Close).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    rig.hear("end 0");
    rig.handle.stop(LONG).unwrap();
    rig.hear("closed true");
    rig.thread.join().unwrap();
}

#[test]
fn counters_are_watched_and_added_to_whatever_their_flags() {
    let counter = || std::fs::File::from(OwnedFd::from(crate::sys::eventfd().unwrap()));
    let rig = Rig::new();
    let watch = |watched: &std::fs::File, other: &std::fs::File| {
        let (answer, answered) = mpsc::channel();
        let [watched, other] = [watched, other].map(|file| file.try_clone().unwrap().into());
        rig.handle.frontend(Order::Watch(watched, other, answer)).unwrap();
        answered.recv_timeout(LONG).unwrap()
    };
    assert!(!watch(&std::fs::File::open("/dev/zero").unwrap(), &counter()), "no counter");
    for nonblocking in [false, true] {
        let (mut ours, mut theirs) = (counter(), counter());
        if nonblocking {
            crate::sys::set_nonblocking_for_test(&ours);
        }
        assert!(watch(&ours, &theirs));
        for _ in 0..3 {
            ours.write_all(&5_u64.to_ne_bytes()).unwrap();
            let mut count = [0; 8];
            theirs.read_exact(&mut count).unwrap();
            assert_eq!(u64::from_ne_bytes(count), 1);
        }
        rig.handle.frontend(Order::Unwatch).unwrap();
        rig.hear("unwatched");
    }
    rig.handle.stop(LONG).unwrap();
    rig.thread.join().unwrap();
}

#[test]
fn a_client_that_stays_does_not_keep_a_reactor_from_ending() {
    let rig = Rig::new();
    let mut stream = rig.connect();
    say(&mut stream, "x");
    rig.handle.stop(LONG).unwrap();
    rig.thread.join().unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
}
