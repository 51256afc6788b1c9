//! Where a tenant's last requests ended: whether another one goes on there, and whether the one that ended there was let in.

/// Ends that are remembered.
const STREAMS: usize = 32;

/// The streams of one tenant. Keys of neighbouring blocks follow each other. Ends are forgotten in turn, also that of a stream that goes on: one request of it
/// then counts as one elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// The keys after the last ones.
    ends: [u64; STREAMS],
    /// The last request of it was let in.
    entered: [bool; STREAMS],
    /// The one that is forgotten next.
    next: usize,
}

impl Default for Streams {
    fn default() -> Self {
        Self { ends: [u64::MAX; STREAMS], entered: [false; STREAMS], next: 0 }
    }
}

impl Streams {
    /// A request for blocks with keys from `first` to `last`: its stream, and, if it goes on where one of the last requests ended, whether that was let in.
    pub(super) fn go_on(&mut self, first: u64, last: u64) -> (usize, Option<bool>) {
        let known = self.ends.iter().position(|&end| end == first);
        let stream = known.unwrap_or(self.next);
        self.ends[stream] = last.wrapping_add(1);
        if known.is_none() {
            self.next = (self.next + 1) % STREAMS;
        }
        (stream, known.map(|stream| self.entered[stream]))
    }

    /// The last request of a stream was let in, or not.
    pub(super) fn entered(&mut self, stream: usize, entered: bool) {
        self.entered[stream] = entered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_beside_each_other_are_told_from_other_requests() {
        let mut streams = Streams::default();
        let requests = [(1, 2), (100, 100), (3, 3), (101, 102), (3, 3), (4, 5)];
        let go_on = requests.map(|(first, last)| streams.go_on(first, last).1.is_some());
        assert_eq!(go_on, [false, false, true, true, false, true]);
    }

    #[test]
    fn the_oldest_end_is_forgotten() {
        let mut streams = Streams::default();
        (0..=STREAMS as u64).for_each(|at| _ = streams.go_on(at * 100, at * 100));
        assert!(streams.go_on(101, 101).1.is_some() && streams.go_on(1, 1).1.is_none());
    }

    #[test]
    fn of_a_stream_is_known_whether_its_last_request_was_let_in() {
        let mut streams = Streams::default();
        let (stream, before) = streams.go_on(7, 8);
        assert_eq!(before, None);
        streams.entered(stream, true);
        assert_eq!(streams.go_on(50, 50).1, None);
        let (same, before) = streams.go_on(9, 9);
        assert_eq!((same, before), (stream, Some(true)));
        streams.entered(same, false);
        assert_eq!(streams.go_on(10, 12).1, Some(false));
    }
}
