//! A cache with clean and dirty blocks of two volumes, and the disks that they belong to.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use larder_engine::format::{Layout, Medium, Shape};
use larder_io::offline::StoppedCache;
use serde_json::Value;

use super::image::{Maker, data, volume};
use crate::lab::Lab;

const BLOCK: u64 = 4096;
/// Sizes of the disks; the second one ends within a block.
const DISKS: [(u16, &str, u64); 2] = [(1, "root", 400 * BLOCK), (2, "data", 100 * BLOCK + 1024)];
/// Every third block is dirty, every third one clean.
const CACHED: u64 = 90;

/// The cache `c` in a directory with its disks.
pub struct Sample {
    pub lab: Lab,
    /// The content of each disk when all is saved.
    pub wanted: Vec<Vec<u8>>,
}

impl Sample {
    /// A cache whose volumes know their disks by their paths.
    pub fn new() -> Self {
        Self::with(|lab, name| lab.path(name).display().to_string(), true)
    }

    /// One whose volumes know their disks by `identity`; stopped cleanly, or not.
    pub fn with(identity: impl Fn(&Lab, &str) -> String, clean: bool) -> Self {
        let lab = Lab::new();
        let mut wanted: Vec<_> =
            DISKS.map(|(id, name, bytes)| (id, fill(&lab, name, bytes))).map(|(_, old)| old).to_vec();
        // The smallest ring: the journal has turned, and pages are needed.
        let shape = Layout::for_slots(4096, 512, 1000).expect("a layout").shape();
        let layout = Layout::new(Shape { records: 32, ..shape }).expect("a layout");
        let mut cache = StoppedCache::create(&lab.path("c")).expect("a new file");
        cache.grow(layout.device_bytes()).expect("room");
        let volumes = DISKS.map(|(id, name, bytes)| volume(id, name, bytes, &identity(&lab, name)));
        let mut maker = Maker::new(&mut cache, layout, volumes.to_vec());
        // A region of which nothing is cached.
        maker.mark(1, 200);
        for ((id, _, bytes), wanted) in DISKS.iter().zip(&mut wanted) {
            let last = bytes.div_ceil(BLOCK) - 1;
            for block in (0..CACHED).chain([last]).filter(|block| block % 3 < 2 || *block == last) {
                let dirty = block % 3 == 0 || block == last;
                let start = (block * BLOCK) as usize;
                let end = (start + BLOCK as usize).min(wanted.len());
                if dirty {
                    wanted[start..end].copy_from_slice(&data(*id, block, 1, end - start));
                }
                // Slots in no order, on all pages.
                let slot = (u64::from(*id) * 500 + block * 7) % 1000;
                maker.put((*id, block), &wanted[start..end], dirty, slot as u32, None);
                maker.commit();
            }
        }
        if clean {
            maker.stop()
        } else {
            maker.commit()
        }
        Self { lab, wanted }
    }

    /// A path as an argument.
    pub fn at(&self, name: &str) -> String {
        self.lab.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Run `larder cache COMMAND c` with more arguments.
    pub fn run(&self, command: &str, more: &[&str]) -> Output {
        let cache = self.at("c");
        self.lab.larder(&[&["cache", command, &cache], more].concat())
    }

    /// The JSON that a command on `c` prints, whatever its exit code.
    pub fn json(&self, command: &str) -> Value {
        let output = self.run(command, &["--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Break `c`.
    pub fn harm(&self, harms: &[&str]) -> String {
        told(&self.run("damage", harms), 0)
    }

    /// The content of `c`.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.lab.path("c")).expect("readable")
    }

    /// True where the disks hold all that guests wrote.
    pub fn is_saved(&self) -> bool {
        let disks = DISKS.map(|(_, name, _)| fs::read(self.lab.path(name)).expect("readable"));
        disks.iter().zip(&self.wanted).all(|(disk, wanted)| disk == wanted)
    }

    /// A slot that holds a dirty block of the first volume: its third block.
    pub const DIRTY_SLOT: u64 = 500 + 3 * 7;
}

/// What a command printed on stdout; it must end with this code, and say nothing on stderr.
pub fn told(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command said when nothing could be done.
pub fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("error: ") && text.contains("\nhelp: "), "{text}");
    text
}

fn fill(lab: &Lab, name: &str, bytes: u64) -> Vec<u8> {
    let path: PathBuf = lab.disk(name, bytes as usize);
    fs::read(path).expect("readable")
}

/// The size of a cache's device.
pub fn device_bytes(lab: &Lab, name: &str) -> u64 {
    StoppedCache::open_to_read(&lab.path(name)).expect("a cache").bytes()
}
