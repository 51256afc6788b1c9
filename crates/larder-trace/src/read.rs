//! One reader per format: each turns an input into a [`Source`](crate::source::Source).

pub(crate) mod alibaba;
pub(crate) mod ascii;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod bytes;
pub(crate) mod columns;
pub(crate) mod fio;
pub(crate) mod fiu;
pub(crate) mod libcachesim;
pub(crate) mod lines;
pub(crate) mod lis;
pub(crate) mod msr;
pub(crate) mod oracle_general;
pub(crate) mod parquet;
pub(crate) mod plain;
pub(crate) mod spc;
pub(crate) mod srt;
pub(crate) mod systor;
pub(crate) mod tencent;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod vscsi;
