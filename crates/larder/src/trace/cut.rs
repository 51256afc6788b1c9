//! `larder trace cut`: a part of a trace.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use larder_trace::{Request, RequestKind, Volume};

use super::destination::Destination;
use super::interrupt::Interrupt;
use super::options::{Cut, Part};
use super::output::Output;
use super::{Failure, Next, for_each, tell, text};
use crate::input::TraceName;
use crate::problem::Problem;

/// Names that an error lists.
const LISTED: usize = 20;

/// Do what the options say.
pub fn cut(options: &Cut) -> Result<(), Failure> {
    if options.part.from.zip(options.part.to).is_some_and(|(from, to)| from >= to) {
        return Err(Problem::new("--from is not before --to", "swap the two").into());
    }
    let destination = Destination::new(&options.out, options.out_format, options.care.force)?;
    destination.check(std::slice::from_ref(&options.trace))?;
    let interrupt = Interrupt::listen()?;
    let mut input = options.trace.open(options.format)?;
    let mut filter = Filter::new(&options.part);
    let mut output = Output::new(destination, options.care)?;
    for_each(&mut input, &interrupt, |request, volume| {
        if let Some(part) = filter.part(request, volume) {
            output.write(&part, volume)?;
        }
        Ok(if filter.is_past() { Next::Enough } else { Next::More })
    })?;
    if !filter.is_past() {
        filter.check_names(&options.trace, input.volumes())?;
    }
    let written = output.finish()?;
    if written.requests() == 0 {
        tell(&format!("note: no request of {} is in that part\n", options.trace));
    }
    written.commit_and_tell()
}

/// Tells what is kept.
struct Filter<'a> {
    part: &'a Part,
    /// When it begins and ends, in nanoseconds from the first request on.
    from_ns: u64,
    to_ns: Option<u64>,
    requests: Range<u64>,
    /// The number of the next request.
    next: u64,
    first_ns: Option<u64>,
}

impl<'a> Filter<'a> {
    fn new(part: &'a Part) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            part,
            from_ns: part.from.map_or(0, ns),
            to_ns: part.to.map(ns),
            requests: part.requests.clone().unwrap_or(0..u64::MAX),
            next: 0,
            first_ns: None,
        }
    }

    /// What is kept of the next request of the trace.
    fn part(&mut self, request: &Request, volume: &Volume) -> Option<Request> {
        let number = self.next;
        self.next += 1;
        let first_ns = *self.first_ns.get_or_insert(request.time_ns);
        let since_ns = request.time_ns.saturating_sub(first_ns);
        let is_in_time = since_ns >= self.from_ns && self.to_ns.is_none_or(|to_ns| since_ns < to_ns);
        let is_kept = self.requests.contains(&number) && is_in_time && self.is_named(volume);
        if is_kept { self.clipped(request) } else { None }
    }

    fn is_named(&self, volume: &Volume) -> bool {
        let Part { volume: volumes, tenant: tenants, .. } = self.part;
        (tenants.is_empty() || tenants.contains(&volume.tenant))
            && (volumes.is_empty() || volumes.contains(&volume.to_string()))
    }

    /// The request within the range of bytes.
    fn clipped(&self, request: &Request) -> Option<Request> {
        let Some(range) = self.part.range.clone().filter(|_| request.kind != RequestKind::Flush) else {
            return Some(*request);
        };
        let end = request.offset.saturating_add(request.len.into());
        if request.len == 0 {
            return range.contains(&request.offset).then_some(*request);
        }
        let (offset, end) = (request.offset.max(range.start), end.min(range.end));
        // No longer than it was.
        let len = end.checked_sub(offset).filter(|&len| len > 0)? as u32;
        Some(Request { offset, len, ..*request })
    }

    /// True if no request is kept any more.
    fn is_past(&self) -> bool {
        self.next >= self.requests.end
    }

    /// An error if a volume or tenant was asked for that there is not in a trace read to its end.
    fn check_names(&self, trace: &TraceName, volumes: &[Volume]) -> Result<(), Problem> {
        let tenants = volumes.iter().map(|volume| volume.tenant.clone()).filter(|tenant| !tenant.is_empty());
        let kinds: [(_, _, BTreeSet<String>); 2] = [
            ("volume", &self.part.volume, volumes.iter().map(Volume::to_string).collect()),
            ("tenant", &self.part.tenant, tenants.collect()),
        ];
        for (what, asked, known) in kinds {
            if let Some(missing) = asked.iter().find(|name| !known.contains(*name)) {
                let problem = format!("{trace}: there is no {what} {missing:?}");
                return Err(Problem::new(problem, format!("{what}s there: {}", list(&known))));
            }
        }
        Ok(())
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let listed: Vec<_> = names.iter().take(LISTED).map(|name| text::name(name)).collect();
    match names.len().saturating_sub(LISTED) {
        _ if names.is_empty() => "none".to_owned(),
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(time_ns: u64, offset: u64, len: u32) -> Request {
        Request { time_ns, volume: 0, kind: RequestKind::Read, offset, len }
    }

    /// Offsets and lengths of what is kept.
    fn kept(part: &Part, requests: &[Request]) -> Vec<(u64, u32)> {
        let (mut filter, volume) = (Filter::new(part), Volume::new("web", 1));
        let kept = requests.iter().filter_map(|request| filter.part(request, &volume));
        kept.map(|request| (request.offset, request.len)).collect()
    }

    #[test]
    fn all_is_kept_without_conditions() {
        assert_eq!(kept(&Part::default(), &[request(0, 1, 2), request(u64::MAX, u64::MAX - 1, 1)]).len(), 2);
    }

    #[test]
    fn times_count_from_the_first_request() {
        let second = Duration::from_secs(1);
        let requests = [7, 8, 9, 10, 3].map(|time| request(time * 1_000_000_000, time, 1));
        let offsets = |part: &Part| kept(part, &requests).iter().map(|kept| kept.0).collect::<Vec<_>>();
        assert_eq!(offsets(&Part { from: Some(second), ..Part::default() }), [8, 9, 10]);
        assert_eq!(offsets(&Part { to: Some(second), ..Part::default() }), [7, 3]);
        assert_eq!(offsets(&Part { from: Some(second), to: Some(second * 3), ..Part::default() }), [8, 9]);
        assert_eq!(offsets(&Part { from: Some(Duration::MAX), ..Part::default() }), [0; 0]);
    }

    #[test]
    fn requests_count_from_0() {
        let part = Part { requests: Some(1..3), ..Part::default() };
        assert_eq!(kept(&part, &[0, 1, 2, 3].map(|number| request(0, number, 1))), [(1, 1), (2, 1)]);
    }

    #[test]
    fn volumes_and_tenants_go_by_their_names() {
        for (volumes, tenants, count) in [
            (&["web_1"][..], &[][..], 1),
            (&["x", "web_1"], &["web", "y"], 1),
            (&[], &["web"], 1),
            (&["web_1"], &["y"], 0),
            (&["web"], &[], 0),
        ] {
            let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let part = Part { volume: names(volumes), tenant: names(tenants), ..Part::default() };
            assert_eq!(kept(&part, &[request(0, 0, 1)]).len(), count, "{part:?}");
        }
    }

    #[test]
    fn requests_are_clipped_to_the_range() {
        let part = Part { range: Some(100..200), ..Part::default() };
        let requests = [
            (0, 100),
            (0, 101),
            (50, 200),
            (150, 10),
            (199, 9),
            (200, 5),
            (0, 0),
            (100, 0),
            (u64::MAX - 1, 1),
        ];
        let expected = [(100, 1), (100, 100), (150, 10), (199, 1), (100, 0)];
        assert_eq!(kept(&part, &requests.map(|(offset, len)| request(0, offset, len))), expected);
        let flush = Request { kind: RequestKind::Flush, ..request(0, 0, 0) };
        assert_eq!(kept(&part, &[flush]), [(0, 0)]);
    }
}
