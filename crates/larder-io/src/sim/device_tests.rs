//! What a simulated device does with its operations.

use super::super::Transfer;
use super::*;
use larder_engine::{BufOwner, RequestId};

const BUF: Buf = Buf { owner: BufOwner::Guest(RequestId(0)), offset: 0 };

fn write(offset: u64, len: u32, fua: bool) -> OpKind {
    OpKind::Write { offset, len, buf: BUF, fua }
}

fn device(model: FaultModel) -> SimDevice {
    SimDevice::new(1 << 16, model, 1)
}

fn memory(byte: u8) -> Memory {
    let mut memory = Memory::default();
    memory.add_guest(RequestId(0), vec![byte; 8192], false);
    memory
}

/// How many sectors of the device's first 16 hold this byte.
fn sectors_with(device: &SimDevice, byte: u8) -> usize {
    let mut bytes = vec![0; 8192];
    device.content().read(0, &mut bytes);
    bytes.chunks(512).filter(|s| s.iter().all(|&b| b == byte)).count()
}

#[test]
fn data_moves_when_the_model_says() {
    for (transfer, at_submission) in [(Transfer::Submission, 16), (Transfer::Completion, 0)] {
        let mut device = device(FaultModel { transfer, ..FaultModel::default() });
        let mut memory = memory(5);
        device.submit(OpId(0), write(0, 8192, false), &mut memory);
        assert_eq!(sectors_with(&device, 5), at_submission);
        assert_eq!(device.finish(OpId(0), &mut memory), Ok(()));
        assert_eq!(sectors_with(&device, 5), 16);
    }
}

#[test]
fn a_failing_write_tears_at_sectors() {
    let mut seen = [0; 17];
    for seed in 0..200 {
        let mut device = SimDevice::new(1 << 16, FaultModel::default(), seed);
        device.fail_next(FaultKind::Write, 1);
        let mut memory = memory(5);
        device.submit(OpId(0), write(0, 8192, false), &mut memory);
        assert!(device.finish(OpId(0), &mut memory).is_err());
        assert_eq!(sectors_with(&device, 5) + sectors_with(&device, 0), 16);
        seen[sectors_with(&device, 5)] += 1;
    }
    assert!(seen.iter().all(|&n| n > 0), "every number of sectors is possible: {seen:?}");
}

#[test]
fn faults_by_range_and_script_name_their_kind() {
    let mut device = device(FaultModel::default());
    let mut memory = memory(1);
    device.fail_range(FaultKind::Read, 512..1024);
    let mut run = |device: &mut SimDevice, kind| {
        device.submit(OpId(0), kind, &mut memory);
        device.finish(OpId(0), &mut memory)
    };
    let read = |offset| OpKind::Read { offset, len: 512, buf: BUF };
    assert_eq!(run(&mut device, read(512)), Err(IoError::Io));
    assert_eq!(run(&mut device, read(1024)), Ok(()));
    assert_eq!(run(&mut device, write(512, 512, false)), Ok(()));
    device.heal();
    assert_eq!(run(&mut device, read(512)), Ok(()));
    device.fail_next(FaultKind::Flush, 1);
    assert_eq!(run(&mut device, OpKind::Flush), Err(IoError::Io));
    assert_eq!(run(&mut device, OpKind::Flush), Ok(()));
    assert_eq!((device.started(FaultKind::Read), device.started_bytes(FaultKind::Read)), (3, 3 * 512));
}

#[test]
fn a_flush_covers_what_completed_before_it() {
    let mut device = device(FaultModel::default());
    let mut memory = memory(1);
    device.submit(OpId(0), write(0, 512, false), &mut memory);
    assert!(device.finish(OpId(0), &mut memory).is_ok());
    let mark = device.completions();
    device.submit(OpId(1), OpKind::Flush, &mut memory);
    device.submit(OpId(2), write(512, 512, false), &mut memory);
    assert!(device.finish(OpId(2), &mut memory).is_ok());
    assert_eq!(device.volatile_before(mark), Some(0));
    assert!(device.finish(OpId(1), &mut memory).is_ok());
    assert_eq!(device.volatile_before(mark), None);
    assert!(device.is_durable(0) && !device.is_durable(1));
    device.submit(OpId(3), write(512, 512, true), &mut memory);
    assert!(device.finish(OpId(3), &mut memory).is_ok());
    assert!(device.is_durable(1));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let model = FaultModel { write_error: 0.3, ..FaultModel::default() };
        let mut device = SimDevice::new(1 << 16, model, seed);
        let mut memory = memory(9);
        let mut log = Vec::new();
        for n in 0..50 {
            let ticks = device.submit(OpId(n), write(u64::from(n) * 512, 4096, false), &mut memory);
            log.push((ticks, device.finish(OpId(n), &mut memory), sectors_with(&device, 9)));
        }
        log
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_write_may_be_lost_or_land_elsewhere_and_nobody_is_told() {
    let mut device = device(FaultModel::default());
    let mut memory = memory(5);
    device.strike_next(FaultKind::Write, 0..8192, Strike::Lose);
    device.strike_next(FaultKind::Write, 0..8192, Strike::Misdirect(4096));
    for (kind, sectors) in
        [(write(8192, 512, false), 0), (write(0, 1024, false), 0), (write(0, 512, false), 1)]
    {
        device.submit(OpId(0), kind, &mut memory);
        assert_eq!(device.finish(OpId(0), &mut memory), Ok(()));
        assert_eq!(sectors_with(&device, 5), sectors);
    }
    let mut there = [0];
    device.content().read(4096 + 511, &mut there);
    assert_eq!(there, [5]);
}

#[test]
fn a_device_that_is_gone_does_nothing_and_comes_back_as_it_was() {
    let mut device = device(FaultModel::default());
    let mut memory = memory(5);
    for (gone, result, sectors) in [(true, Err(IoError::Io), 0), (false, Ok(()), 2)] {
        device.set_gone(gone);
        device.submit(OpId(0), write(0, 1024, false), &mut memory);
        assert_eq!((device.finish(OpId(0), &mut memory), sectors_with(&device, 5)), (result, sectors));
    }
}

#[test]
fn a_longer_device_has_zeroes_at_its_end() {
    let mut device = device(FaultModel { power_cuts: true, ..FaultModel::default() });
    let mut memory = memory(5);
    device.submit(OpId(0), write(0, 8192, false), &mut memory);
    assert_eq!(device.finish(OpId(0), &mut memory), Ok(()));
    device.resize(1536);
    device.resize(1 << 16);
    assert_eq!((sectors_with(&device, 5), sectors_with(&device, 0)), (3, 13));
    device.power_cut(&mut memory, false, &mut Rng::new(1));
    assert!(sectors_with(&device, 5) <= 3, "what was cut off does not come back");
}
