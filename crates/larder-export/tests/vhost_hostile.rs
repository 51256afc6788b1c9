//! Guests and hypervisors that break every rule: their own connection ends, or their own request fails, and nobody else notices.

// Tests may unwrap; the helpers among them too, which clippy does not know for tests.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::disk::Disk;
use support::rogue::{AVAILABLE, DATA, HEADER, MEMORY, NEXT, Rogue, SIZE, STATUS, WRITE};
use support::{Server, pattern};
use vhost::VhostBackend;
use vm_memory::{Bytes, GuestAddress};
use vmm_sys_util::eventfd::EventFd;

const BLOCK: usize = 4096;
const READ: u32 = 0;
const WRITE_OUT: u32 = 1;
const OK: u8 = 0;
const FAILED: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// Makes a queue wrong.
type Breaker = fn(&Rogue);

/// A good guest on another volume of the same reactor.
fn neighbour(server: &Server) -> Disk {
    Disk::connect(&server.vhost_socket(1), 1)
}

/// It is served as ever.
fn is_well(disk: &mut Disk, seed: u64) {
    let data = pattern(seed, 4 * BLOCK);
    disk.write_now(0, &data);
    assert_eq!(disk.read_now(0, data.len()), data);
}

#[test]
fn a_driver_by_hand_is_served() {
    let server = Server::start_on(1, 2);
    let rogue = Rogue::serving(&server.vhost_socket(0));
    rogue.memory.write_slice(&pattern(1, BLOCK), GuestAddress(DATA)).unwrap();
    rogue.request(0, WRITE_OUT, 8);
    rogue.request(3, READ, 8);
    rogue.offer(&[0]);
    rogue.wait_used(1);
    rogue.offer(&[3]);
    rogue.wait_used(2);
    assert_eq!((rogue.status(0), rogue.status(3)), (OK, OK));
    let mut back = vec![0; BLOCK];
    rogue.memory.read_slice(&mut back, GuestAddress(DATA + 3 * 0x1000)).unwrap();
    assert_eq!(back, pattern(1, BLOCK));
    assert!(rogue.call.read().is_ok(), "the guest is told");
    assert_eq!(rogue.frontend.get_vring_base(0).unwrap(), 2);
    drop(rogue);
    server.stop();
}

#[test]
fn broken_chains_end_the_connection_and_nothing_else() {
    let server = Server::start_on(1, 2);
    let mut good = neighbour(&server);
    let break_it: [(&str, Breaker); 9] = [
        ("endless", |rogue| rogue.describe(0, HEADER, 16, NEXT, 0)),
        ("outside the table", |rogue| rogue.describe(0, HEADER, 16, NEXT, 999)),
        ("outside the memory", |rogue| rogue.describe(0, MEMORY, 16, 0, 0)),
        ("around the end of the world", |rogue| rogue.describe(0, u64::MAX - 8, 16, WRITE, 0)),
        ("without a status", |rogue| rogue.describe(0, HEADER, 16, 0, 0)),
        ("empty", |rogue| rogue.describe(0, HEADER, 0, 0, 0)),
        ("an indirect table outside", |rogue| rogue.describe(0, MEMORY - 16, 32, 4, 0)),
        ("nothing but indirect tables", |rogue| {
            rogue.describe(0, HEADER, 16, 4, 0);
            rogue
                .memory
                .write_obj(virtio_queue::desc::split::Descriptor::new(HEADER, 16, 4, 0), GuestAddress(HEADER))
                .unwrap();
        }),
        ("read after write", |rogue| {
            rogue.describe(0, STATUS, 1, WRITE | NEXT, 1);
            rogue.describe(1, HEADER, 16, 0, 0);
        }),
    ];
    for (seed, (what, break_it)) in break_it.into_iter().enumerate() {
        let mut rogue = Rogue::serving(&server.vhost_socket(0));
        break_it(&rogue);
        rogue.offer(&[0]);
        rogue.wait_for_the_end();
        assert_eq!(rogue.used(), 0, "{what}");
        is_well(&mut good, seed as u64);
    }
    for heads in [vec![SIZE], vec![u16::MAX]] {
        let mut rogue = Rogue::serving(&server.vhost_socket(0));
        rogue.offer(&heads);
        rogue.wait_for_the_end();
    }
    let mut rogue = Rogue::serving(&server.vhost_socket(0));
    rogue.set_available(SIZE + 1);
    rogue.wait_for_the_end();
    is_well(&mut good, 99);
    drop(good);
    server.stop();
}

#[test]
fn requests_that_make_no_sense_fail_alone() {
    let server = Server::start_on(1, 2);
    let mut rogue = Rogue::serving(&server.vhost_socket(0));
    let mut given_back = 0;
    let mut ask = |rogue: &Rogue| {
        rogue.offer(&[0]);
        given_back += 1;
        rogue.wait_used(given_back);
        rogue.status(0)
    };
    rogue.request(0, 77, 0);
    assert_eq!(ask(&rogue), UNSUPPORTED);
    rogue.request(0, READ, u64::MAX / 512);
    assert_eq!(ask(&rogue), FAILED);
    rogue.request(0, WRITE_OUT, 1 << 40);
    assert_eq!(ask(&rogue), FAILED);
    // A header of 15 bytes, and a length that is no number of sectors.
    rogue.request(0, READ, 0);
    rogue.describe(0, HEADER, 15, NEXT, 1);
    assert_eq!(ask(&rogue), FAILED);
    rogue.request(0, READ, 0);
    rogue.describe(1, DATA, 100, NEXT | WRITE, 2);
    assert_eq!(ask(&rogue), FAILED);
    // One piece of memory again and again, more than a request may have.
    rogue.request(0, WRITE_OUT, 0);
    (1..SIZE - 1).for_each(|index| rogue.describe(index, 0, MEMORY as u32, NEXT, index + 1));
    rogue.describe(SIZE - 1, STATUS, 1, WRITE, 0);
    assert_ne!(ask(&rogue), 0xff);
    rogue.request(0, READ, 0);
    assert_eq!(ask(&rogue), OK);
    assert!(rogue.is_connected());
    drop(rogue);
    server.stop();
}

/// A descriptor of something that is no event counter.
fn no_counter() -> EventFd {
    let file = File::open("/dev/zero").unwrap();
    // SAFETY: the descriptor was made just now, and is given away.
    unsafe { EventFd::from_raw_fd(file.into_raw_fd()) }
}

#[test]
fn counters_that_are_none_are_refused() {
    let server = Server::start_on(1, 2);
    let mut good = neighbour(&server);
    for call_too in [false, true] {
        let mut rogue = Rogue::connect(&server.vhost_socket(0));
        match call_too {
            false => rogue.kick = no_counter(),
            true => rogue.call = no_counter(),
        }
        let begin = std::panic::AssertUnwindSafe(|| rogue.begin());
        assert!(std::panic::catch_unwind(begin).is_err(), "the queue is not served");
        is_well(&mut good, 5);
    }
    drop(good);
    server.stop();
}

#[test]
fn memory_that_goes_away_ends_the_connection() {
    let server = Server::start_on(1, 2);
    let mut good = neighbour(&server);
    let mut rogue = Rogue::serving(&server.vhost_socket(0));
    rogue.request(0, READ, 0);
    rogue.offer(&[0]);
    rogue.wait_used(1);
    // All but the first pages of the queue is cut off: the data, then all of it. Our own mapping is not touched any more.
    rogue.request(0, WRITE_OUT, 0);
    rogue.offer(&[0]);
    rogue.file.set_len(0).unwrap();
    rogue.kick.write(1).unwrap();
    rogue.wait_for_the_end();
    is_well(&mut good, 6);
    drop(good);
    server.stop();
}

/// Devices cannot write to such memory, and report errors that are not theirs.
#[test]
fn data_pages_that_go_away_are_not_held_against_the_cache() {
    let server = Server::start_on(1, 2);
    let mut good = neighbour(&server);
    is_well(&mut good, 1);
    for _ in 0..100 {
        let mut rogue = Rogue::serving(&server.vhost_socket(0));
        for (head, block) in [(0, 0), (3, 1), (6, 2), (9, 3)] {
            rogue.request(head, READ, 8 * block);
        }
        rogue.offer(&[0, 3]);
        rogue.wait_used(2);
        // The queue stays.
        rogue.file.set_len(DATA).unwrap();
        rogue.offer(&[0, 3, 6, 9]);
        rogue.wait_for_the_end();
        is_well(&mut good, 2);
    }
    let now = server.snapshot(0);
    assert_eq!((now.cache.errors, now.cache_failed), (0, false));
    assert!(now.volumes.iter().all(|volume| volume.backing.errors == 0));
    drop(good);
    server.stop();
}

/// Where some of the memory is gone, zeroes are in place of all of it: they are not the guest's data.
#[test]
fn nothing_is_written_from_memory_of_which_some_is_gone() {
    const WRITES: u64 = 38;
    const PLACE: u64 = 48 << 20;
    let server = Server::start_on(1, 1);
    let socket = server.vhost_socket(0);
    let was = vec![0x11; WRITES as usize * BLOCK];
    let mut disk = Disk::connect(&socket, 1);
    // What is read takes several parts, and so a while.
    (0..40_u64).for_each(|n| disk.write_now(n << 20, &vec![0x33; 1 << 20]));
    for round in 0..20_u64 {
        disk.write_now(PLACE, &was);
        drop(disk);
        let mut victim = Disk::connect(&socket, 1);
        victim.put(0, &[0x22; BLOCK]);
        victim.cut(64 << 10);
        victim.read(0, (round % 8) * (4 << 20), 1 << 20, 6 << 20);
        for n in 0..WRITES {
            victim.write(0, PLACE + n * BLOCK as u64, 0, BLOCK);
            let began = Instant::now();
            while began.elapsed() < Duration::from_micros(30) {
                std::hint::spin_loop();
            }
        }
        drop(victim);
        disk = Disk::connect(&socket, 1);
        let now = disk.read_now(PLACE, was.len());
        assert!(now.iter().all(|byte| *byte == 0x11 || *byte == 0x22), "round {round}");
    }
    drop(disk);
    server.stop();
}

#[test]
fn memory_that_goes_away_is_held_against_nobody_else() {
    let server = Server::start_on(1, 2);
    let mut good = neighbour(&server);
    let done = AtomicBool::new(false);
    // At work all the time: whoever is looked at next could be taken for the one whose memory is gone.
    std::thread::scope(|scope| {
        let at_work = scope.spawn(|| {
            let rounds = (0..).take_while(|_| !done.load(Ordering::Relaxed));
            rounds.inspect(|seed| is_well(&mut good, *seed)).count()
        });
        for _ in 0..300 {
            let mut rogue = Rogue::serving(&server.vhost_socket(0));
            rogue.request(0, READ, 0);
            rogue.offer(&[0]);
            rogue.wait_used(1);
            // Its queue is still being looked at, without having told of anything.
            rogue.file.set_len(0).unwrap();
            std::thread::yield_now();
            rogue.kick.write(1).unwrap();
            rogue.wait_for_the_end();
        }
        done.store(true, Ordering::Relaxed);
        assert!(at_work.join().unwrap() > 10);
    });
    drop(good);
    server.stop();
}

#[test]
fn what_a_killed_daemon_had_in_flight_is_executed_again() {
    let server = Server::start_on(1, 1);
    let mut rogue = Rogue::connect(&server.vhost_socket(0));
    let (told, file) = rogue.remember(None);
    // As another daemon left it: it had taken 0, 3 and 6, and given back 3 alone; the guest has offered 9 since.
    for (place, head) in [0_u16, 3, 6, 9].into_iter().enumerate() {
        rogue.request(head, WRITE_OUT, 8 * place as u64);
        rogue
            .memory
            .write_slice(&pattern(u64::from(head), BLOCK), GuestAddress(DATA + 0x1000 * u64::from(head)))
            .unwrap();
        rogue.memory.write_obj(head, GuestAddress(AVAILABLE + 4 + 2 * place as u64)).unwrap();
    }
    rogue.memory.write_obj(4_u16, GuestAddress(AVAILABLE + 2)).unwrap();
    rogue.memory.store(1_u16, GuestAddress(support::rogue::USED + 2), Ordering::Release).unwrap();
    let record = |at: u64, bytes: &[u8]| std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
    record(8, &1_u16.to_le_bytes());
    record(10, &SIZE.to_le_bytes());
    record(14, &1_u16.to_le_bytes());
    for (head, counter) in [(0_u64, 5_u64), (6, 7)] {
        record(16 + 16 * head, &[1]);
        record(16 + 16 * head + 8, &counter.to_le_bytes());
    }
    rogue.remember(Some((told, file.try_clone().unwrap())));
    rogue.begin();
    rogue.wait_used(4);
    assert_eq!([0, 3, 6, 9].map(|head| rogue.status(head)), [OK, 0xff, OK, OK], "3 is not executed again");
    let backing = server.backing(0);
    for (place, head) in [(0, 0), (2, 6), (3, 9)] {
        assert_eq!(backing[place * BLOCK..(place + 1) * BLOCK], pattern(head, BLOCK), "{head}");
    }
    assert!(backing[BLOCK..2 * BLOCK].iter().all(|byte| *byte == 0));
    let mut marks = [1; 16];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut marks, 16).unwrap();
    assert_eq!(marks[0], 0, "nothing is in flight any more");
    drop(rogue);
    server.stop();
}

#[test]
fn a_guest_hears_of_what_a_killed_daemon_gave_back_without_telling() {
    let server = Server::start_on(1, 1);
    let mut rogue = Rogue::connect_with_event_index(&server.vhost_socket(0));
    rogue.remember(None);
    // All that the guest asked is given back, and nothing new comes: only the call that was never made would wake it.
    rogue.memory.write_obj(1_u16, GuestAddress(AVAILABLE + 2)).unwrap();
    rogue.memory.store(1_u16, GuestAddress(support::rogue::USED + 2), Ordering::Release).unwrap();
    rogue.begin();
    rogue.wait_for_call();
    // Another counter is told too: the old one may have had it.
    rogue.call = EventFd::new(vmm_sys_util::eventfd::EFD_NONBLOCK).unwrap();
    rogue.frontend.set_vring_call(0, &rogue.call).unwrap();
    rogue.wait_for_call();
    drop(rogue);
    server.stop();
}

/// Queues full of random bytes, some of them nearly right.
#[test]
fn garbage_is_survived() {
    let server = Server::start_on(1, 2);
    let mut good = neighbour(&server);
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut rogue = Rogue::serving(&server.vhost_socket(0));
    let mut answered = 0;
    let mut ended = 0;
    for round in 0..600 {
        // Four requests as they should be, of which some descriptors are then made wrong.
        let good_heads = [0_u16, 3, 6, 9];
        for head in good_heads {
            let kind = [READ, WRITE_OUT, 4, 8, 11, 13, 2][random(7) as usize];
            rogue.request(head, kind, random(200_000));
        }
        for _ in 0..random(4) {
            let start =
                [random(MEMORY), HEADER, STATUS, DATA, random(u64::MAX), MEMORY - 8][random(6) as usize];
            let len = [16, 1, 512, 4096, random(1 << 20) as u32, random(1 << 32) as u32][random(6) as usize];
            let next = random(u64::from(SIZE) + 2) as u16;
            rogue.describe(random(SIZE.into()) as u16, start, len, random(8) as u16, next);
        }
        let heads: Vec<u16> = match random(4) {
            0 => (0..1 + random(4)).map(|_| random(u64::from(SIZE) + 1) as u16).collect(),
            _ => good_heads.to_vec(),
        };
        let before = rogue.used();
        rogue.offer(&heads);
        // All are given back or the connection ends, unless a request has written over the rings: then nobody can tell.
        let patience = Instant::now() + Duration::from_millis(50);
        let all_back = loop {
            if rogue.used() == before.wrapping_add(heads.len() as u16) {
                break true;
            }
            if !rogue.is_connected() || Instant::now() > patience {
                break false;
            }
        };
        answered += if all_back { heads.len() } else { 0 };
        if !rogue.is_connected() {
            ended += 1;
            drop(rogue);
            rogue = Rogue::serving(&server.vhost_socket(0));
        }
        if round % 100 == 0 {
            is_well(&mut good, round);
        }
    }
    assert!(answered > 200, "only {answered} were answered: nothing was tested behind the first descriptor");
    assert!(ended > 50, "only {ended} rounds ended the connection: nothing was wrong with them");
    is_well(&mut good, 1);
    drop((rogue, good));
    server.stop();
}
