//! A server that is there and does not answer: the log is told, since nobody else can tell why a guest hangs.

const SECOND_NS: u64 = 1_000_000_000;
/// A request that waits for so long is worth a line.
const SILENT_NS: u64 = 10 * SECOND_NS;
/// Between lines about the same silence.
const AGAIN_NS: u64 = 60 * SECOND_NS;

/// Watches the oldest request in flight, on the reactor's clock.
#[derive(Debug, Default)]
pub(super) struct Silence {
    next_look_ns: u64,
    told_ns: Option<u64>,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A request has waited for this long.
    Silent { seconds: u64 },
    /// No request waits for long any more.
    Answers,
}

impl Silence {
    /// True once per second: time to look.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let due = now_ns >= self.next_look_ns;
        if due {
            self.next_look_ns = now_ns + SECOND_NS;
        }
        due
    }

    /// What to tell the log, where the oldest request in flight is from `oldest_ns`.
    pub fn look(&mut self, now_ns: u64, oldest_ns: Option<u64>) -> Option<Word> {
        let age = now_ns.saturating_sub(oldest_ns.unwrap_or(now_ns));
        if age < SILENT_NS {
            return self.told_ns.take().map(|_| Word::Answers);
        }
        if self.told_ns.is_some_and(|told| now_ns.saturating_sub(told) < AGAIN_NS) {
            return None;
        }
        self.told_ns = Some(now_ns);
        Some(Word::Silent { seconds: age / SECOND_NS })
    }

    /// True while the log says that the server is silent.
    #[cfg(test)]
    pub fn is_told(&self) -> bool {
        self.told_ns.is_some()
    }

    /// The connection broke, which is told elsewhere.
    pub fn end(&mut self) {
        self.told_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_after_ten_seconds_then_each_minute_and_its_end_once() {
        let mut silence = Silence::default();
        let mut told = Vec::new();
        for second in 0..200 {
            let oldest = (5..150).contains(&second).then_some(5 * SECOND_NS);
            let word = silence.look(second * SECOND_NS, oldest);
            told.extend(word.map(|word| (second, word)));
        }
        let silent = |seconds| (seconds + 5, Word::Silent { seconds });
        assert_eq!(told, [silent(10), silent(70), silent(130), (150, Word::Answers)]);
    }

    #[test]
    fn a_broken_connection_ends_it_without_a_word() {
        let mut silence = Silence::default();
        assert!(silence.look(SILENT_NS, Some(0)).is_some());
        silence.end();
        assert_eq!(silence.look(SILENT_NS, None), None);
        assert!(silence.is_due(0) && !silence.is_due(SECOND_NS - 1) && silence.is_due(SECOND_NS));
    }
}
