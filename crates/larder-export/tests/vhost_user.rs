//! The vhost-user devices of a server in this process, driven by the crate `virtio-driver`.

// Tests may unwrap; the helpers among them too, which clippy does not know for tests.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::FileExt;
use support::disk::Disk;
use support::{Server, VOLUME_BYTES, pattern};

const BLOCK: usize = 4096;
const EIO: i32 = -libc::EIO;

#[test]
fn the_device_is_the_volume() {
    let server = Server::start(1);
    let disk = Disk::connect(&server.vhost_socket(0), 1);
    let config = disk.config();
    assert_eq!(u64::from(config.capacity), VOLUME_BYTES / 512);
    assert_eq!((u32::from(config.blk_size), u16::from(config.num_queues), config.writeback), (512, 16, 1));
    drop(disk);
    server.stop();
}

#[test]
fn what_is_written_is_read_and_reaches_the_backing() {
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    let data = pattern(1, 10 * BLOCK);
    disk.write_now(8192, &data);
    assert_eq!(disk.read_now(8192, data.len()), data);
    assert_eq!(disk.read_now(8192 + 512, 1024), data[512..1536], "a part of a block");
    let flush = disk.flush(0);
    assert_eq!(disk.wait(flush), 0);
    assert_eq!(server.backing(0)[8192..8192 + data.len()], data);
    assert_eq!(server.client("v0").read(8192, BLOCK as u32), data[..BLOCK], "the same volume over NBD");
    drop(disk);
    server.stop();
}

#[test]
fn data_in_pieces_goes_where_it_belongs() {
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    let data = pattern(2, 2 * BLOCK);
    disk.write_now(0, &data);
    let ticket = disk.read_pieces(0, 0, &[(1 << 20, 1000), (2 << 20, 3096), (3 << 20, 4096)]);
    assert_eq!(disk.wait(ticket), 0);
    let got = [disk.get(1 << 20, 1000), disk.get(2 << 20, 3096), disk.get(3 << 20, 4096)].concat();
    assert_eq!(got, data);
    drop(disk);
    server.stop();
}

/// Devices write to whole pages of the guest's themselves, wherever those are.
#[test]
fn pages_in_any_order_are_filled() {
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    let data = pattern(3, 16 * BLOCK);
    disk.write_now(0, &data);
    // From the cache, and from the backing, where nothing was written.
    for (offset, expected) in [(0, data), (32 << 20, vec![0; 16 * BLOCK])] {
        // Some are neighbours.
        let pages = [3, 4, 5, 20, 9, 30, 31, 0, 12, 11, 7, 25, 17, 18, 1, 28];
        let pieces = pages.map(|page| ((64 + page) * BLOCK, BLOCK));
        disk.put(64 * BLOCK, &pattern(4, 32 * BLOCK));
        for _ in 0..2 {
            let ticket = disk.read_pieces(0, offset, &pieces);
            assert_eq!(disk.wait(ticket), 0);
            let got: Vec<u8> = pieces.iter().flat_map(|&(place, len)| disk.get(place, len)).collect();
            assert!(got == expected);
        }
        let untouched = (64..96).filter(|page| pieces.iter().all(|piece| piece.0 != page * BLOCK));
        for page in untouched {
            assert!(disk.get(page * BLOCK, BLOCK) == pattern(4, 32 * BLOCK)[(page - 64) * BLOCK..][..BLOCK]);
        }
    }
    drop(disk);
    server.stop();
}

#[test]
fn ranges_are_zeroed_and_discarded() {
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    disk.write_now(0, &pattern(3, 16 * BLOCK));
    for (offset, unmap) in [(0, true), (4 * BLOCK as u64, false)] {
        let ticket = disk.write_zeroes(0, offset, 2 * BLOCK as u64, unmap);
        assert_eq!(disk.wait(ticket), 0);
        assert!(disk.read_now(offset, 2 * BLOCK).iter().all(|byte| *byte == 0));
    }
    assert_eq!(disk.read_now(6 * BLOCK as u64, BLOCK), pattern(3, 16 * BLOCK)[6 * BLOCK..7 * BLOCK]);
    let ticket = disk.discard(0, 8 * BLOCK as u64, 8 * BLOCK as u64);
    assert_eq!(disk.wait(ticket), 0);
    drop(disk);
    server.stop();
}

#[test]
fn what_cannot_be_done_fails_and_the_rest_goes_on() {
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    let beyond = disk.read(0, VOLUME_BYTES, 0, BLOCK);
    assert_eq!(disk.wait(beyond), EIO);
    let odd = disk.write(0, 0, 0, 100);
    assert_eq!(disk.wait(odd), EIO);
    let far = disk.read(0, 1 << 62, 0, 512);
    assert_eq!(disk.wait(far), EIO);
    disk.write_now(VOLUME_BYTES - 512, &[7; 512]);
    assert_eq!(disk.read_now(VOLUME_BYTES - 512, 512), [7; 512]);
    drop(disk);
    server.stop();
}

#[test]
fn many_requests_on_several_queues_are_all_answered() {
    const DEPTH: usize = 40;
    let server = Server::start(2);
    let mut disks = [0, 1].map(|volume| Disk::connect(&server.vhost_socket(volume), 4));
    let data = pattern(4, 4 * DEPTH * BLOCK);
    for disk in &mut disks {
        disk.put(0, &data);
    }
    for (number, disk) in disks.iter_mut().enumerate() {
        let offset = |index: usize| ((index * 7 + number) % 1000 * BLOCK) as u64;
        let writes: Vec<_> =
            (0..4 * DEPTH).map(|index| disk.write(index % 4, offset(index), index * BLOCK, BLOCK)).collect();
        writes.into_iter().for_each(|ticket| assert_eq!(disk.wait(ticket), 0));
        disk.put(0, &vec![0; data.len()]);
        let reads: Vec<_> =
            (0..4 * DEPTH).map(|index| disk.read(index % 4, offset(index), index * BLOCK, BLOCK)).collect();
        reads.into_iter().for_each(|ticket| assert_eq!(disk.wait(ticket), 0));
        assert_eq!(disk.get(0, data.len()), data);
    }
    drop(disks);
    server.stop();
}

/// More than a device may hold at a time: requests that were read already are put back, and taken again.
#[test]
fn more_than_a_device_holds_is_written_all_the_same() {
    const MIB: usize = 1 << 20;
    const COUNT: usize = 40;
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    let data: Vec<_> = (0..8).map(|place| pattern(20 + place, MIB)).collect();
    (0..8).for_each(|place| disk.put(place * MIB, &data[place]));
    let writes: Vec<_> =
        (0..COUNT).map(|index| disk.write(0, (index * MIB) as u64, index % 8 * MIB, MIB)).collect();
    writes.into_iter().for_each(|ticket| assert_eq!(disk.wait(ticket), 0));
    let stored = server.backing(0);
    for (index, written) in stored.chunks(MIB).take(COUNT).enumerate() {
        assert!(written == data[index % 8], "request {index}");
    }
    drop(disk);
    server.stop();
}

#[test]
fn a_hypervisor_may_come_and_go() {
    let server = Server::start(1);
    for round in 0..5 {
        let mut disk = Disk::connect(&server.vhost_socket(0), 2);
        if round > 0 {
            assert_eq!(disk.read_now(0, BLOCK), pattern(round - 1, BLOCK));
        }
        disk.write_now(0, &pattern(round, BLOCK));
        // Some leave while their requests are under way.
        for index in 0..8 {
            disk.read(1, index * BLOCK as u64, 0, BLOCK);
        }
    }
    server.stop();
}

#[test]
fn stopping_gives_back_what_was_taken() {
    const COUNT: usize = 40;
    let server = Server::start(1);
    let mut disk = Disk::connect(&server.vhost_socket(0), 1);
    let data = pattern(5, COUNT * BLOCK);
    disk.put(0, &data);
    let writes: Vec<_> =
        (0..COUNT).map(|index| disk.write(0, (index * BLOCK) as u64, index * BLOCK, BLOCK)).collect();
    assert_eq!(disk.wait(writes[0]), 0);
    // The server ends although the guest is still there.
    server.begin_stop();
    let socket = server.vhost_socket(0);
    let backing = server.backing_file(0);
    server.join();
    assert!(!socket.exists(), "the socket's file is removed");
    let mut stored = vec![0; data.len()];
    backing.read_exact_at(&mut stored, 0).unwrap();
    let ended = disk.ended_so_far(0);
    assert!(ended.iter().all(|(_, result)| *result == 0), "{ended:?}");
    for (ticket, _) in ended {
        let index = writes.iter().position(|write| *write == ticket).unwrap();
        let range = index * BLOCK..(index + 1) * BLOCK;
        assert_eq!(stored[range.clone()], data[range]);
    }
}
