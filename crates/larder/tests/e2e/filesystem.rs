//! A file system on top: ext4 on a loop device over `nbdfuse`, made, filled, checked, and found again.

use std::fs;
use std::path::Path;

use crate::common::disk::{Disk, is_root};
use crate::common::pattern::{random, stamp};
use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup};

const FILES: u64 = 60;

fn content(number: u64) -> Vec<u8> {
    let mut state = number;
    stamp(number, 1, 0, (random(&mut state, 100) * 4096 + number * 8 + 8).min(MIB))
}

/// Files of all sizes; a third of them is removed again, so that their blocks are used twice.
fn fill(mount: &Path) {
    for number in 0..FILES {
        let folder = mount.join(format!("folder{}", number % 5));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(number.to_string()), stamp(99, 0, 0, 512 * 1024)).expect("a first version");
    }
    for number in 0..FILES {
        let file = mount.join(format!("folder{}/{number}", number % 5));
        fs::remove_file(&file).expect("a first version");
        if number % 3 != 0 {
            fs::write(&file, content(number)).expect("a second version");
        }
    }
}

fn verify(mount: &Path) {
    for number in 0..FILES {
        let file = mount.join(format!("folder{}/{number}", number % 5));
        match fs::read(&file) {
            Ok(found) => assert!(found == content(number), "{}", file.display()),
            Err(_) => assert_eq!(number % 3, 0, "{} is gone", file.display()),
        }
    }
}

#[test]
fn ext4_is_made_filled_checked_and_found_again() {
    // The cache is smaller than what is written: blocks leave it, and are read again.
    let setup = Setup::new("8MiB").tenant("a", "write_policy = \"wt\"").volume("a0", 96 * MIB);
    if !is_root(setup.folder()) {
        return;
    }
    let larder = setup.start();
    let mut disk = Disk::attach(&larder, "a0", &larder.uri("a0"));
    run(program("mkfs.ext4").args(["-q", &disk.device]), larder.folder());
    for pass in 0..2 {
        let mount = disk.mount(&larder);
        if pass == 0 {
            fill(&mount);
        }
        verify(&mount);
        disk.unmount();
        disk.check(&larder);
    }
    disk.detach();

    let setup = larder.stop();
    // The backing by itself is the whole file system.
    run(program("e2fsck").args(["-f", "-n"]).arg(setup.backing("a0")), setup.folder());
}
