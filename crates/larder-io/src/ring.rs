//! The reactor's io_uring: one per thread, entered once per turn of the loop to submit and to collect.
//!
//! Entries are prepared without a system call and go to the kernel in [`Ring::enter`]. Every entry carries the key of
//! its operation's slot in `user_data`; the slot owns the memory and the descriptor that the kernel works on, until the
//! completion with that key has been collected.

use crate::table::Key;
use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Entries submitted with one system call at most.
const SUBMISSIONS: u32 = 512;
/// Completions that the kernel keeps without spilling.
const COMPLETIONS: u32 = 4096;
/// Registered files. More descriptors than this work as well, only without registration.
const REGISTERED_FILES: u32 = 1024;

/// An io_uring and the table of its registered files.
pub(crate) struct Ring {
    ring: IoUring,
    backlog: VecDeque<Entry>,
    free_files: Vec<u32>,
}

/// One collected completion: the operation's key and what the system call would have returned (negative: errno).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub key: Key,
    pub result: i32,
}

/// How an entry names its file: by registered index where there was room, else by descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRef {
    number: i32,
    flags: Flags,
}

impl FileRef {
    /// A descriptor that is not registered.
    pub fn plain(fd: BorrowedFd<'_>) -> Self {
        Self { number: fd.as_raw_fd(), flags: Flags::empty() }
    }

    /// For the opcode's constructor.
    pub fn target(self) -> types::Fd {
        types::Fd(self.number)
    }

    /// True where the number is an index into the registered files.
    pub fn is_registered(self) -> bool {
        self.flags.contains(Flags::FIXED_FILE)
    }

    /// The entry with its key, marked as naming a registered file where it does.
    pub fn finish(self, entry: Entry, key: Key) -> Entry {
        entry.flags(self.flags).user_data(key.to_bits())
    }
}

impl Ring {
    /// A ring for the calling thread alone.
    pub fn new() -> io::Result<Self> {
        let ring = build_ring()?;
        let limit = file_limit().min(REGISTERED_FILES);
        let registered = ring.submitter().register_files_sparse(limit).is_ok();
        let free_files = if registered { (0..limit).rev().collect() } else { Vec::new() };
        Ok(Self { ring, backlog: VecDeque::new(), free_files })
    }

    /// Register a descriptor. It stays open until it is unregistered, even if closed.
    pub fn register(&mut self, fd: BorrowedFd<'_>) -> FileRef {
        let plain = FileRef::plain(fd);
        let Some(index) = self.free_files.pop() else { return plain };
        match self.ring.submitter().register_files_update(index, &[fd.as_raw_fd()]) {
            Ok(1) => FileRef { number: index as i32, flags: Flags::FIXED_FILE },
            _ => plain,
        }
    }

    /// Undo [`Ring::register`]. Operations in flight keep the file until they end.
    pub fn unregister(&mut self, file: FileRef) {
        if file.is_registered() {
            let index = file.number as u32;
            if self.ring.submitter().register_files_update(index, &[-1]).is_ok() {
                self.free_files.push(index);
            }
        }
    }

    /// Queue an entry for the next [`Ring::enter`].
    ///
    /// # Safety
    /// Memory and descriptor named by the entry stay valid, and the memory is not touched by anyone else, until the
    /// completion with the entry's key has been collected.
    #[inline]
    pub unsafe fn push(&mut self, entry: Entry) {
        // SAFETY: the caller's promise is the one that `push` asks for.
        if !self.backlog.is_empty() || unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }

    /// True where an entry waits for [`Ring::enter`].
    #[inline]
    pub fn has_submissions(&mut self) -> bool {
        !self.ring.submission().is_empty() || !self.backlog.is_empty()
    }

    /// True where the kernel has something for [`Ring::enter`] and [`Ring::collect`], found without a system call.
    #[inline]
    pub fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty() || {
            let queue = self.ring.submission();
            queue.taskrun() || queue.cq_overflow()
        }
    }

    /// Submit what is queued and let pending completions arrive; with a timeout, sleep until one does.
    /// While more is queued than fits, it does not sleep.
    pub fn enter(&mut self, sleep: Option<Duration>) -> io::Result<()> {
        self.refill();
        let result = match sleep.filter(|_| self.backlog.is_empty()) {
            None => self.flush(),
            Some(timeout) => {
                let timeout = types::Timespec::from(timeout);
                let args = types::SubmitArgs::new().timespec(&timeout);
                self.ring.submitter().submit_with_args(1, &args)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Move collected completions to `into`, at most `limit`.
    #[inline]
    pub fn collect(&mut self, into: &mut Vec<Completion>, limit: usize) {
        let completion = |entry: io_uring::cqueue::Entry| Completion {
            key: Key::from_bits(entry.user_data()),
            result: entry.result(),
        };
        into.extend(self.ring.completion().take(limit).map(completion));
    }

    /// Enter without waiting. GETEVENTS makes the kernel run deferred completions.
    fn flush(&mut self) -> io::Result<usize> {
        const GETEVENTS: u32 = 1;
        let count = self.ring.submission().len() as u32;
        // SAFETY: no argument is passed, so nothing can dangle; the entries were vouched for in `push`.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(count, 0, GETEVENTS, None) }
    }

    fn refill(&mut self) {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: the entry came through `push`, whose caller promised what is needed.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }
}

impl Drop for Ring {
    /// The kernel takes a ring apart in the background: let go of the files now, since others may wait for their locks.
    fn drop(&mut self) {
        // Fails only where nothing is registered.
        let _ = self.ring.submitter().unregister_files();
    }
}

/// Interrupted, timed out, or the kernel wants completions collected first: the next turn tries again.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN))
}

/// The best set of flags that this kernel knows.
fn build_ring() -> io::Result<IoUring> {
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_submit_all()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS);
    let cooperative = |_| {
        let mut builder = IoUring::builder();
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_cqsize(COMPLETIONS).build(SUBMISSIONS)
    };
    let plain = |_| IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS);
    deferred.or_else(cooperative).or_else(plain)
}

/// The kernel allows no more registered files than a process may have open.
fn file_limit() -> u32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if answer == 0 { u32::try_from(limit.rlim_cur).unwrap_or(u32::MAX) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::opcode;

    const KEY: Key = Key { index: 3, generation: 9 };

    #[test]
    fn a_nop_comes_back_with_its_key() {
        let mut ring = Ring::new().unwrap();
        // SAFETY: a nop names no memory.
        unsafe { ring.push(opcode::Nop::new().build().user_data(KEY.to_bits())) };
        assert!(ring.has_submissions());
        ring.enter(Some(Duration::from_secs(10))).unwrap();
        let mut done = Vec::new();
        ring.collect(&mut done, 8);
        assert_eq!((done.len(), done[0].key, done[0].result), (1, KEY, 0));
    }

    #[test]
    fn more_entries_than_the_queue_holds_all_complete() {
        let mut ring = Ring::new().unwrap();
        let count = SUBMISSIONS as usize * 3;
        for _ in 0..count {
            // SAFETY: a nop names no memory.
            unsafe { ring.push(opcode::Nop::new().build().user_data(KEY.to_bits())) };
        }
        let mut done = Vec::new();
        for _ in 0..count {
            ring.enter(None).unwrap();
            ring.collect(&mut done, 100);
        }
        assert_eq!(done.len(), count);
    }

    #[test]
    fn what_did_not_fit_still_waits_for_the_kernel() {
        let mut ring = Ring::new().unwrap();
        for _ in 0..=SUBMISSIONS {
            // SAFETY: a nop names no memory.
            unsafe { ring.push(opcode::Nop::new().build().user_data(KEY.to_bits())) };
        }
        // Must not sleep on the one that is left, though it may.
        ring.enter(Some(Duration::from_secs(10))).unwrap();
        assert!(ring.has_submissions(), "one entry is still in the backlog");
        ring.enter(None).unwrap();
        assert!(!ring.has_submissions());
    }

    #[test]
    fn an_idle_ring_times_out_quietly() {
        let mut ring = Ring::new().unwrap();
        ring.enter(Some(Duration::from_millis(1))).unwrap();
        assert!(!ring.has_completions());
    }

    #[test]
    fn registered_files_are_reused() {
        let mut ring = Ring::new().unwrap();
        let file = std::fs::File::open("/dev/zero").unwrap();
        let free = ring.free_files.len();
        let registered = ring.register(std::os::fd::AsFd::as_fd(&file));
        ring.unregister(registered);
        assert_eq!(ring.free_files.len(), free);
    }
}
