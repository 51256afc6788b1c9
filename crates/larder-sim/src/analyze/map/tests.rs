use super::*;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// Time, volume, kind, first byte, bytes.
type Access = (u64, u32, RequestKind, u64, u32);

fn map(stretches: Stretches, accesses: &[Access]) -> AddressMap {
    let mut map = Map::of(stretches);
    for (number, &(ns, volume, kind, offset, len)) in (0..).zip(accesses) {
        let request = Request { time_ns: ns, volume, kind, offset, len };
        let blocks = BlockSize::DEFAULT.blocks_of(&request);
        map.access(&request, &blocks, Start { requests: number, ns }, BlockSize::DEFAULT);
    }
    map.finish(accesses.last().map_or(0, |last| last.0))
}

fn whole(accesses: &[Access]) -> AddressMap {
    map(Stretches::new(SHIFT, STRETCHES), accesses)
}

use RequestKind::{Read, Write};

#[test]
fn volumes_lie_one_behind_the_other() {
    let accesses = [
        (0, 0, Read, 0, 4096),
        (SECOND, 2, Write, 128 * KIB - 4096, 8192),
        (2 * SECOND, 0, Read, 256 * KIB, 512),
    ];
    let map = whole(&accesses);
    assert_eq!(map.volumes, [(0, 0), (2, 260 * KIB)]);
    // 260 and 132 KiB in rows of 128.
    assert_eq!((map.row_bytes, map.rows, map.columns), (128 * KIB, 4, 65));
    assert_eq!((map.column_ns * 32, map.column_requests), (SECOND, 0));
    let at = |cells: &[u64]| -> Vec<_> {
        (0..cells.len()).filter(|&at| cells[at] > 0).map(|at| (at / 65, at % 65, cells[at])).collect()
    };
    assert_eq!(at(&map.reads), [(0, 0, 1), (2, 64, 1)]);
    // The second volume begins in the third row; its second stretch begins in the fourth.
    assert_eq!(at(&map.writes), [(2, 32, 1), (3, 32, 1)]);
}

#[test]
fn a_trace_without_times_is_told_by_requests() {
    let accesses: Vec<_> = (0..300).map(|at| (5, 0, Read, at * 128 * KIB, 4096)).collect();
    let map = whole(&accesses);
    assert_eq!((map.column_ns, map.column_requests, map.columns), (0, 4, 75));
    assert_eq!((map.row_bytes, map.rows), (512 * KIB, 75));
    for (at, &reads) in map.reads.iter().enumerate() {
        assert_eq!(reads, if at / 75 == at % 75 { 4 } else { 0 });
    }
}

#[test]
fn nothing_makes_no_map_and_one_request_a_small_one() {
    let nothing = whole(&[]);
    assert_eq!((nothing.rows, nothing.columns, nothing.reads.len(), nothing.volumes.len()), (0, 0, 0, 0));
    let of_no_bytes = whole(&[(0, 0, Read, 0, 0)]);
    assert_eq!((of_no_bytes.rows, of_no_bytes.columns), (0, 0));
    let one = whole(&[(0, 3, Write, 8192, 4096)]);
    assert_eq!((one.rows, one.columns, one.volumes), (1, 1, vec![(3, 0)]));
    assert_eq!((one.reads, one.writes), (vec![0], vec![1]));
}

#[test]
fn addresses_may_be_as_large_as_they_can() {
    let map = whole(&[
        (0, 0, Read, u64::MAX - 4096, 4096),
        (0, 1, Write, u64::MAX - 4096, 4096),
        (0, u32::MAX, Read, 0, 1),
    ]);
    assert!(map.rows as u64 <= ROWS);
    assert_eq!((map.reads.iter().sum::<u64>(), map.writes.iter().sum::<u64>()), (3, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The sums over all rows are those of a plain count of the columns, and each volume's accesses lie in its rows.
    #[test]
    fn no_access_is_lost_and_none_strays(
        accesses in prop::collection::vec(
            (0u64..SECOND / 50, 0u32..40, any::<bool>(), 0u64..64, prop_oneof![Just(0u32), 1u32..3 * MIB as u32]), 0..150,
        ),
        most in (4usize..40).prop_map(|half| 2 * half),
    ) {
        let mut now = 0;
        let accesses: Vec<Access> = accesses.into_iter().map(|(gap, volume, read, at, len)| {
            now += gap;
            (now, volume, if read { Read } else { Write }, at * MIB, len)
        }).collect();
        let told = map(Stretches::new(SHIFT, most), &accesses);
        prop_assert!(told.columns <= COLUMNS && told.rows as u64 <= ROWS);
        let (mut reads, mut writes) = (vec![0; told.columns], vec![0; told.columns]);
        for (number, &(ns, _, kind, _, len)) in accesses.iter().enumerate().filter(|(_, access)| access.4 > 0) {
            let column = match told.column_ns {
                0 => number as u64 / told.column_requests,
                width => ns / width,
            };
            let counts = if kind == Read { &mut reads } else { &mut writes };
            counts[column as usize] += u64::from(len.div_ceil(4096));
        }
        let sums = |cells: &[u64]| -> Vec<u64> {
            (0..told.columns).map(|column| cells.iter().skip(column).step_by(told.columns).sum()).collect()
        };
        prop_assert_eq!(sums(&told.reads), reads);
        prop_assert_eq!(sums(&told.writes), writes);
        let mut volumes = accesses.iter().filter(|access| access.4 > 0).map(|access| access.1).collect::<Vec<_>>();
        volumes.sort_unstable();
        volumes.dedup();
        prop_assert_eq!(told.volumes.iter().map(|volume| volume.0).collect::<Vec<_>>(), volumes.clone());
        if volumes.len() == 1 {
            let first = accesses.iter().filter(|access| access.4 > 0).map(|access| access.3).min().unwrap_or(0);
            let touched = (0..told.rows).find(|row| (0..told.columns).any(|column| told.reads[row * told.columns + column] + told.writes[row * told.columns + column] > 0));
            prop_assert_eq!(touched, Some((first / told.row_bytes) as usize));
        }
    }
}

#[test]
fn a_huge_request_takes_no_more_memory_than_others() {
    let mut map = Map::new();
    let request = Request { time_ns: 0, volume: 0, kind: Read, offset: 0, len: u32::MAX };
    let blocks = BlockSize::DEFAULT.blocks_of(&request);
    map.access(&request, &blocks, Start { requests: 0, ns: 0 }, BlockSize::DEFAULT);
    assert!(map.by_time.rows.capacity() <= 2 * STRETCHES);
    let map = map.finish(0);
    assert_eq!((map.rows, map.reads.iter().sum()), (128, 1u64 << 20));
}
