//! The command line: what can be asked of `larder`, and its help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use larder_daemon::units::parse_size;

use crate::cache::options::CacheOptions;
use crate::trace::options::TraceOptions;

use crate::analyze;
use crate::doctor;
use crate::plan;
use crate::replay;
use crate::reproduce;
use crate::simulate;
use crate::top;
use crate::trace::record;

/// A host-side SSD cache for the disks of virtual machines and containers.
#[derive(Debug, Parser)]
#[command(name = "larder", version, about, long_about = None, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Logs go to stderr; RUST_LOG=debug makes them talkative, RUST_LOG=warn silent.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the volumes of a configuration until SIGTERM or SIGINT.
    ///
    /// Nothing is written before everything is validated: the configuration, the backings, the cache device, the
    /// addresses to listen on. Lines in the log give each volume's NBD URI and vhost-user socket, and a line "ready" tells that
    /// clients may connect.
    Serve(Serve),
    /// Show what a running daemon does: sizes, hit ratios, SSD writes, decisions and their reasons.
    Status(Status),
    /// Watch the tenants of a running daemon: what each holds, hits, asks for, waits, writes to the SSD, and the last decision.
    Top(top::Options),
    /// Look at the configuration, the devices, the kernel, the permissions and the cache's state, and say what to mend.
    ///
    /// Each thing is ok, a warning (it works, and could be better or will not last), or a problem (something is not served). Nothing is written or started. Where no daemon runs, and nothing else stands in
    /// the way, it ends with what `larder serve --check` does, which makes sockets and removes them.
    Doctor(doctor::Options),
    /// Have a running daemon write all dirty blocks of a tenant or a volume to their backings, and wait until they are durable there.
    ///
    /// Meanwhile writes go to backing and cache; then write-back goes on as before. Interrupted (Ctrl-C), the daemon goes on without telling.
    Flush(Flush),
    /// The same, and nothing becomes dirty again until --off, or the daemon's next start: before a backing is moved or the cache device pulled.
    Drain(Drain),
    /// Have a running daemon read its configuration again: tenants and volumes that are new in it are served, those that are gone from it no more.
    ///
    /// A volume that is to leave must not be in use; what is dirty of it is written back first. Everything else that the file says needs a restart.
    /// SIGHUP (`systemctl reload`) does the same, and tells in the log.
    Reload(Reload),
    /// Change who decides, how often, and what is wanted for a tenant, while the daemon runs.
    ///
    /// Of the daemon: allocator (larder, centaur, eci, scave, wss, unified, combined, static), epoch, write_budget. Of a tenant: quota, max, write_policy, population, weight, share, latency, iops. Values are written as in
    /// larder.toml, which stays as it is; `none` takes an optional one away, `default` gives back what the file says. It is kept over restarts.
    Set(Set),
    /// Show what was decided about tenants lately: by what, what was expected, and what came.
    Decisions(Decisions),
    /// Show what every size would bring to a tenant, by what it did lately: hits, latency and SSD writes, for each way in which its cache can work.
    Curves(Curves),
    /// Try out another size of a tenant, dry: what it would bring, and what the others would lose. Nothing changes.
    ///
    /// By what was found at the last decision, and the curves alone; the allocator divides the rest of the cache among the others.
    #[command(after_help = "Example:\n  larder what-if db 20GiB")]
    WhatIf(WhatIf),
    /// Look at the daemon's configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Tell how guests, containers and the host get at a volume.
    #[command(subcommand)]
    Volume(Volume),
    /// Make, look at, repair and empty a cache that no daemon has open.
    Cache(CacheOptions),
    /// Look at block traces, convert them, cut them up and put them together.
    Trace(TraceOptions),
    /// Tell what caches of many sizes under many policies would do with a trace: hits, SSD writes, backing traffic; or what
    /// allocators bring to tenants that share a cache (--tenant, --scenario): latencies, IOPS, SSD writes.
    Simulate(Box<simulate::Options>),
    /// Tell how much cache a workload can use, what it would bring, and what it would cost in SSD writes.
    ///
    /// Reuse distances of all accesses (TRD) and of re-reads (URD), request classes, hot regions, and the curves of hits, SSD writes and backing
    /// writes over every cache size under each write policy: as a summary, a report in HTML, pictures, or JSON.
    Analyze(Box<analyze::Options>),
    /// Tell which SSD to buy as a cache: latency, hits, load of the backing, years until it is worn out, for sizes and endurances.
    Plan(Box<plan::Options>),
    /// Put the requests of a trace to a real device, file or NBD export, and tell how long they take; check what was written.
    ///
    /// At the times of the trace, or with a number of requests outstanding. Latencies of reads and writes (mean, 50, 95, 99, 99.9 %, max), and how late requests
    /// were sent. What is on the target is lost if the trace writes, so that has to be agreed to.
    Replay(Box<replay::Options>),
    /// Write the requests of a running daemon's guests to a file, as a trace for `larder analyze`, `simulate` and `replay`.
    ///
    /// From now on until --for, --max-requests or Ctrl-C; times are since the beginning. OUT appears when it is whole. Guests never wait for a recording: what comes too fast
    /// for it is missing, counted, and an error at the end. Write-zeroes are recorded as discards, as a cache takes them.
    Record(record::Options),
    /// Run the experiments of papers again, and hold their claims against what is found.
    Reproduce(reproduce::Options),
    /// Write manual pages and completions of shells, for packages.
    #[command(hide = true)]
    Generate(Generate),
}

/// Options of `larder generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// Gets the folders man and completions.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The date of the pages.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub date: String,
}

/// Options of `larder serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = larder_daemon::config::DEFAULT_CONFIG_PATH)]
    pub config: PathBuf,
    /// Validate the configuration, the backings, the cache device and the addresses, then exit; nothing stays behind.
    #[arg(long)]
    pub check: bool,
}

/// Options of `larder status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Print the JSON object instead of tables: sizes in bytes or blocks as the keys say, latencies in seconds.
    #[arg(long)]
    pub json: bool,
    /// List the byte ranges of this volume that a failed cache device alone has, or that cannot be read from the cache: first byte and length, one range a line.
    #[arg(long, value_name = "VOLUME")]
    pub lost: Option<String>,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Which daemon is asked.
#[derive(Debug, Args)]
pub struct Daemon {
    /// The daemon's configuration, which names its control socket [default: /etc/larder/larder.toml, where it exists].
    #[arg(short, long, value_name = "FILE", conflicts_with = "socket")]
    pub config: Option<PathBuf>,
    /// The daemon's control socket [default: the one that the configuration names].
    #[arg(short, long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// Options of `larder flush`.
#[derive(Debug, Args)]
pub struct Flush {
    /// A tenant or a volume; TENANT/VOLUME where both have the name.
    #[arg(value_name = "TENANT|VOLUME")]
    pub name: String,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder drain`.
#[derive(Debug, Args)]
pub struct Drain {
    /// A tenant or a volume; TENANT/VOLUME where both have the name.
    #[arg(value_name = "TENANT|VOLUME")]
    pub name: String,
    /// Let blocks become dirty again.
    #[arg(long)]
    pub off: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder reload`.
#[derive(Debug, Args)]
pub struct Reload {
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder set`.
#[derive(Debug, Args)]
pub struct Set {
    /// What is to be so from now on.
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub pairs: Vec<String>,
    /// The tenant that it is about; else it is the daemon.
    #[arg(short, long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder decisions`.
#[derive(Debug, Args)]
pub struct Decisions {
    /// The tenant [default: the last decision about each].
    #[arg(value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Print a JSON object for each tenant: what was found, expected and came, in seconds, blocks and ratios.
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder curves`.
#[derive(Debug, Args)]
pub struct Curves {
    /// The tenant.
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// Print a JSON object: bytes, seconds, ratios.
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder what-if`.
#[derive(Debug, Args)]
pub struct WhatIf {
    /// The tenant.
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// The size that it would have: 20GiB, 512MiB.
    #[arg(value_name = "SIZE", value_parser = parse_size)]
    pub size: u64,
    /// Print a JSON object: bytes, seconds, ratios.
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// What is asked of the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show what was set with `larder set`, beside what larder.toml says.
    Diff(ConfigDiff),
}

/// Options of `larder config diff`.
#[derive(Debug, Args)]
pub struct ConfigDiff {
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// What is asked of volumes.
#[derive(Debug, Subcommand)]
pub enum Volume {
    /// Print lines to paste: for QEMU, libvirt, Cloud Hypervisor, nbd-client and fstab.
    Show(ShowVolume),
    /// Let a volume have the size that its backing has now, while guests use it.
    ///
    /// Make the backing larger first (truncate -s, lvextend, qemu-img resize). Guests over vhost-user see the new size at once; NBD clients when they connect
    /// again. A volume never shrinks in use.
    Resize(OneVolume),
    /// Have the backing hold all of a volume, and keep writes waiting until `larder volume thaw`: around a snapshot of the backing.
    ///
    /// Everything dirty is written back first, while guests go on. Then writes wait, reads do not. If nobody thaws it, the volume goes on by itself after --hold,
    /// and `thaw` says so: the snapshot is then not to be trusted.
    Quiesce(Quiesce),
    /// Let a volume go on after `larder volume quiesce`. Fails if it had already gone on by itself: a snapshot taken meanwhile may be torn.
    Thaw(OneVolume),
    /// Let a guest leave for another host, live, over a backing that both hosts reach: prepare, migrate, complete, in this order.
    #[command(subcommand)]
    Migrate(Migrate),
}

/// The steps of a live migration, on the host that the guest leaves.
#[derive(Debug, Subcommand)]
pub enum Migrate {
    /// Before the migration: write everything dirty back, and let nothing become dirty from then on. Wait for its end, then migrate the guest.
    Prepare(OneVolume),
    /// After it: drop what is cached, which the other host makes old. Refused while a client is still connected here, or without prepare.
    Complete(OneVolume),
    /// Instead: the guest stays here, and blocks may become dirty again.
    Abort(OneVolume),
}

/// A volume of a running daemon.
#[derive(Debug, Args)]
pub struct OneVolume {
    /// The volume.
    #[arg(value_name = "VOLUME")]
    pub name: String,
    /// The daemon.
    #[command(flatten)]
    pub daemon: Daemon,
}

/// Options of `larder volume quiesce`.
#[derive(Debug, Args)]
pub struct Quiesce {
    /// The volume.
    #[command(flatten)]
    pub volume: OneVolume,
    /// For how long writes wait at most, in seconds: guests give up after some time (Linux complains after 120 s).
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=larder_daemon::volumes::HOLD_MAX.as_secs()))]
    pub hold: u64,
}

/// Options of `larder volume show`.
#[derive(Debug, Args)]
pub struct ShowVolume {
    /// The volume; all where none is named.
    #[arg(value_name = "VOLUME")]
    pub name: Option<String>,
    /// The configuration.
    #[arg(short, long, value_name = "FILE", default_value = larder_daemon::config::DEFAULT_CONFIG_PATH)]
    pub config: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn socket_and_config_exclude_each_other() {
        let error =
            Cli::try_parse_from(["larder", "status", "--socket", "s", "--config", "c"]).expect_err("both");
        assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict);
    }
}
