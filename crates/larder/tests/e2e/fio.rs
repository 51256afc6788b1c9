//! fio with its own NBD engine on two tenants at once: checksummed blocks, written at random and verified, while the cache is too small and is
//! shared out anew every second.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::common::daemon::{Larder, count};
use crate::common::process::{program, run_within};
use crate::common::setup::{MIB, Setup};

const SIZE: u64 = 96 * MIB;

/// Block sizes, each in a third of its volume, so that no job overwrites what another one verifies.
const BLOCK_SIZES: [&str; 3] = ["4k", "64k", "1536"];

/// A fio job for each block size on each volume.
fn jobs(larder: &Larder) -> String {
    let mut text =
        "[global]\nioengine=nbd\niodepth=32\nverify=crc32c\nverify_state_save=0\ndo_verify=1\nverify_fatal=1\nthread=1\n\
        randrepeat=1\nnorandommap=0\ngroup_reporting=0\n"
            .to_owned();
    for volume in ["a0", "b0"] {
        for (part, size) in BLOCK_SIZES.iter().enumerate() {
            // Writes and reads mixed in one job, writes alone in the others; part of what was written is verified meanwhile.
            let rw = if *size == "4k" { "randrw" } else { "randwrite" };
            let third = SIZE / BLOCK_SIZES.len() as u64;
            let written = if *size == "1536" { third / 8 / 1536 * 1536 } else { third };
            text += &format!(
                "[{volume}-{size}]\nuri={}\nrw={rw}\nbs={size}\noffset={}\nsize={written}\nverify_backlog=512\n",
                larder.uri(volume),
                part as u64 * third,
            );
        }
    }
    text
}

#[test]
fn fio_verifies_two_tenants_at_once() {
    let larder = Setup::new("16MiB")
        .control("epoch = \"1s\"")
        .tenant("a", "write_policy = \"wt\"")
        .volume("a0", SIZE)
        .tenant("b", "")
        .volume("b0", SIZE)
        .start();
    let file = larder.path("jobs.fio");
    fs::write(&file, jobs(&larder)).expect("a job file");
    let mut fio = program("fio");
    fio.args(["--output-format=json"]).arg(&file);
    let outcome = run_within(Duration::from_secs(150), &mut fio, larder.folder());
    assert!(outcome.status.success(), "{}\n{}", outcome.stdout, outcome.stderr);

    // fio prints a line before its JSON.
    let json = outcome.stdout.find('{').map(|at| &outcome.stdout[at..]).expect("JSON");
    let report: Value = serde_json::from_str(json).expect("JSON");
    let jobs = report["jobs"].as_array().expect("a list of jobs");
    assert_eq!(jobs.len(), 2 * BLOCK_SIZES.len());
    for job in jobs {
        assert_eq!(job["error"], 0, "{}", job["jobname"]);
        assert!(count(&job["read"], "total_ios") > 0, "{} verified nothing", job["jobname"]);
    }
    let status = larder.status();
    let a = larder.tenant("a");
    assert!(count(&a, "evictions") > 0, "the cache was large enough for everything: {status:#}");
    assert!(count(&a, "read_hits") > 0 && count(&a, "read_misses") > 0, "{status:#}");
    larder.stop();
}
