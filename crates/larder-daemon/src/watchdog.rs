//! The manager's watchdog: it hears that the daemon lives only when every reactor has answered, so that one that hangs has the daemon restarted.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Looks after the reactors until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    /// Hung up at the end.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Ask `answers` twice in each interval, and `tell` whenever it says yes.
    ///
    /// # Errors
    /// Where there is no thread for it.
    pub fn start(
        interval: Duration,
        answers: impl Fn() -> bool + Send + 'static,
        tell: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = channel::<()>();
        let watch = move || {
            let mut silent = false;
            loop {
                let lives = answers();
                if lives {
                    tell();
                } else if !silent {
                    tracing::error!(
                        "a reactor does not answer: the watchdog is not told that the daemon lives"
                    );
                }
                silent = !lives;
                if ended.recv_timeout(interval / 2) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("watchdog".into()).spawn(watch)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.end.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the watchdog panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Instant;

    #[test]
    fn it_is_told_while_all_answer_and_only_then() {
        let lives = Arc::new(AtomicBool::new(true));
        let (answers, (told, hear)) = (Arc::clone(&lives), channel());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let answers = move || {
            count.fetch_add(1, Ordering::SeqCst);
            answers.load(Ordering::SeqCst)
        };
        let watchdog = Watchdog::start(Duration::from_millis(2), answers, move || _ = told.send(())).unwrap();
        let patience = Duration::from_secs(60);
        for _ in 0..3 {
            hear.recv_timeout(patience).unwrap();
        }
        lives.store(false, Ordering::SeqCst);
        let looks = |more| {
            let (before, began) = (asked.load(Ordering::SeqCst), Instant::now());
            while asked.load(Ordering::SeqCst) < before + more {
                assert!(began.elapsed() < patience, "it looks no more");
                thread::sleep(Duration::from_millis(1));
            }
        };
        // One look may have been under way, and is told of before the next.
        looks(2);
        hear.try_iter().for_each(drop);
        looks(5);
        assert!(hear.try_recv().is_err(), "told though nobody answers");
        lives.store(true, Ordering::SeqCst);
        hear.recv_timeout(patience).unwrap();
        drop(watchdog);
        assert!(hear.iter().count() < 1000, "it goes on after its end");
    }
}
