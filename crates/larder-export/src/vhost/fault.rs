//! Memory that goes away under us. Guest memory and the record of what is in flight are files of the hypervisor, which can cut them short;
//! touching what is cut off raises SIGBUS, which would end the daemon and with it every other guest's disk.
//!
//! Mappings that are guarded get zeroes in their place then, and the thread that was hurt learns of it by [`was_hurt`]: it ends the
//! connection.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Mappings guarded at a time: far more than guests have regions of memory.
const MAPPINGS_MAX: usize = 8192;

/// A guarded mapping: the address of its first byte, and of the byte behind its last. Free where the latter is 0.
struct Mapping {
    start: AtomicUsize,
    end: AtomicUsize,
}

static MAPPINGS: [Mapping; MAPPINGS_MAX] =
    [const { Mapping { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; MAPPINGS_MAX];

/// Who is asked about faults elsewhere: as it was before us.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

thread_local! {
    /// A guarded mapping was gone when this thread touched it.
    static HURT: Cell<bool> = const { Cell::new(false) };
}

/// Guards a mapping as long as it lives. To be dropped after the mapping's last use.
#[derive(Debug)]
pub(super) struct Guard {
    index: usize,
}

impl Guard {
    /// Guard a mapping of this process.
    ///
    /// # Errors
    /// Where there are too many, or signals cannot be handled.
    pub fn new(start: *const u8, len: usize) -> io::Result<Self> {
        install()?;
        let start = start as usize;
        let end = start.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
        // Claimed by an end before which nothing is, then given its start, and only then its true end.
        let claim = |mapping: &Mapping| {
            mapping.end.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let index = MAPPINGS.iter().position(claim).ok_or(io::ErrorKind::OutOfMemory)?;
        MAPPINGS[index].start.store(start, Ordering::Release);
        MAPPINGS[index].end.store(end, Ordering::Release);
        Ok(Self { index })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mapping = &MAPPINGS[self.index];
        mapping.start.store(usize::MAX, Ordering::Release);
        mapping.end.store(0, Ordering::Release);
    }
}

/// True where this thread touched memory that was gone since it was last asked. What it read there were zeroes.
#[inline]
pub(super) fn was_hurt() -> bool {
    HURT.take()
}

fn install() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: all of the structure may be zero; the handler is a function of the kind that SA_SIGINFO asks for, and only does
    // what a handler may. `before` is filled where the call succeeds.
    let before = unsafe {
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        before.assume_init()
    };
    // The one that comes first installs it: the handler must find who was there before.
    if BEFORE.set(before).is_err() {
        return Ok(());
    }
    // SAFETY: as above.
    unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Put zeroes in place of a guarded mapping that is gone. Faults elsewhere are whoever's they were before.
extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure.
    let address = unsafe { (*info).si_addr() } as usize;
    let inside = |mapping: &&Mapping| {
        address < mapping.end.load(Ordering::Acquire) && address >= mapping.start.load(Ordering::Acquire)
    };
    if let Some(mapping) = MAPPINGS.iter().find(inside) {
        let start = mapping.start.load(Ordering::Acquire);
        let len = mapping.end.load(Ordering::Acquire).saturating_sub(start);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range is a mapping that its owner guards for as long as it uses it, and uses as bytes that others change.
        // `mmap` is a bare system call here, and allowed in a handler.
        let there = unsafe {
            libc::mmap(start as *mut libc::c_void, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if there != libc::MAP_FAILED {
            HURT.set(true);
            return;
        }
    }
    pass_on(signal, info, context);
}

fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let before = BEFORE.get().filter(|before| before.sa_sigaction > libc::SIG_IGN);
    match before {
        Some(before) => {
            // SAFETY: what was installed before is a handler; where it takes fewer arguments, it ignores the others.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(before.sa_sigaction) };
            handler(signal, info, context);
        }
        // Back to the default: the instruction is tried again, and ends the process.
        // SAFETY: changes the signal's disposition, no memory.
        None => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

    const BYTES: usize = 1 << 16;

    fn mapping() -> (std::fs::File, MmapRegion<()>) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BYTES as u64).unwrap();
        let region = MmapRegion::from_file(FileOffset::new(file.try_clone().unwrap(), 0), BYTES).unwrap();
        (file, region)
    }

    #[test]
    fn memory_that_was_cut_off_reads_as_zeroes_and_hurts() {
        let (file, region) = mapping();
        let _guard = Guard::new(region.as_ptr(), BYTES).unwrap();
        let slice = region.as_volatile_slice();
        slice.store(7_u64, 0x8000, Ordering::Relaxed).unwrap();
        assert!(!was_hurt());
        file.set_len(0).unwrap();
        assert_eq!(slice.load::<u64>(0x8000, Ordering::Relaxed).unwrap(), 0);
        assert!(was_hurt());
        slice.store(8_u64, 0, Ordering::Relaxed).unwrap();
        assert!(!was_hurt(), "it is told once");
    }

    #[test]
    fn other_threads_are_not_hurt() {
        let (file, region) = mapping();
        let _guard = Guard::new(region.as_ptr(), BYTES).unwrap();
        file.set_len(0).unwrap();
        std::thread::scope(|scope| {
            let touch = || {
                region.as_volatile_slice().load::<u64>(0, Ordering::Relaxed).unwrap();
                was_hurt()
            };
            assert!(scope.spawn(touch).join().unwrap());
        });
        assert!(!was_hurt());
    }

    #[test]
    fn places_are_used_again() {
        let (_file, region) = mapping();
        for _ in 0..2 * MAPPINGS_MAX {
            drop(Guard::new(region.as_ptr(), BYTES).unwrap());
        }
    }
}
