//! End to end: the real `larder` on temporary files, and real clients that know nothing of it.
//!
//! One test binary, so that the tests share the machine's cores instead of following one another.

#[path = "../common/mod.rs"]
mod common;

mod allocators;
mod api;
mod cache_failure;
mod caching;
mod clients;
mod demos;
mod device;
mod drain;
mod epochs;
mod explore;
mod filesystem;
mod fio;
mod generate;
mod guests;
mod killed;
mod killed_errors;
mod killed_errors_ext4;
mod killed_errors_fio;
mod killed_ext4;
mod killed_fio;
mod killed_wb;
mod known_answers;
mod lost;
mod malformed;
mod many_tenants;
mod metrics;
mod migration;
mod missing_cache;
mod nbd_backing;
mod nbdsh;
mod neighbours;
mod notify;
mod ordered;
mod record;
mod reload;
mod replay;
mod restart;
mod shutdown;
mod status;
mod top;
mod ublk;
mod units;
mod upgrade;
mod volume_changes;
mod wear;
mod write_budget;
