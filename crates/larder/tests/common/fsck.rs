//! What `e2fsck` says of an ext4 that was killed.

use std::path::Path;

use super::LIMIT;
use super::process::{program, run, run_within};

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
        || ["Pass ", "/dev/"].iter().any(|start| line.starts_with(start))
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
    assert!(had_errors && found.stdout.lines().all(is_left_by_orphans), "{found:#?}\n{header}");
    eprintln!("ext4 came to errors and let go of its orphans:\n{}", found.stdout);
    let mended = check("-y");
    assert_eq!(mended.status.code(), Some(1), "{mended:#?}");
    run(program("e2fsck").args(["-f", "-n", device]), folder);
}

#[test]
fn space_that_orphans_keep_is_accepted_and_nothing_that_a_file_lacks() {
    let orphans = "Pass 1: Checking inodes, blocks, and sizes
Inodes that were part of a corrupted orphan linked list found.  Fix? no

Inode 12 was part of the orphaned inode list.  IGNORED.
Deleted inode 58 has zero dtime.  Fix? no

Inode 19, i_size is 0, should be 88064.  Fix? no

Pass 5: Checking group summary information
Block bitmap differences:  -(9217--9386) -27649
Fix? no

Inode bitmap differences:  -12 -58
Fix? no

/dev/loop1: ********** WARNING: Filesystem still has errors **********
";
    assert!(orphans.lines().all(is_left_by_orphans));
    for lacking in [
        "Block bitmap differences:  -(9217--9386) +27649",
        "Inode bitmap differences:  +58",
        "Inode 19, i_size is 88064, should be 4096.  Fix? no",
        "Entry '3' in /worker0 (12) has deleted/unused inode 58.  Clear? no",
        "Unattached inode 58",
        "Inode 58 ref count is 2, should be 1.  Fix? no",
        "Free blocks count wrong (53000, counted=53170).",
    ] {
        assert!(!is_left_by_orphans(lacking), "{lacking}");
    }
}
