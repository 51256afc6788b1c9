//! libnbd's and QEMU's own tools, unmodified, against the exports.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::daemon::Larder;
use crate::common::pattern::{first_difference, stamp, write_file};
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup, free_tcp_address};

const SIZE: u64 = 24 * MIB;

/// A cache much smaller than the volumes: copying them evicts.
fn two_volumes() -> Larder {
    let setup = Setup::new("4MiB").tenant("a", "write_policy = \"wt\"").volume("a0", SIZE);
    setup.tenant("b", "write_policy = \"ro\"").volume("b0", SIZE).start()
}

/// A file of `SIZE` in which data, zeroes and holes alternate.
fn source(setup: &Setup) -> String {
    let path = setup.path("source.img");
    let mut content = vec![0; SIZE as usize];
    for start in (0..SIZE).step_by(5 * MIB as usize) {
        let data = stamp(1, 0, start, 3 * MIB);
        let at = start as usize;
        let end = content.len().min(at + data.len());
        content[at..end].copy_from_slice(&data[..end - at]);
    }
    fs::write(&path, content).expect("a source");
    path.display().to_string()
}

fn assert_same(left: &Path, right: &Path) {
    let (left, right) = (fs::read(left).expect("a copy"), fs::read(right).expect("its source"));
    assert_eq!(first_difference(&left, &right), None);
}

#[test]
fn nbdinfo_describes_an_export() {
    let larder = two_volumes();
    let info = run(program("nbdinfo").args(["--json", &larder.uri("a0")]), larder.folder());
    let info: Value = serde_json::from_str(&info).expect("JSON");
    assert_eq!((&info["protocol"], &info["structured"]), (&"newstyle-fixed".into(), &true.into()));
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], SIZE);
    let can = ["can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero", "can_df"];
    for key in can {
        assert_eq!(export[key], true, "{key}");
    }
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
}

#[test]
fn nbdinfo_maps_data_and_holes() {
    let setup = Setup::new("4MiB").tenant("a", "");
    let backing = setup.sparse_file("a0", SIZE);
    let file = fs::File::options().write(true).open(&backing).expect("the backing");
    std::os::unix::fs::FileExt::write_all_at(&file, &stamp(1, 0, 0, MIB), MIB).expect("some data");
    file.sync_all().expect("data in its place");
    let larder = setup.volume_on("a0", &backing).start();

    let map = run(program("nbdinfo").args(["--map", "--json", &larder.uri("a0")]), larder.folder());
    let map: Value = serde_json::from_str(&map).expect("JSON");
    let extents: Vec<_> = map.as_array().expect("a list").iter().collect();
    let of = |extent: &Value| ["offset", "length", "type"].map(|key| extent[key].as_u64().expect("a number"));
    let extents: Vec<_> = extents.into_iter().map(of).collect();
    assert_eq!(extents, [[0, MIB, 3], [MIB, MIB, 0], [2 * MIB, SIZE - 2 * MIB, 3]]);
}

/// A backing of which nothing is allocated says that all of it reads as zeroes; under write-back the data is in the cache alone.
#[test]
fn what_the_cache_alone_has_is_no_hole() {
    let setup = Setup::new("64MiB")
        .tenant("a", "write_policy = \"wb\"\ndirty_rest = 100\ndirty_max = 100\ndirty_age = \"1h\"");
    let source = source(&setup);
    let backing = setup.sparse_file("a0", SIZE);
    let larder = setup.volume_on("a0", &backing).start();
    run(program("nbdcopy").args(["--flush", &source, &larder.uri("a0")]), larder.folder());
    let same = |larder: &Larder| {
        let copy = larder.path("copy.img");
        run(program("nbdcopy").arg(larder.uri("a0")).arg(&copy), larder.folder());
        assert_same(&copy, Path::new(&source));
        let out = copy.display().to_string();
        run(
            program("qemu-img").args(["convert", "-f", "raw", "-O", "raw", &larder.uri("a0"), &out]),
            larder.folder(),
        );
        assert_same(&copy, Path::new(&source));
        let map = run(program("nbdinfo").args(["--map", "--json", &larder.uri("a0")]), larder.folder());
        let map: Value = serde_json::from_str(&map).expect("JSON");
        assert_eq!(
            (&map[0]["offset"], &map[0]["length"], &map[0]["type"]),
            (&0.into(), &(3 * MIB).into(), &0.into())
        );
        assert_eq!(map[1]["type"], 3, "what is in neither is a hole: {map}");
    };
    same(&larder);
    assert!(
        fs::read(&backing).expect("the backing").iter().all(|&byte| byte == 0),
        "nothing was written back"
    );
    let larder = larder.kill().start();
    same(&larder);
    larder.stop();
}

#[test]
fn exports_that_share_an_address_are_told_apart_by_name() {
    let address = free_tcp_address();
    let setup = Setup::new("4MiB").tenant("a", "");
    let nbd = format!("tcp:{address}");
    let backing = setup.sparse_file("a0", SIZE);
    let setup = setup.volume_at("a0", &backing, &nbd).tenant("b", "");
    let backing = setup.sparse_file("b0", 2 * SIZE);
    write_file(Path::new(&backing), 7, 2 * SIZE);
    let larder = setup.volume_at("b0", &backing, &nbd).start();

    let list =
        run(program("nbdinfo").args(["--list", "--json", &format!("nbd://{address}")]), larder.folder());
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let exports = list["exports"].as_array().expect("a list");
    let named = |name: &str| exports.iter().find(|export| export["export-name"] == name).expect("the export");
    assert_eq!(exports.len(), 2);
    assert_eq!(named("a0")["export-size"], SIZE);
    assert_eq!(named("b0")["export-size"], 2 * SIZE);

    let copy = larder.path("copy.img");
    run(program("nbdcopy").arg(format!("nbd://{address}/b0")).arg(&copy), larder.folder());
    assert_same(&copy, &larder.backing("b0"));
    let size = run(program("nbdinfo").args(["--size", &format!("nbd://{address}/a0")]), larder.folder());
    assert_eq!(size.trim(), SIZE.to_string());
}

#[test]
fn nbdcopy_in_both_directions() {
    let larder = two_volumes();
    let source = source(&larder);
    run(program("nbdcopy").args(["--flush", &source, &larder.uri("a0")]), larder.folder());
    assert_same(&larder.backing("a0"), Path::new(&source));

    // From tenant to tenant, and back to a file twice: the second pass meets what the first one cached.
    run(program("nbdcopy").args(["--flush", &larder.uri("a0"), &larder.uri("b0")]), larder.folder());
    for _ in 0..2 {
        let copy = larder.path("copy.img");
        run(program("nbdcopy").args(["--no-extents", &larder.uri("b0")]).arg(&copy), larder.folder());
        assert_same(&copy, Path::new(&source));
    }
    larder.stop();
}

#[test]
fn qemu_img_converts_compares_and_checks() {
    let larder = two_volumes();
    let source = source(&larder);
    let (a, b) = (larder.uri("a0"), larder.uri("b0"));
    let qemu_img = |args: &str| run(program("qemu-img").args(args.split(' ')), larder.folder());

    qemu_img(&format!("convert -n -f raw -O raw {source} {a}"));
    assert_same(&larder.backing("a0"), Path::new(&source));
    let verdict = qemu_img(&format!("compare -f raw -F raw {source} {a}"));
    assert_eq!(verdict.trim(), "Images are identical.");

    // A qcow2 image inside the other export: small writes all over it, and something that can be checked.
    qemu_img(&format!("create -f qcow2 {b} {}", 16 * MIB));
    qemu_img(&format!("convert -n -f raw -O qcow2 --target-is-zero {} {b}", small(&larder)));
    assert!(qemu_img(&format!("check -f qcow2 {b}")).contains("No errors were found on the image."));
    let verdict = qemu_img(&format!("compare -f raw -F qcow2 {} {b}", small(&larder)));
    assert_eq!(verdict.trim(), "Images are identical.");
    larder.stop();
}

/// The first 16 MiB of the source.
fn small(setup: &Setup) -> String {
    let path = setup.path("small.img");
    let content = fs::read(setup.path("source.img")).expect("the source");
    fs::write(&path, &content[..16 * MIB as usize]).expect("a part of it");
    path.display().to_string()
}

/// Writes of less than a block, zeroes and discards across block boundaries, each read back.
const QEMU_IO: [&str; 18] = [
    "write -P 0x11 0 1M",
    "read -P 0x11 0 1M",
    "write -P 0x22 512 1024",
    "read -P 0x11 0 512",
    "read -P 0x22 512 1024",
    "read -P 0x11 1536 2560",
    "write -P 0x33 3584 1024",
    "read -P 0x33 3584 1024",
    "read -P 0x11 4608 3584",
    "write -z 6656 9728",
    "read -P 0 6656 9728",
    "read -P 0x11 16384 4096",
    "write -f -P 0x44 65536 4096",
    "read -P 0x44 65536 4096",
    "discard 131072 65536",
    "flush",
    "aio_write -P 0x55 200704 65536",
    "aio_flush",
];

#[test]
fn qemu_io_reads_back_partial_blocks_zeroes_and_discards() {
    let larder = two_volumes();
    for volume in ["a0", "b0"] {
        let mut qemu_io = program("qemu-io");
        qemu_io.args(["-f", "raw", "-t", "none", "-d", "unmap"]);
        qemu_io.args(QEMU_IO.iter().flat_map(|command| ["-c", command]));
        let said = run(qemu_io.arg(larder.uri(volume)), larder.folder());
        assert!(!said.contains("failed"), "{said}");
        let backing = fs::read(larder.backing(volume)).expect("the backing");
        let at = |byte: usize| backing[byte];
        let found = [0, 512, 3584, 4608, 6656, 16384, 65536, 200_704].map(at);
        assert_eq!(found, [0x11, 0x22, 0x33, 0x11, 0, 0x11, 0x44, 0x55], "{volume}");
    }
    larder.stop();
}
