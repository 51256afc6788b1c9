//! The requests of a workload: of a trace as it is, of a generator behind a page cache, of two traces one after the other.

use larder_policy::Cache;
use larder_policy::replacement::lru::Lru;
use larder_sim::{BlockSize, Source};
use larder_trace::{Generated, Request, RequestKind};

use crate::input::Input;
use crate::problem::Problem;

/// Any of them.
pub struct Stream(pub Box<dyn Source<Error = Problem>>);

impl Source for Stream {
    type Error = Problem;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, Problem> {
        self.0.read(out, max)
    }
}

/// A trace, or its first reads and writes.
pub struct Limited {
    input: Input,
    /// How many may still come.
    left: u64,
}

impl Limited {
    /// At most `limit` of them.
    pub fn new(input: Input, limit: Option<u64>) -> Self {
        Self { input, left: limit.unwrap_or(u64::MAX) }
    }
}

impl Source for Limited {
    type Error = Problem;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, Problem> {
        let max = max.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if max == 0 {
            return Ok(false);
        }
        let before = out.len();
        let more = self.input.read_batch(out, max)?;
        self.left -= out[before..].iter().filter(|request| is_access(request)).count() as u64;
        Ok(more)
    }
}

/// What a disk sees below a page cache: the reads that miss in it, and all writes.
///
/// So is made what section III-B of the paper finds in traces: "Assuming page cache has a capacity of C_0 blocks and uses LRU algorithm, […] no block will be
/// accessed twice within C_0 requests", which "only stands for read requests […] because dirty blocks in page cache are flushed back".
pub struct BelowPageCache {
    above: Generated,
    page_cache: Cache<Lru>,
    left: u64,
}

impl BelowPageCache {
    /// The first `limit` requests that come through a page cache of so many blocks; each of `above` is for one block.
    pub fn new(above: Generated, page_cache_blocks: u32, limit: Option<u64>) -> Self {
        Self { above, page_cache: Cache::new(page_cache_blocks, Lru::new()), left: limit.unwrap_or(u64::MAX) }
    }
}

impl Source for BelowPageCache {
    type Error = Problem;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, Problem> {
        let max = max.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let (cache, before) = (&mut self.page_cache, out.len());
        let mut comes_through = |request: &Request| {
            let absorbed = cache.access(BlockSize::DEFAULT.blocks_of(request).start);
            !(absorbed && request.kind == RequestKind::Read)
        };
        out.extend(self.above.by_ref().filter(|request| comes_through(request)).take(max));
        let read = out.len() - before;
        self.left -= read as u64;
        Ok(read > 0)
    }
}

/// A stream in requests of one block each, as the paper's simulator takes them: what is counted per request is counted per block.
pub struct SingleBlocks<S> {
    source: S,
    ready: Vec<Request>,
    /// How many of `ready` are done.
    done: usize,
    /// How many blocks of the next one are done.
    blocks: u64,
}

impl<S> SingleBlocks<S> {
    /// The same accesses as `source`.
    pub fn new(source: S) -> Self {
        Self { source, ready: Vec::new(), done: 0, blocks: 0 }
    }

    /// The next request, cut.
    fn next(&mut self) -> Option<Request> {
        let block = BlockSize::DEFAULT;
        while let Some(request) = self.ready.get(self.done) {
            if !is_access(request) {
                self.done += 1;
                return Some(*request);
            }
            let at = block.blocks_of(request).start + self.blocks;
            if at < block.blocks_of(request).end {
                self.blocks += 1;
                let offset = at * u64::from(block.bytes());
                // The last block of a volume of 2^64 bytes ends one byte early.
                let len = u64::from(block.bytes()).min(u64::MAX - offset) as u32;
                return Some(Request { offset, len, ..*request });
            }
            (self.done, self.blocks) = (self.done + 1, 0);
        }
        None
    }
}

impl<S: Source> Source for SingleBlocks<S> {
    type Error = S::Error;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, S::Error> {
        let before = out.len();
        while out.len() - before < max {
            match self.next() {
                Some(request) => out.push(request),
                None => {
                    self.ready.clear();
                    self.done = 0;
                    if !self.source.read(&mut self.ready, max)? {
                        break;
                    }
                }
            }
        }
        Ok(out.len() > before)
    }
}

/// Two streams, one after the other. Both number their volumes from 0, so that they are requests for the same disks. Times stay as they are: what is counted
/// here is counted in the order of requests.
pub struct Joined<S> {
    first: Option<S>,
    second: S,
}

impl<S> Joined<S> {
    /// `first`, then `second`.
    pub fn new(first: S, second: S) -> Self {
        Self { first: Some(first), second }
    }
}

impl<S: Source> Source for Joined<S> {
    type Error = S::Error;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, S::Error> {
        if let Some(first) = &mut self.first {
            if first.read(out, max)? {
                return Ok(true);
            }
            self.first = None;
        }
        self.second.read(out, max)
    }
}

fn is_access(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::TraceName;
    use larder_sim::Requests;
    use larder_trace::GeneratorSpec;
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::ffi::OsString;

    fn all<S: Source>(mut source: S, max: usize) -> Vec<Request>
    where
        S::Error: std::fmt::Debug,
    {
        let mut out = Vec::new();
        while source.read(&mut out, max).expect("requests") {}
        out
    }

    fn request(kind: RequestKind, offset: u64, len: u32) -> Request {
        Request { time_ns: 7, volume: 3, kind, offset, len }
    }

    #[test]
    fn a_limit_counts_reads_and_writes() {
        let trace = TraceName::from(OsString::from("gen:sequential:blocks=9,requests=9"));
        let limited = |limit| all(Limited::new(trace.open(None).expect("a trace"), limit), 4).len();
        assert_eq!([limited(None), limited(Some(5)), limited(Some(0)), limited(Some(99))], [9, 5, 0, 9]);
    }

    #[test]
    fn no_read_comes_again_within_the_page_cache() {
        const PAGES: u32 = 50;
        let spec: GeneratorSpec =
            "zipf:theta=1.0,blocks=1000,requests=20000,read=0.8".parse().expect("a workload");
        let below = all(BelowPageCache::new(spec.open(), PAGES, None), 7);
        let above: Vec<_> = spec.open().collect();
        assert!(below.len() > 1000 && below.len() < above.len());
        let writes = |requests: &[Request]| {
            requests.iter().filter(|request| request.kind == RequestKind::Write).count()
        };
        assert_eq!(writes(&below), writes(&above), "writes come through");
        let mut last = BTreeMap::new();
        for (at, request) in below.iter().enumerate() {
            let before: Option<usize> = last.insert(request.offset, at);
            if let (RequestKind::Read, Some(before)) = (request.kind, before) {
                let between: std::collections::BTreeSet<_> =
                    above_between(&above, below[before].time_ns, request.time_ns).collect();
                assert!(between.len() >= PAGES as usize, "{} blocks between", between.len());
            }
        }
        assert_eq!(all(BelowPageCache::new(spec.open(), PAGES, Some(100)), 7), below[..100]);
    }

    /// The blocks of the requests between two times.
    fn above_between(above: &[Request], from: u64, to: u64) -> impl Iterator<Item = u64> {
        let (from, to) =
            (above.partition_point(|r| r.time_ns <= from), above.partition_point(|r| r.time_ns < to));
        above[from..to].iter().map(|request| request.offset)
    }

    #[test]
    fn requests_are_cut_into_blocks() {
        let requests = [
            request(RequestKind::Write, 4095, 4098),
            request(RequestKind::Flush, 0, 0),
            request(RequestKind::Read, 9000, 0),
            request(RequestKind::Read, 8192, 1),
            request(RequestKind::Read, u64::MAX - 1, 1),
        ];
        let expected = [
            request(RequestKind::Write, 0, 4096),
            request(RequestKind::Write, 4096, 4096),
            request(RequestKind::Write, 8192, 4096),
            request(RequestKind::Flush, 0, 0),
            request(RequestKind::Read, 8192, 4096),
            request(RequestKind::Read, u64::MAX - 4095, 4095),
        ];
        for max in 1..8 {
            assert_eq!(all(SingleBlocks::new(Requests(requests.into_iter())), max), expected, "by {max}");
        }
    }

    #[test]
    fn the_second_follows_the_first() {
        let part = |offsets: [u64; 2]| {
            Requests(offsets.map(|offset| request(RequestKind::Read, offset, 1)).into_iter())
        };
        let joined: Result<_, Infallible> = Ok(all(Joined::new(part([1, 2]), part([3, 4])), 5));
        assert_eq!(joined.map(|all| all.iter().map(|r| r.offset).collect::<Vec<_>>()), Ok(vec![1, 2, 3, 4]));
    }
}
