//! The configuration file `larder.toml`: what it may say, read with a complaint that points at the line, and written back.
//!
//! Everything that can be judged from the text alone is judged here; what needs the devices (does the backing exist, is
//! the cache large enough, is the port free) is judged when the daemon starts, before it writes anything.
//!
//! Relative paths are taken from the directory of the configuration file.

mod api;
mod decode;
mod error;
mod reader;
mod write;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use larder_engine::{CachingSpec, DirtyLimits};
use larder_nbd::{Address, Uri};

pub use api::{ApiConfig, ApiTcp, ApiTls, DEFAULT_API_SOCKET, DEFAULT_API_SOCKET_MODE};
pub use error::{Complaint, ConfigError};
pub use larder_export::ListenAddress;
pub use larder_export::ublk::LINKS as UBLK_LINKS;

use crate::wear::budget::BudgetChoice;
use crate::wear::endurance::Endurance;

/// Where the command looks when no configuration is named.
pub const DEFAULT_CONFIG_PATH: &str = "/etc/larder/larder.toml";

/// Where the control socket is unless the configuration says otherwise.
pub const DEFAULT_CONTROL_SOCKET: &str = "/run/larder/larder.sock";

/// Where it is written down what a failed cache device alone has, if nothing else is configured, and the cache is a device.
pub const LOSS_FOLDER: &str = "/var/lib/larder";

/// The longest path that a unix socket can be bound to: `sun_path` is 108 bytes with its final zero.
pub const UNIX_PATH_BYTES_MAX: usize = 107;

/// The longest name of a tenant or volume, in bytes. Volume names are NBD export names and parts of log lines.
pub const NAME_BYTES_MAX: usize = 128;

/// The most tenants on one host: each has an analyzer and a partition, and identities are 16 bits wide.
pub const TENANTS_MAX: usize = 4096;

/// The most volumes on one host.
pub const VOLUMES_MAX: usize = 16_384;

/// The shortest epoch.
pub const EPOCH_MIN: Duration = Duration::from_secs(1);

/// The longest epoch: a year.
pub const EPOCH_MAX: Duration = Duration::from_secs(366 * 86_400);

/// The most reactors that may be asked for.
pub const REACTORS_MAX: u32 = 256;

/// The longest that a reactor may be asked to look for work before it sleeps: beyond that nothing is gained on any device.
pub const POLL_MAX: Duration = Duration::from_millis(1);

/// Everything that `larder.toml` says, with the defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The cache device.
    pub cache: CacheConfig,
    /// The control loop and its socket.
    pub control: ControlConfig,
    /// The HTTP API, where there is one.
    pub api: Option<ApiConfig>,
    /// The tenants, in the order of the file; at least one.
    pub tenants: Vec<TenantConfig>,
}

/// `[cache]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheConfig {
    /// A file, created where absent, or a block device.
    pub path: PathBuf,
    /// Bytes of cached data; a multiple of `block_bytes`, not zero.
    pub size_bytes: u64,
    /// Bytes in a block: a power of two from 4 KiB to 128 KiB.
    pub block_bytes: u32,
    /// What is cached is kept over stops and crashes. One reactor serves such a cache.
    pub keep: bool,
    /// How much may be written to the disk that it lies on, by its maker.
    pub endurance: Option<Endurance>,
    /// Reads of clean blocks go to the backing while that is faster than the cache device.
    pub bypass_slow: bool,
}

impl CacheConfig {
    /// The number of blocks of the cache.
    pub fn blocks(&self) -> u32 {
        self.blocks_in(self.size_bytes)
    }

    /// The number of whole blocks in some bytes.
    pub fn blocks_in(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / u64::from(self.block_bytes)).unwrap_or(u32::MAX)
    }
}

/// `[control]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// The unix socket that `larder status` asks.
    pub socket: PathBuf,
    /// The group that may use this socket and the volumes' unix sockets; `None` for the daemon's own.
    pub socket_group: Option<SocketGroup>,
    /// Who decides the sizes.
    pub allocator: AllocatorChoice,
    /// How often sizes and write policies are decided; at least a second.
    pub epoch: Duration,
    /// The least that a tenant gets, in blocks, where the cache has that much for everybody.
    pub min_blocks: u32,
    /// The share of writes to cached blocks (WAW + WAR over all accesses) from which `auto` means `ro` under `eci`.
    pub write_threshold: f64,
    /// `auto` may be `wb`: then the cache device alone has the newest data of such a tenant. Only where the cache is kept.
    pub write_back: bool,
    /// What may be written to the cache device, all causes together.
    pub write_budget: BudgetChoice,
    /// How many reactors serve the volumes; `None` for one where the cache is kept, else for one per core. Never more than
    /// there are tenants.
    pub reactors: Option<u32>,
    /// How long a reactor looks for more work before it sleeps, while that has lately paid; zero: never. `None` for 50 µs where guests are waited for, and for devices
    /// 5 µs for each operation under way, up to that.
    pub poll: Option<Duration>,
    /// Where it is written down what a failed cache device alone has; `None` for [`Config::loss_file`]'s choice.
    pub loss_file: Option<PathBuf>,
}

/// A group of the host's users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketGroup {
    /// By name; whether there is one is found out at the start.
    Name(String),
    /// By number.
    Number(u32),
}

impl fmt::Display for SocketGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// The allocators of `control.allocator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorChoice {
    /// Our own: sizes, write policies, replacement and admission of all tenants together, for the least weighted latency.
    Larder,
    /// Centaur: miss-ratio curves and simulated annealing, latency and IOPS reservations, shares.
    Centaur,
    /// ECI-Cache: sizes from the useful reuse distance, write policies from the share of overwrites.
    Eci,
    /// S-CAVE: rECS and demand, every second.
    Scave,
    /// The container thesis' dynamic quotas: working sets by reuse distance.
    Wss,
    /// One cache for all tenants, without quotas.
    Unified,
    /// The container thesis' combination: one half as [`AllocatorChoice::Wss`] divides it, the other for all, who fill it with what leaves their parts.
    Combined,
    /// Each tenant's quota as configured, the rest shared out equally.
    Static,
}

impl AllocatorChoice {
    /// All of them, with their names.
    pub const NAMED: [(&'static str, Self); 8] = [
        ("larder", Self::Larder),
        ("centaur", Self::Centaur),
        ("eci", Self::Eci),
        ("scave", Self::Scave),
        ("wss", Self::Wss),
        ("unified", Self::Unified),
        ("combined", Self::Combined),
        ("static", Self::Static),
    ];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Larder => larder_alloc::Larder::NAME,
            Self::Centaur => larder_alloc::Centaur::NAME,
            Self::Eci => larder_alloc::Eci::NAME,
            Self::Scave => larder_alloc::Scave::NAME,
            Self::Wss => larder_alloc::Wss::NAME,
            Self::Unified => larder_alloc::Unified::NAME,
            Self::Combined => larder_alloc::Combined::NAME,
            Self::Static => larder_alloc::Static::NAME,
        }
    }

    /// The allocator itself, new.
    pub fn allocator(self) -> Box<dyn larder_alloc::Allocator + Send> {
        match self {
            Self::Larder => Box::<larder_alloc::Larder>::default(),
            Self::Centaur => Box::<larder_alloc::Centaur>::default(),
            Self::Eci => Box::<larder_alloc::CorrectedEci>::default(),
            Self::Scave => Box::<larder_alloc::Scave>::default(),
            Self::Wss => Box::new(larder_alloc::Wss),
            Self::Unified => Box::new(larder_alloc::Unified),
            Self::Combined => Box::new(larder_alloc::Combined),
            Self::Static => Box::new(larder_alloc::Static),
        }
    }
}

/// What is wanted for a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalsConfig {
    /// How much its latency counts beside that of others (the key `weight`), above 0.
    pub weight: f64,
    /// Its proportional share of the cache's benefit, above 0; `None`: it takes no part.
    pub share: Option<f64>,
    /// A mean latency of a request that is promised to it.
    pub latency: Option<Duration>,
    /// Requests per second that are promised to it. Not beside a latency.
    pub iops: Option<f64>,
    /// The most that it gets, in bytes (the key `max`).
    pub max_bytes: Option<u64>,
}

impl Default for GoalsConfig {
    fn default() -> Self {
        Self { weight: 1.0, share: None, latency: None, iops: None, max_bytes: None }
    }
}

/// When blocks enter a tenant's partition (the key `population`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// At the access that misses them.
    OnDemand,
    /// All together, five times in an epoch: Centaur's mover.
    Batched,
}

impl Population {
    /// All of them, with their names.
    pub const NAMED: [(&'static str, Self); 2] = [("on-demand", Self::OnDemand), ("batched", Self::Batched)];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Batched => "batched",
        }
    }
}

/// `[[tenant]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantConfig {
    /// Its name, unique.
    pub name: String,
    /// The quota under `static`, the initial one under all others, in bytes; at least one block.
    pub quota_bytes: Option<u64>,
    /// What happens to its writes.
    pub write_policy: PolicyChoice,
    /// Under `wb`: how much of its partition may be dirty, and for how long (the keys `dirty_rest`, `dirty_max`, `dirty_age`).
    pub dirty: DirtyLimits,
    /// Which of its blocks leaves when another enters (the key `replacement`), and which may enter (`admission`); `None`: as the allocator has it.
    pub caching: Option<CachingSpec>,
    /// When its blocks enter; `None`: as the allocator has it.
    pub population: Option<Population>,
    /// What else is wanted for it.
    pub goals: GoalsConfig,
    /// Its disks; at least one.
    pub volumes: Vec<VolumeConfig>,
}

/// The values of `tenant.write_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// Decided in every epoch.
    Auto,
    /// Always write-back; only where the cache is kept.
    WriteBack,
    /// Always write-through.
    WriteThrough,
    /// Always read-only.
    ReadOnly,
}

impl PolicyChoice {
    /// All of them, with their names.
    pub const NAMED: [(&'static str, Self); 4] =
        [("auto", Self::Auto), ("wb", Self::WriteBack), ("wt", Self::WriteThrough), ("ro", Self::ReadOnly)];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::WriteBack => "wb",
            Self::WriteThrough => "wt",
            Self::ReadOnly => "ro",
        }
    }
}

/// `[[tenant.volume]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeConfig {
    /// Its name, unique among all volumes; also the name of its NBD export.
    pub name: String,
    /// The slow device that holds its truth.
    pub backing: BackingConfig,
    /// Where its NBD server listens; several volumes may share an address. `None`: it is not served over NBD, but in another way.
    pub nbd: Option<ListenAddress>,
    /// The socket on which a hypervisor finds it as a vhost-user-blk device; no two volumes share one.
    pub vhost_user: Option<PathBuf>,
    /// It is a block device of this host, `/dev/larder/NAME`.
    pub ublk: bool,
    /// Under `wb`: its writes reach the backing in the order of its flushes.
    pub ordered: bool,
}

/// The slow device of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackingConfig {
    /// A file or a block device.
    Path(PathBuf),
    /// An export of an NBD server.
    Nbd(Uri),
}

impl fmt::Display for BackingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Nbd(uri) => write!(f, "{uri}"),
        }
    }
}

impl VolumeConfig {
    /// The NBD URI under which clients of this host reach the volume.
    pub fn export_uri(&self) -> Option<Uri> {
        let address = match self.nbd.as_ref()? {
            ListenAddress::Unix(path) => Address::Unix(path.clone()),
            ListenAddress::Tcp(tcp) => Address::Tcp { host: tcp.ip().to_string(), port: tcp.port() },
        };
        Some(Uri { address, export: self.name.clone() })
    }

    /// Where a hypervisor reaches the volume.
    pub fn vhost_address(&self) -> Option<ListenAddress> {
        self.vhost_user.clone().map(ListenAddress::Unix)
    }
}

impl Config {
    /// Read and judge a configuration file. Its paths become absolute.
    ///
    /// # Errors
    /// When the file cannot be read, or says something that cannot be served.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        let absolute = std::path::absolute(path).map_err(failed)?;
        Self::parse(path, absolute.parent().unwrap_or(Path::new("/")), &text)
    }

    /// Where the daemon with this configuration file is asked. Nothing else in the file is judged: whoever is in the midst of editing it can ask all the same, and it takes no time to speak of.
    ///
    /// # Errors
    /// When the file cannot be read, is no TOML, or names no socket that could be.
    pub fn control_socket(path: &Path) -> Result<PathBuf, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        let absolute = std::path::absolute(path).map_err(failed)?;
        let base = absolute.parent().unwrap_or(Path::new("/"));
        Ok(decode::control_socket(reader::Source { file: path, text: &text }, base)?)
    }

    /// Judge the text of a configuration. `file` is its name in complaints, `base` the directory of relative paths.
    ///
    /// # Errors
    /// When the text says something that cannot be served.
    pub fn parse(file: &Path, base: &Path, text: &str) -> Result<Self, ConfigError> {
        Ok(decode::config(reader::Source { file, text }, base)?)
    }

    /// The file that says what a failed cache device alone has: as configured, else beside a cache file (`cache.img.loss.json`), or for a device
    /// (`/dev/nvme0n1`) in [`LOSS_FOLDER`] (`dev-nvme0n1.loss.json`).
    pub fn loss_file(&self) -> PathBuf {
        if let Some(path) = &self.control.loss_file {
            return path.clone();
        }
        let path = &self.cache.path;
        let mut name = match path.strip_prefix("/dev") {
            Ok(device) => {
                let flat = format!("dev-{}", device.display().to_string().replace('/', "-"));
                Path::new(LOSS_FOLDER).join(flat).into_os_string()
            }
            Err(_) => path.clone().into_os_string(),
        };
        name.push(".loss.json");
        name.into()
    }

    /// The file that says which volumes are being migrated: beside [`Config::loss_file`] (`cache.img.migrating.json`).
    pub fn migration_file(&self) -> PathBuf {
        self.beside_loss_file("migrating")
    }

    fn beside_loss_file(&self, what: &str) -> PathBuf {
        let file = self.loss_file();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".loss.json").or(name.strip_suffix(".json")).unwrap_or(&name);
        file.with_file_name(format!("{stem}.{what}.json"))
    }

    /// Where nothing better is known, the file that says which cache was used last: beside [`Config::loss_file`] (`cache.img.last.json`).
    pub fn last_cache_file(&self) -> PathBuf {
        self.beside_loss_file("last")
    }

    /// The file that has what was set while the daemon ran: beside [`Config::loss_file`] (`cache.img.settings.json`).
    pub fn settings_file(&self) -> PathBuf {
        self.beside_loss_file("settings")
    }

    /// The file that has how far the budget of SSD writes is used up: beside that one (`cache.img.budget.json`).
    pub fn budget_file(&self) -> PathBuf {
        self.beside_loss_file("budget")
    }

    /// The file that has when in a budget's periods what is worth writing came: beside that one (`cache.img.rhythm.json`).
    pub fn rhythm_file(&self) -> PathBuf {
        self.beside_loss_file("rhythm")
    }

    /// The volumes of all tenants, in the order of the file.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeConfig> {
        self.tenants.iter().flat_map(|tenant| &tenant.volumes)
    }
}

#[cfg(test)]
mod tests;
