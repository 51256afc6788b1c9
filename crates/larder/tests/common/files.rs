//! A program that needs its files after a crash: it creates, replaces, appends to and removes them, with the calls to `fsync` that this takes, and
//! knows what must be there afterwards.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::pattern::{random, stamp};

/// Files of one worker.
const FILES: u64 = 12;

/// What one write adds, at most.
const LONGEST: u64 = 100 * 1024;

/// Files that are written and never synced: traffic that no flush waits for.
const NOISES: u64 = 4;

/// A file: its version, which says what it is full of, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Content {
    version: u64,
    len: u64,
}

/// What may be there after a crash. None is no file.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    synced: Option<Content>,
    /// What was under way, if anything: it may have come to its end or not.
    tried: Option<Option<Content>>,
}

/// A worker in a folder of its own.
pub struct Worker {
    number: u64,
    state: u64,
    version: u64,
    files: Vec<Known>,
    /// Changes that were synced.
    pub synced: u64,
}

impl Worker {
    /// Worker `number`, whose folder is made (and synced) on a mounted file system.
    pub fn new(mount: &Path, number: u64, state: u64) -> Self {
        let folder = mount.join(format!("worker{number}"));
        fs::create_dir(&folder).and_then(|()| sync(mount)).expect("a worker's folder");
        Self { number, state, version: 0, files: vec![Known::default(); FILES as usize], synced: 0 }
    }

    /// Work until the file system gives an error, or the disk is `dying`: an `fsync` that ends from then on proves nothing. While its journal is
    /// being aborted ext4 has been seen to call one done that was not, on a disk without any cache.
    pub fn run(mut self, mount: &Path, dying: Arc<AtomicBool>) -> JoinHandle<Self> {
        let folder = mount.join(format!("worker{}", self.number));
        thread::spawn(move || {
            while self.step(&folder, &dying).is_ok() {}
            self
        })
    }

    /// One change of a file, synced.
    fn step(&mut self, folder: &Path, dying: &AtomicBool) -> io::Result<()> {
        let file = random(&mut self.state, FILES);
        let (path, known) = (folder.join(file.to_string()), self.files[file as usize]);
        let len = 1 + random(&mut self.state, LONGEST);
        let (next, kind) = (self.version + 1, random(&mut self.state, 10));
        let (after, change): (_, io::Result<()>) = match (kind, known.synced) {
            (0, _) => return self.noise(folder, len),
            (1, Some(_)) => {
                self.trying(file, None);
                (None, fs::remove_file(&path).and_then(|()| sync(folder)))
            }
            (2..=5, Some(old)) if old.len < 4 * LONGEST => {
                let new = Content { len: old.len + len, ..old };
                self.trying(file, Some(new));
                (Some(new), self.append(&path, old.len, new))
            }
            _ => {
                let new = Content { version: next, len };
                self.version = next;
                self.trying(file, Some(new));
                (Some(new), self.replace(folder, &path, new))
            }
        };
        change?;
        if dying.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is dying"));
        }
        self.files[file as usize] = Known { synced: after, tried: None };
        self.synced += 1;
        Ok(())
    }

    fn trying(&mut self, file: u64, after: Option<Content>) {
        self.files[file as usize].tried = Some(after);
    }

    fn bytes(&self, content: Content) -> Vec<u8> {
        let mut bytes = stamp(self.number + 1, content.version, 0, content.len.next_multiple_of(8));
        bytes.truncate(content.len as usize);
        bytes
    }

    fn append(&self, path: &Path, from: u64, new: Content) -> io::Result<()> {
        let mut file = File::options().append(true).open(path)?;
        file.write_all(&self.bytes(new)[from as usize..])?;
        file.sync_data()
    }

    /// As editors and databases do it: a new file beside the old one, synced, then renamed.
    fn replace(&self, folder: &Path, path: &Path, new: Content) -> io::Result<()> {
        let beside: PathBuf = path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(&self.bytes(new))?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync(folder)
    }

    fn noise(&mut self, folder: &Path, len: u64) -> io::Result<()> {
        let number = random(&mut self.state, NOISES);
        fs::write(folder.join(format!("noise{number}")), vec![number as u8; len as usize])
    }

    /// After a crash and the journal's replay: each file is what was synced last, or what was under way. From now on it is what was found.
    pub fn verify(&mut self, mount: &Path) {
        let folder = mount.join(format!("worker{}", self.number));
        for file in 0..FILES {
            let path = folder.join(file.to_string());
            let found = match fs::read(&path) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => panic!("{}: {error}", path.display()),
            };
            let known = self.files[file as usize];
            let synced = self.recognize(known, found.as_deref()).unwrap_or_else(|| {
                panic!("{}: {:?} bytes: none of {known:?}", path.display(), found.as_ref().map(Vec::len))
            });
            if let (Some(content), Some(found)) = (synced, &found)
                && content.len < found.len() as u64
            {
                cut(&path, content.len).expect("a shorter file");
            }
            self.files[file as usize] = Known { synced, tried: None };
        }
    }

    /// Which of the things that it may be this is.
    fn recognize(&self, known: Known, found: Option<&[u8]>) -> Option<Option<Content>> {
        let Some(found) = found else {
            return (known.synced.is_none() || known.tried == Some(None)).then_some(None);
        };
        let mut contents = [known.tried.flatten(), known.synced].into_iter().flatten();
        let whole = contents.find(|&content| self.bytes(content) == found);
        whole.or_else(|| self.half_appended(known, found)).map(Some)
    }

    /// An append was under way: what was there before is, and behind it may be anything. It is to be cut off.
    fn half_appended(&self, known: Known, found: &[u8]) -> Option<Content> {
        let (old, new) = (known.synced?, known.tried??);
        let lengths = old.len as usize..=new.len as usize;
        let is_append = old.version == new.version && lengths.contains(&found.len());
        (is_append && found.starts_with(&self.bytes(old))).then_some(old)
    }
}

fn cut(path: &Path, len: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(len)?;
    file.sync_all()
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
