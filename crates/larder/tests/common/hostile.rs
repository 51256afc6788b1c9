//! A guest that breaks every rule of its disk, by hand: connections that end, and the next at once.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress};

use super::pattern::random;
use super::setup::MIB;
use super::traffic::Traffic;

/// What the driver waits at most.
const PATIENCE: Duration = super::LIMIT;

#[allow(clippy::unwrap_used, reason = "a test's helper of another crate")]
#[path = "../../../larder-export/tests/support/rogue.rs"]
mod rogue;

use rogue::{AVAILABLE, DATA, HEADER, MEMORY, NEXT, Rogue, SIZE, STATUS, TABLE, USED, WRITE};

/// Bytes of the disk that it is for.
pub const DISK_BYTES: u64 = 48 * MIB;

const INDIRECT: u16 = 4;
const READ: u32 = 0;
const WRITE_OUT: u32 = 1;
/// Beyond the disk's last, too.
const SECTORS: u64 = DISK_BYTES / 512 + 10_000;

/// What was done to the daemon.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// How often each of [`ATTACKS`] was tried.
    attacks: [u64; ATTACKS.len()],
    /// Requests that were given back all the same.
    answered: u64,
}

impl Done {
    /// # Panics
    /// Where it was not much.
    pub fn was_hostile(&self) {
        for ((name, _), times) in ATTACKS.iter().zip(self.attacks) {
            assert!(times >= 10, "{name}: {times} times");
        }
        assert!(self.answered >= 500, "only {} requests were answered", self.answered);
    }
}

/// One way to break the rules: how many requests were given back on the way.
type Attack = fn(&Path, &mut u64) -> u64;

const ATTACKS: [(&str, Attack); 9] = [
    ("a broken chain", broken_chain),
    ("an index that jumps", jumping_index),
    ("a queue outside the memory", queue_elsewhere),
    ("memory that is cut short", memory_cut_short),
    ("random bytes in the rings", garbage),
    ("requests that are nearly right", nearly_right),
    ("requests that change while they are executed", changing),
    ("requests as large as can be", as_large_as_can_be),
    ("a driver that is gone at once", gone_at_once),
];

/// Attacks, one after the other, until it is stopped.
pub struct Hostile {
    traffic: Traffic,
    done: Arc<Mutex<Done>>,
}

impl Hostile {
    /// Begin with a disk's socket.
    pub fn start(socket: &Path) -> Self {
        let done = Arc::new(Mutex::new(Done::default()));
        let (socket, told) = (socket.to_owned(), Arc::clone(&done));
        let (mut state, mut round) = (11, 0);
        let traffic = Traffic::start(move || {
            let index = round % ATTACKS.len();
            let answered = ATTACKS[index].1(&socket, &mut state);
            round += 1;
            let mut done = told.lock().expect("nobody panics with it");
            done.attacks[index] += 1;
            done.answered += answered;
        });
        Self { traffic, done }
    }

    /// It must still find somebody to attack; stop it.
    pub fn finish(self) -> Done {
        self.traffic.finish();
        *self.done.lock().expect("nobody panics with it")
    }
}

/// A driver that keeps the rules finds the disk as it is for everybody.
///
/// # Panics
/// Where it does not read what it wrote.
pub fn is_served_again(socket: &Path) {
    let rogue = Rogue::serving(socket);
    let data: Vec<u8> = (0..4096_u32).map(|at| (at % 251) as u8).collect();
    write(&rogue, DATA, &data);
    rogue.request(0, WRITE_OUT, 800);
    rogue.request(3, READ, 800);
    for (given_back, head) in [(1, 0), (2, 3)] {
        rogue.offer(&[head]);
        rogue.wait_used(given_back);
        assert_eq!(rogue.status(head), 0);
    }
    let mut back = vec![0; data.len()];
    rogue.memory.read_slice(&mut back, GuestAddress(DATA + 3 * 0x1000)).expect("its own memory");
    assert_eq!(back, data);
}

fn write(rogue: &Rogue, place: u64, bytes: &[u8]) {
    rogue.memory.write_slice(bytes, GuestAddress(place)).expect("its own memory");
}

fn random_bytes(state: &mut u64, len: u64) -> Vec<u8> {
    (0..len).map(|_| random(state, 256) as u8).collect()
}

/// Four requests as they should be, on sectors of the disk and some behind it.
fn four_good(rogue: &Rogue, state: &mut u64) -> [u16; 4] {
    let heads = [0, 3, 6, 9];
    for head in heads {
        let kind = [READ, WRITE_OUT, WRITE_OUT, 4, 8, 11, 13, 2][random(state, 8) as usize];
        rogue.request(head, kind, random(state, SECTORS));
    }
    heads
}

fn broken_chain(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::serving(socket);
    let inner = |row: Descriptor| rogue.memory.write_obj(row, GuestAddress(HEADER)).expect("its own memory");
    match random(state, 11) {
        0 => rogue.describe(0, HEADER, 16, NEXT, 0),
        1 => rogue.describe(0, HEADER, 16, NEXT, 999),
        2 => rogue.describe(0, MEMORY, 16, 0, 0),
        3 => rogue.describe(0, u64::MAX - 8, 16, WRITE, 0),
        4 => rogue.describe(0, HEADER, 16, 0, 0),
        5 => rogue.describe(0, HEADER, 0, 0, 0),
        6 => rogue.describe(0, MEMORY - 16, 32, INDIRECT, 0),
        7 => rogue.describe(0, HEADER, 16, INDIRECT | NEXT, 1),
        8 => {
            // A table that is in itself.
            inner(Descriptor::new(HEADER, 16, INDIRECT, 0));
            rogue.describe(0, HEADER, 16, INDIRECT, 0);
        }
        9 => {
            // A loop that is in a table.
            inner(Descriptor::new(DATA, 512, NEXT, 0));
            rogue.describe(0, HEADER, 16, INDIRECT, 0);
        }
        _ => {
            // What is to be written comes first.
            rogue.describe(0, STATUS, 1, WRITE | NEXT, 1);
            rogue.describe(1, HEADER, 16, 0, 0);
        }
    }
    rogue.offer(&[0]);
    rogue.wait_for_the_end();
    assert_eq!(rogue.used(), 0, "a broken chain is not given back");
    0
}

fn jumping_index(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::serving(socket);
    let heads = four_good(&rogue, state);
    rogue.offer(&heads[..1]);
    rogue.wait_used(1);
    rogue.set_available(2 + SIZE + random(state, 0xff00 - u64::from(SIZE)) as u16);
    rogue.wait_for_the_end();
    1
}

fn queue_elsewhere(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::connect(socket);
    let mut places = [TABLE, AVAILABLE, USED].map(|part| rogue.address(part));
    let elsewhere = [rogue.address(0) + MEMORY - 8, rogue.address(0) + MEMORY, 0, u64::MAX - 16];
    places[random(state, 3) as usize] = elsewhere[random(state, 4) as usize];
    assert!(rogue.begin_at(places).is_err(), "a queue is outside the memory: {places:x?}");
    0
}

fn memory_cut_short(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::serving(socket);
    let heads = four_good(&rogue, state);
    rogue.offer(&heads);
    // Our own mapping is not touched any more from here on.
    rogue.file.set_len(random(state, 2) * random(state, MEMORY)).expect("a shorter file");
    let deadline = std::time::Instant::now() + Duration::from_millis(random(state, 20));
    while std::time::Instant::now() < deadline && rogue.is_connected() {
        // A daemon that is done with the connection does not listen.
        let _ = rogue.kick.write(1);
    }
    0
}

fn garbage(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::serving(socket);
    for _ in 0..8 {
        for place in [TABLE, AVAILABLE + 4, HEADER] {
            write(&rogue, place, &random_bytes(state, 256));
        }
        let index = rogue.used().wrapping_add(random(state, u64::from(SIZE)) as u16);
        rogue.set_available(index);
        if !rogue.is_connected() {
            break;
        }
    }
    0
}

fn nearly_right(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::serving(socket);
    while rogue.is_connected() && random(state, 30) > 0 {
        let good = four_good(&rogue, state);
        for _ in 0..random(state, 3) {
            let start = [random(state, MEMORY), HEADER, STATUS, DATA, random(state, u64::MAX), MEMORY - 8];
            let len = [16, 1, 512, 4096, random(state, 1 << 20) as u32, random(state, 1 << 32) as u32];
            let (start, len) = (start[random(state, 6) as usize], len[random(state, 6) as usize]);
            let (index, next) =
                (random(state, SIZE.into()) as u16, random(state, u64::from(SIZE) + 2) as u16);
            rogue.describe(index, start, len, random(state, 8) as u16, next);
        }
        match random(state, 4) {
            0 => rogue.offer(&[random(state, u64::from(SIZE) + 1) as u16, 0]),
            _ => rogue.offer(&good),
        }
    }
    rogue.used().into()
}

fn changing(socket: &Path, state: &mut u64) -> u64 {
    let rogue = Rogue::serving(socket);
    let mut offered = 0;
    for _ in 0..10 {
        let heads = four_good(&rogue, state);
        rogue.offer(&heads);
        offered += heads.len() as u16;
        let mut left = 2000;
        while rogue.used() != offered && left > 0 {
            left -= 1;
            match random(state, 3) {
                0 => write(&rogue, TABLE + random(state, 192), &random_bytes(state, 8)),
                1 => write(&rogue, HEADER + random(state, 160), &random_bytes(state, 8)),
                _ => write(&rogue, DATA + random(state, 0xc000), &random_bytes(state, 8)),
            }
        }
        if rogue.used() != offered {
            break;
        }
    }
    rogue.used().into()
}

fn as_large_as_can_be(socket: &Path, state: &mut u64) -> u64 {
    let rogue = Rogue::serving(socket);
    let kind = [READ, WRITE_OUT][random(state, 2) as usize];
    let (writes, pieces) = (if kind == READ { WRITE } else { 0 }, 2 + random(state, 4) as u16);
    rogue.header(HEADER, kind, random(state, SECTORS));
    rogue.describe(0, HEADER, 16, NEXT, 1);
    // One piece of memory again and again, the rings with it where it is read.
    let (start, len) = if kind == READ { (DATA, MEMORY - DATA) } else { (0, MEMORY) };
    (1..=pieces).for_each(|index| rogue.describe(index, start, len as u32, NEXT | writes, index + 1));
    rogue.describe(pieces + 1, STATUS, 1, WRITE, 0);
    rogue.offer(&[0]);
    rogue.wait_used(1);
    1
}

fn gone_at_once(socket: &Path, state: &mut u64) -> u64 {
    let mut rogue = Rogue::connect(socket);
    if random(state, 2) == 0 {
        // With a record of what is in flight that says anything.
        let (told, file) = rogue.remember(None);
        let record = random_bytes(state, 200);
        std::os::unix::fs::FileExt::write_all_at(&file, &record, 8).expect("memory that was given to us");
        rogue.remember(Some((told, File::try_clone(&file).expect("one more descriptor"))));
        four_good(&rogue, state);
        let places = [TABLE, AVAILABLE, USED].map(|part| rogue.address(part));
        // Heads of the record's may be anything.
        let _ = rogue.begin_at(places);
        return 0;
    }
    rogue.begin();
    let heads = four_good(&rogue, state);
    rogue.offer(&heads);
    0
}
