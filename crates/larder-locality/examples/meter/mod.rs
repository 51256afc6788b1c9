//! What a piece of work takes: time of the processor and of the wall, and memory.

use std::error::Error;
use std::time::{Duration, Instant};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// How things stood when the work began.
pub struct Meter {
    processor: Duration,
    wall: Instant,
    /// Bytes of memory.
    resident: u64,
}

impl Meter {
    pub fn start() -> Outcome<Self> {
        let resident = status_bytes("VmRSS")?;
        Ok(Self { processor: processor_time()?, wall: Instant::now(), resident })
    }

    /// What was taken since the start, as members of an object of JSON: `seconds` (of the processor), `wall_seconds`, and
    /// `peak_bytes` of memory beyond what there was.
    pub fn taken(&self) -> Outcome<String> {
        let seconds = (processor_time()? - self.processor).as_secs_f64();
        let wall = self.wall.elapsed().as_secs_f64();
        let peak = status_bytes("VmHWM")?.saturating_sub(self.resident);
        Ok(format!(r#""seconds": {seconds}, "wall_seconds": {wall}, "peak_bytes": {peak}"#))
    }
}

/// What this process has had of the processor.
fn processor_time() -> Outcome<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

/// A line of the kernel's account of this process.
fn status_bytes(name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes =
        line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("/proc/self/status lacks a line")?;
    Ok(kibibytes.parse::<u64>()? << 10)
}
