//! Backings behind an NBD server: served, failing, gone and back.

use std::fs;
use std::path::Path;

use crate::common::daemon::{Larder, count};
use crate::common::nbd::{Client, Failure};
use crate::common::nbdkit::nbdkit;
use crate::common::pattern::{first_difference, stamp, write_file};
use crate::common::process::{program, run};
use crate::common::setup::{BLOCK, MIB, Setup};
use crate::common::traffic::Traffic;
use crate::common::wait_for;

const SIZE: u64 = 8 * MIB;
const EIO: u32 = 5;

/// A tenant on the NBD backing, and another one on a file with a client at work.
fn beside_a_file(setup: Setup, uri: &str) -> (Larder, Traffic) {
    let larder =
        setup.tenant("far", "").volume_on("far0", uri).tenant("near", "").volume("near0", 4 * MIB).start();
    let traffic = Traffic::verified(&larder.socket("near0"), "near0", 256);
    (larder, traffic)
}

fn expect_block(client: &mut Client, seed: u64, block: u64) -> Result<(), u32> {
    match client.read(block * BLOCK, BLOCK as u32) {
        Ok(found) => {
            assert_eq!(
                first_difference(&found, &stamp(seed, 0, block * BLOCK, BLOCK)),
                None,
                "block {block}"
            );
            Ok(())
        }
        Err(Failure::Refused(errno)) => Err(errno),
        Err(Failure::Broken(error)) => panic!("the client's connection broke: {error}"),
    }
}

#[test]
fn nbdkit_memory_is_written_and_read_through_the_cache() {
    let setup = Setup::new("2MiB");
    let (_nbdkit, backing) = nbdkit(&setup, "nbdkit", &["memory", &SIZE.to_string()]);
    let larder = setup.tenant("far", "").volume_on("far0", &backing).start();
    let (source, copy) = (larder.path("source.img"), larder.path("copy.img"));
    write_file(&source, 3, SIZE);
    run(program("nbdcopy").arg("--flush").arg(&source).arg(larder.uri("far0")), larder.folder());

    // Through Larder, and past it.
    for uri in [&larder.uri("far0"), &backing] {
        run(program("nbdcopy").arg(uri).arg(&copy), larder.folder());
        assert_eq!(first_difference(&fs::read(&copy).expect("a copy"), &stamp(3, 0, 0, SIZE)), None, "{uri}");
    }
    let mut qemu_io = program("qemu-io");
    qemu_io.args(["-f", "raw", "-d", "unmap", "-c", "write -z 512 8192", "-c", "read -P 0 512 8192"]);
    qemu_io.args(["-c", "discard 65536 65536", "-c", "flush", &larder.uri("far0")]);
    let said = run(&mut qemu_io, larder.folder());
    assert!(!said.contains("failed"), "{said}");
    larder.stop();
}

#[test]
fn errors_of_the_backing_reach_their_requests_only_and_cache_nothing() {
    let setup = Setup::new("16MiB");
    let (image, trigger) = (setup.path("far.img"), setup.path("fail"));
    write_file(&image, 4, SIZE);
    let (image, error_file) =
        (format!("file={}", image.display()), format!("error-pread-file={}", trigger.display()));
    let arguments =
        ["--filter=error", "file", &image, "error-pread=EIO", "error-pread-rate=30%", &error_file];
    let (_nbdkit, backing) = nbdkit(&setup, "nbdkit", &arguments);
    let (larder, traffic) = beside_a_file(setup, &backing);
    let mut client = Client::connect(&larder.socket("far0"), "far0");

    fs::write(&trigger, "").expect("the trigger of the errors");
    let results: Vec<_> = (0..512).map(|block| expect_block(&mut client, 4, block)).collect();
    let failed = results.iter().filter(|result| result.is_err()).count() as u64;
    assert!((50..300).contains(&failed), "{failed} of 512 reads failed, of which 30 % should");
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(EIO))), "another error than EIO");
    wait_for("the fills have ended", || {
        let occupied = count(&larder.tenant("far"), "occupied_blocks");
        if occupied == 512 - failed { Ok(()) } else { Err(format!("{occupied} blocks are cached")) }
    });
    assert_eq!(count(&larder.tenant("far"), "backing_errors"), failed);

    fs::remove_file(&trigger).expect("the trigger of the errors");
    (0..512).for_each(|block| assert_eq!(expect_block(&mut client, 4, block), Ok(())));
    let far = larder.tenant("far");
    assert_eq!((count(&far, "read_hits"), count(&far, "read_misses")), (512 - failed, 512 + failed));
    assert_eq!(count(&larder.tenant("near"), "backing_errors"), 0);
    traffic.finish();
    larder.stop();
}

#[test]
fn a_backing_that_dies_comes_back_into_service() {
    let setup = Setup::new("16MiB");
    let image = setup.path("far.img");
    write_file(&image, 5, SIZE);
    let image = format!("file={}", image.display());
    let (mut server, backing) = nbdkit(&setup, "nbdkit", &["file", &image]);
    let (larder, traffic) = beside_a_file(setup, &backing);
    let mut client = Client::connect(&larder.socket("far0"), "far0");
    (0..16).for_each(|block| assert_eq!(expect_block(&mut client, 5, block), Ok(())));

    wait_for("the fills have ended", || {
        let occupied = count(&larder.tenant("far"), "occupied_blocks");
        if occupied == 16 { Ok(()) } else { Err(format!("{occupied} blocks are cached")) }
    });
    server.kill();
    assert_eq!(expect_block(&mut client, 5, 100), Err(EIO));
    let write = client.write(200 * BLOCK, &stamp(5, 1, 200 * BLOCK, BLOCK));
    assert!(matches!(write, Err(Failure::Refused(EIO))), "{write:?}");
    // What is cached is served all the same.
    (0..16).for_each(|block| assert_eq!(expect_block(&mut client, 5, block), Ok(())));
    traffic.goes_on();

    let (_server, _) = nbdkit(&larder, "nbdkit", &["file", &image]);
    wait_for("the backing is back", || {
        expect_block(&mut client, 5, 100).map_err(|errno| format!("errno {errno}"))
    });
    write_and_read_back(&mut client, &larder.path("far.img"));
    traffic.finish();
    larder.stop();
}

fn write_and_read_back(client: &mut Client, image: &Path) {
    let data = stamp(5, 2, 300 * BLOCK, 2 * BLOCK);
    client.write(300 * BLOCK, &data).expect("a write");
    client.flush().expect("a flush");
    assert_eq!(client.read(300 * BLOCK, 2 * BLOCK as u32).expect("a read"), data);
    let at = (300 * BLOCK) as usize;
    assert_eq!(fs::read(image).expect("the backing")[at..at + data.len()], data);
    (16..300).for_each(|block| assert_eq!(expect_block(client, 5, block), Ok(())));
}
