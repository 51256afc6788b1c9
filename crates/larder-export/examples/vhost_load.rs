//! Load on a vhost-user-blk device without a guest: random 4 KiB reads or writes at a fixed depth, for a while.
//!
//! `vhost_load SOCKET read|write DEPTH SECONDS BYTES` prints one line of JSON: requests, seconds, errors, mean latency in seconds.
//! The driver looks at the queue all the time, so that what is measured is the server.

use std::error::Error;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

use virtio_driver::{
    VhostUser, VirtioBlkConfig, VirtioBlkFeatureFlags, VirtioBlkQueue, VirtioBlkReqBuf, VirtioFeatureFlags,
    VirtioTransport,
};
use vm_memory::{FileOffset, MmapRegion};

const BLOCK: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, kind, depth, seconds, bytes] = &arguments[..] else {
        return Err("usage: vhost_load SOCKET read|write DEPTH SECONDS BYTES".into());
    };
    let (depth, writes) = (depth.parse::<usize>()?, kind == "write");
    let (duration, blocks) =
        (Duration::from_secs_f64(seconds.parse()?), bytes.parse::<u64>()? / BLOCK as u64);

    let ring = VirtioFeatureFlags::VERSION_1 | VirtioFeatureFlags::RING_EVENT_IDX;
    let disk = VirtioBlkFeatureFlags::FLUSH | VirtioBlkFeatureFlags::MQ;
    let mut transport: VhostUser<VirtioBlkConfig, VirtioBlkReqBuf> =
        VhostUser::new(socket, ring.bits() | disk.bits())?;
    let mut queues: Vec<VirtioBlkQueue<'_, (usize, Instant)>> =
        VirtioBlkQueue::setup_queues(&mut transport, 1, 256)?;
    let queue = &mut queues[0];
    // SAFETY: a new descriptor, which nobody else knows.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"load".as_ptr(), libc::MFD_CLOEXEC)) };
    file.set_len((depth * BLOCK) as u64)?;
    let memory = MmapRegion::<()>::from_file(FileOffset::new(file.try_clone()?, 0), depth * BLOCK)?;
    transport.map_mem_region(memory.as_ptr() as usize, depth * BLOCK, file.as_raw_fd(), 0)?;
    let notifier = transport.get_submission_notifier(0);

    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut submit = |queue: &mut VirtioBlkQueue<'_, (usize, Instant)>, slot: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let offset = state % blocks * BLOCK as u64;
        let place = memory.as_ptr().wrapping_add(slot * BLOCK);
        let context = (slot, Instant::now());
        // SAFETY: each slot is a part of the mapping of its own, used by one request at a time.
        unsafe {
            match writes {
                true => queue.write_raw(offset, place, BLOCK, context),
                false => queue.read_raw(offset, place, BLOCK, context),
            }
        }
    };
    queue.set_used_notif_enabled(false);
    let began = Instant::now();
    for slot in 0..depth {
        submit(queue, slot)?;
    }
    notifier.notify()?;
    let (mut requests, mut errors, mut waited, mut open) = (0_u64, 0_u64, Duration::ZERO, depth);
    let mut free = Vec::new();
    while open > 0 {
        for done in queue.completions() {
            let (slot, since) = done.context;
            requests += 1;
            errors += u64::from(done.ret != 0);
            waited += since.elapsed();
            open -= 1;
            free.push(slot);
        }
        if free.is_empty() {
            std::hint::spin_loop();
            continue;
        }
        if began.elapsed() < duration {
            for slot in free.drain(..) {
                submit(queue, slot)?;
                open += 1;
            }
            if queue.avail_notif_needed() {
                notifier.notify()?;
            }
        } else {
            free.clear();
        }
    }
    let (elapsed, mean) = (began.elapsed().as_secs_f64(), waited.as_secs_f64() / requests as f64);
    println!(
        r#"{{"requests": {requests}, "seconds": {elapsed}, "errors": {errors}, "latency_seconds": {mean}}}"#
    );
    Ok(())
}
