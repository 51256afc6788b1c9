//! What `e2fsck` says of an ext4 that was killed.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use super::LIMIT;
use super::process::{program, run, run_within};
use super::setup::{MIB, Setup};

/// What ext4 may leave where it came to errors itself: at the next mount it lets go of its list of orphans ("Errors on filesystem, clearing orphan
/// list"), so that what files had that were just being removed or cut stays taken. It does so on a disk without any cache too. No file lacks anything.
fn is_left_by_orphans(line: &str) -> bool {
    let line = line.trim();
    let line = ["Fix? no", "IGNORED."].iter().find_map(|end| line.strip_suffix(end)).unwrap_or(line).trim();
    let frees = |what: &str| {
        line.strip_prefix(what)
            .is_some_and(|blocks| blocks.split_whitespace().all(|one| one.starts_with('-')))
    };
    let is_cut = || {
        let (size, blocks) =
            line.strip_prefix("Inode ")?.split_once(", i_size is ")?.1.split_once(", should be ")?;
        let [size, blocks] = [size, blocks.trim_end_matches('.')].map(|bytes| bytes.parse::<u64>().ok());
        Some(size? < blocks?)
    };
    line.is_empty()
        || line.starts_with("Pass ")
        || line.starts_with("Deleted inode ") && line.ends_with(" has zero dtime.")
        || line == "Inodes that were part of a corrupted orphan linked list found."
        || line.starts_with("Inode ") && line.ends_with(" was part of the orphaned inode list.")
        || ["Block bitmap differences:", "Inode bitmap differences:"].into_iter().any(frees)
        || is_cut() == Some(true)
}

/// It finds nothing in this file system, which is not mounted; but for orphans where ext4 came to errors, which are released.
pub fn is_sound(device: &str, folder: &Path) {
    let check = |option: &str| run_within(LIMIT, program("e2fsck").args(["-f", option, device]), folder);
    let found = check("-n");
    if found.status.success() {
        return;
    }
    let header = run(program("dumpe2fs").args(["-h", device]), folder);
    let had_errors =
        header.lines().any(|line| line.starts_with("Filesystem state:") && line.contains("with errors"));
    let mut lines = found.stdout.lines().filter(|line| !line.starts_with(device));
    assert!(had_errors && lines.all(is_left_by_orphans), "{found:#?}\n{header}");
    eprintln!("ext4 came to errors and let go of its orphans:\n{}", found.stdout);
    let mended = check("-y");
    assert_eq!(mended.status.code(), Some(1), "{mended:#?}");
    run(program("e2fsck").args(["-f", "-n", device]), folder);
}

/// A file system with the files 12 to 14 of one length, after what `debugfs` is told.
fn after(commands: &[&str]) -> (Setup, String) {
    let setup = Setup::new("16MiB");
    let (device, file) = (setup.sparse_file("ext4", 16 * MIB), setup.path("file"));
    fs::write(&file, vec![7; 30_000]).expect("a file");
    run(program("mkfs.ext4").args(["-q", &device]), setup.folder());
    let files: Vec<String> = (12..15).map(|number| format!("write {} {number}", file.display())).collect();
    for command in files.iter().map(String::as_str).chain(commands.iter().copied()) {
        run(program("debugfs").args(["-w", "-R", command, &device]), setup.folder());
    }
    (setup, device)
}

/// Two removed files on the list of orphans, and one that was being cut; ext4 came to errors.
const ORPHANS: [&str; 7] = [
    "unlink 12",
    "unlink 13",
    "set_inode_field <12> links_count 0",
    "set_inode_field <13> links_count 0",
    "set_inode_field <12> dtime @13",
    "set_inode_field <14> size 0",
    "set_super_value state 3",
];

#[test]
fn what_orphans_keep_is_released() {
    let (setup, device) = after(&ORPHANS);
    let check = || run_within(LIMIT, program("e2fsck").args(["-f", "-n", &device]), setup.folder());
    let before = check();
    for told in
        ["Inode 12 was part of the orphaned", "Deleted inode 13", "Inode 14, i_size", "differences:  -"]
    {
        assert!(before.stdout.contains(told), "{told}: {before:#?}");
    }
    is_sound(&device, setup.folder());
    assert!(check().status.success());
}

#[test]
fn what_else_is_wrong_is_not_sound() {
    let without_errors = ORPHANS.split_last().expect("commands").1.to_vec();
    let [lost, counted, freed] = ["unlink 14", "set_inode_field <14> links_count 2", "freei <14>"]
        .map(|harm| [&ORPHANS[..], &[harm]].concat());
    for commands in [without_errors, lost, counted, freed] {
        let (setup, device) = after(&commands);
        let sound = catch_unwind(|| is_sound(&device, setup.folder()));
        assert!(sound.is_err(), "{commands:?}");
    }
}
