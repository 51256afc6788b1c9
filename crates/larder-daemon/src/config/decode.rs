//! From the tree of a TOML document to a [`Config`]: defaults, ranges, and the rules between values.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use larder_alloc::{DEFAULT_MIN_BLOCKS, DEFAULT_WRITE_THRESHOLD};
use larder_engine::{CachingSpec, DirtyLimits};
use larder_export::ListenAddress;
use larder_policy::spec::{AdmissionSpec, PolicySpec, SpecError};

use super::api;
use super::error::Complaint;
use super::reader::{Field, Source, Table, Unique};
use super::{
    AllocatorChoice, ApiConfig, BackingConfig, CacheConfig, Config, ControlConfig, DEFAULT_CONTROL_SOCKET,
    EPOCH_MAX, EPOCH_MIN, GoalsConfig, NAME_BYTES_MAX, POLL_MAX, PolicyChoice, Population, REACTORS_MAX,
    SocketGroup, TENANTS_MAX, TenantConfig, UNIX_PATH_BYTES_MAX, VOLUMES_MAX, VolumeConfig,
};
use crate::units::ExactSize;
use crate::wear::budget::BudgetChoice;
use crate::wear::endurance::Endurance;

const BLOCK_BYTES_DEFAULT: u32 = 4 << 10;
const BLOCK_BYTES_MAX: u64 = 128 << 10;
const EPOCH_DEFAULT: Duration = Duration::from_secs(600);
/// Slot numbers are 32 bits wide, and the highest ones mean "none".
const CACHE_BLOCKS_MAX: u64 = u32::MAX as u64 - 15;

/// Judge a whole document. Relative paths are taken from `base`.
pub(super) fn config(source: Source<'_>, base: &Path) -> Result<Config, Complaint> {
    let tree = source.parse()?;
    let root = Table::root(source, &tree);
    root.allow_only(&["cache", "control", "api", "tenant"])?;
    let Some(cache_table) = root.table("cache", "[cache]")? else {
        return Err(root.complain("[cache] is missing", "add [cache] with the keys path and size"));
    };
    let cache = cache(&cache_table, base)?;
    let control = match root.table("control", "[control]")? {
        Some(table) => control(&table, base, &cache)?,
        None => control_default(),
    };
    let mut rules = Rules::new(base, &cache, &control);
    let api = root.table("api", "[api]")?.map(|table| rules.api(&table)).transpose()?;
    let tables = root.tables("tenant", "[[tenant]]")?;
    let tenants = tables.iter().map(|table| rules.tenant(table)).collect::<Result<Vec<_>, _>>()?;
    rules.all(&root, &tenants)?;
    Ok(Config { cache, control, api, tenants })
}

/// The control socket that a document names; nothing else in it is judged.
pub(super) fn control_socket(source: Source<'_>, base: &Path) -> Result<PathBuf, Complaint> {
    let tree = source.parse()?;
    let control = Table::root(source, &tree).table("control", "[control]")?;
    let field = control.as_ref().map(|table| table.string("socket")).transpose()?.flatten();
    field.map_or_else(|| Ok(DEFAULT_CONTROL_SOCKET.into()), |field| socket_path(&field, base))
}

fn cache(table: &Table<'_>, base: &Path) -> Result<CacheConfig, Complaint> {
    table.allow_only(&["path", "size", "block_size", "keep", "endurance", "bypass_slow"])?;
    let path = path(&table.required("path", "\"/var/lib/larder/cache.img\"")?, base)?;
    let block_bytes = match table.size("block_size")? {
        Some(field) => block_size(&field)?,
        None => BLOCK_BYTES_DEFAULT,
    };
    let size = table.size("size")?.ok_or_else(|| table.missing("size", "\"2GiB\""))?;
    cache_size(&size, block_bytes.into())?;
    let keep = table.boolean("keep")?.unwrap_or(true);
    let endurance = table.string("endurance")?.map(|field| endurance(&field)).transpose()?;
    let bypass_slow = table.boolean("bypass_slow")?.unwrap_or(true);
    Ok(CacheConfig { path, size_bytes: size.value, block_bytes, keep, endurance, bypass_slow })
}

fn endurance(field: &Field<'_, &str>) -> Result<Endurance, Complaint> {
    let wrong = |form| {
        field.complain(
            format!("\"{}\" is no endurance", field.value),
            format!("write it as the disk's data sheet does: {form}"),
        )
    };
    field.value.parse().map_err(wrong)
}

fn block_size(field: &Field<'_, u64>) -> Result<u32, Complaint> {
    let range = u64::from(BLOCK_BYTES_DEFAULT)..=BLOCK_BYTES_MAX;
    match u32::try_from(field.value) {
        Ok(bytes) if bytes.is_power_of_two() && range.contains(&field.value) => Ok(bytes),
        _ => Err(field.complain(
            format!("a block of {} cannot be cached", ExactSize(field.value)),
            "use a power of two from \"4KiB\" to \"128KiB\"; \"4KiB\" suits most disks",
        )),
    }
}

fn cache_size(size: &Field<'_, u64>, block_bytes: u64) -> Result<(), Complaint> {
    let bytes = size.value;
    if bytes == 0 {
        return Err(size.complain("a cache of no size holds nothing", "write a size such as \"2GiB\""));
    }
    if !bytes.is_multiple_of(block_bytes) {
        let below = bytes / block_bytes * block_bytes;
        let near = ExactSize(if below == 0 { block_bytes } else { below });
        let message =
            format!("the cache size {bytes} is no multiple of the block size {}", ExactSize(block_bytes));
        return Err(size.complain(message, format!("the nearest size that is one: \"{near}\"")));
    }
    if bytes / block_bytes > CACHE_BLOCKS_MAX {
        let message = format!(
            "{} of {} blocks are more than {CACHE_BLOCKS_MAX} blocks",
            ExactSize(bytes),
            ExactSize(block_bytes)
        );
        return Err(size.complain(message, "use larger blocks or a smaller cache"));
    }
    Ok(())
}

fn control_default() -> ControlConfig {
    ControlConfig {
        socket: DEFAULT_CONTROL_SOCKET.into(),
        socket_group: None,
        allocator: AllocatorChoice::Larder,
        epoch: EPOCH_DEFAULT,
        min_blocks: DEFAULT_MIN_BLOCKS,
        write_threshold: DEFAULT_WRITE_THRESHOLD,
        write_back: false,
        write_budget: BudgetChoice::default(),
        reactors: None,
        poll: None,
        loss_file: None,
    }
}

fn control(table: &Table<'_>, base: &Path, cache: &CacheConfig) -> Result<ControlConfig, Complaint> {
    let known = [
        "socket",
        "socket_group",
        "allocator",
        "epoch",
        "min_blocks",
        "write_threshold",
        "write_back",
        "write_budget",
        "reactors",
        "poll",
        "loss_file",
    ];
    table.allow_only(&known)?;
    let keep = cache.keep;
    let mut control = control_default();
    if let Some(field) = table.string("socket")? {
        control.socket = socket_path(&field, base)?;
    }
    if let Some(field) = table.string("socket_group")? {
        control.socket_group = Some(socket_group(&field)?);
    }
    if let Some(field) = table.string("allocator")? {
        control.allocator = field.choose(&AllocatorChoice::NAMED)?;
    }
    if let Some(field) = table.duration("epoch")? {
        control.epoch = epoch(&field)?;
    }
    if let Some(field) = table.integer("min_blocks", 0, u32::MAX)? {
        control.min_blocks = field.value;
    }
    control.write_threshold = table.ratio("write_threshold")?.unwrap_or(control.write_threshold);
    control.write_back = table.boolean("write_back")?.unwrap_or(false);
    if control.write_back && !keep {
        return Err(table.complain(
            "write-back would lose data with a cache that is not kept over restarts",
            "remove write_back = true, or keep = false from [cache]",
        ));
    }
    if let Some(field) = table.string("write_budget")? {
        control.write_budget = write_budget(&field, cache)?;
    }
    control.reactors =
        table.integer("reactors", 1, REACTORS_MAX)?.map(|field| reactors(&field, keep)).transpose()?;
    if let Some(field) = table.duration("poll")? {
        control.poll = Some(poll(&field)?);
    }
    control.loss_file = table.string("loss_file")?.map(|field| path(&field, base)).transpose()?;
    Ok(control)
}

fn write_budget(field: &Field<'_, &str>, cache: &CacheConfig) -> Result<BudgetChoice, Complaint> {
    let wrong =
        |form| field.complain(format!("\"{}\" is no budget of writes", field.value), format!("write {form}"));
    let budget = field.value.parse().map_err(wrong)?;
    if budget == BudgetChoice::Endurance && cache.endurance.is_none() {
        return Err(field.complain(
            "no endurance is configured that could be the budget",
            "write endurance = \"600TBW\", say, in [cache]; or the budget itself: \"200GiB/day\"",
        ));
    }
    Ok(budget)
}

/// One thread has the records of a cache that is kept.
fn reactors(field: &Field<'_, u32>, keep: bool) -> Result<u32, Complaint> {
    if keep && field.value > 1 {
        return Err(field.complain(
            format!("{} reactors cannot serve a cache that is kept over restarts", field.value),
            "remove the line for one reactor; or write keep = false in [cache] for as many as you like, and a cold cache at each start",
        ));
    }
    Ok(field.value)
}

/// A group by its name, or by its number in digits. The highest number means "none" to the system.
pub(super) fn socket_group(field: &Field<'_, &str>) -> Result<SocketGroup, Complaint> {
    let digits = !field.value.is_empty() && field.value.bytes().all(|byte| byte.is_ascii_digit());
    match field.value.parse() {
        Ok(number) if digits && number < u32::MAX => Ok(SocketGroup::Number(number)),
        _ if digits || field.value.is_empty() || field.value.contains('\0') => Err(field.complain(
            format!("{:?} is no group", field.value),
            "write the name of a group, or its number as `getent group` lists it",
        )),
        _ => Ok(SocketGroup::Name(field.value.to_owned())),
    }
}

fn poll(field: &Field<'_, Duration>) -> Result<Duration, Complaint> {
    if field.value > POLL_MAX {
        return Err(field.complain(
            "polling for more than a millisecond takes the processor from others, and makes nothing faster",
            "use a duration such as \"50us\", or \"0us\" to sleep at once",
        ));
    }
    Ok(field.value)
}

fn epoch(field: &Field<'_, Duration>) -> Result<Duration, Complaint> {
    if field.value < EPOCH_MIN {
        return Err(field.complain(
            "an epoch shorter than a second tells nothing",
            "use at least \"1s\"; \"10m\" is the default",
        ));
    }
    if field.value > EPOCH_MAX {
        return Err(
            field.complain("an epoch longer than a year never ends", "use a duration such as \"10m\"")
        );
    }
    Ok(field.value)
}

/// A path that is not empty, taken from the directory of the configuration.
pub(super) fn path(field: &Field<'_, &str>, base: &Path) -> Result<PathBuf, Complaint> {
    if field.value.is_empty() || field.value.contains('\0') {
        return Err(field.complain("this is no path", "write the path of a file or a device"));
    }
    // Without "." and "//", so that one file has one spelling.
    Ok(base.join(field.value).components().collect())
}

/// A path that a unix socket can be bound to.
pub(super) fn socket_path(field: &Field<'_, &str>, base: &Path) -> Result<PathBuf, Complaint> {
    let path = path(field, base)?;
    let bytes = path.as_os_str().len();
    if bytes > UNIX_PATH_BYTES_MAX {
        let message = format!(
            "the socket path has {bytes} bytes, more than the {UNIX_PATH_BYTES_MAX} that a unix socket can have"
        );
        return Err(field.complain(message, "use a shorter path, for example below /run/larder"));
    }
    Ok(path)
}

/// A name of a tenant or a volume: it ends up in log lines, URIs and file names.
fn name(field: &Field<'_, &str>) -> Result<String, Complaint> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if let Some(other) = field.value.chars().find(|c| !allowed(*c)) {
        return Err(field.complain(
            format!("the name {:?} contains {other:?}", field.value),
            "use letters, digits, \".\", \"_\" and \"-\" only",
        ));
    }
    if field.value.is_empty() || field.value.len() > NAME_BYTES_MAX {
        let message = format!("a name must have from 1 to {NAME_BYTES_MAX} characters");
        return Err(field.complain(message, "choose another name"));
    }
    Ok(field.value.to_owned())
}

fn write_policy(field: &Field<'_, &str>, keep: bool) -> Result<PolicyChoice, Complaint> {
    if field.value == "wb-ordered" {
        return Err(field.complain(
            "unknown write_policy \"wb-ordered\"",
            "write write_policy = \"wb\" here, and ordered = true in each [[tenant.volume]] that is to keep the order of its flushes",
        ));
    }
    let policy = field.choose(&PolicyChoice::NAMED)?;
    if policy == PolicyChoice::WriteBack && !keep {
        return Err(field.complain(
            "write policy \"wb\" would lose data with a cache that is not kept over restarts",
            "remove keep = false from [cache], or use \"wt\" or \"ro\"",
        ));
    }
    Ok(policy)
}

/// `dirty_rest`, `dirty_max` (per cent of the partition) and `dirty_age`.
fn dirty_limits(table: &Table<'_>) -> Result<DirtyLimits, Complaint> {
    let mut limits = DirtyLimits::default();
    if let Some(field) = table.integer("dirty_max", 1, 100)? {
        limits.max = field.value as u8;
        limits.rest = limits.rest.min(limits.max);
    }
    if let Some(field) = table.integer("dirty_rest", 0, limits.max.into())? {
        limits.rest = field.value as u8;
    }
    if let Some(field) = table.duration("dirty_age")? {
        limits.age = u32::try_from(field.value.as_secs().max(1)).unwrap_or(u32::MAX);
    }
    Ok(limits)
}

/// `replacement` and `admission`, together: LARC is both. Neither: as the allocator has it.
fn caching(table: &Table<'_>) -> Result<Option<CachingSpec>, Complaint> {
    let (replacement, admission) = (table.string("replacement")?, table.string("admission")?);
    if replacement.is_none() && admission.is_none() {
        return Ok(None);
    }
    let policy = replacement.as_ref().map_or(Ok(PolicySpec::Lru), online_policy)?;
    let parse = |field: &Field<'_, &str>| field.value.parse().map_err(|error| unknown_spec(field, &error));
    let admits = admission.as_ref().map_or(Ok(AdmissionSpec::Always), parse)?;
    CachingSpec::new(policy, admits).map(Some).map_err(|error| match &admission {
        Some(field) => {
            field.complain(error.to_string(), "leave `admission` out, or take another replacement")
        }
        None => unreachable!("every policy goes with `always`"),
    })
}

/// `weight`, `share`, `latency`, `iops` and `max`.
fn goals(table: &Table<'_>, cache: &CacheConfig) -> Result<GoalsConfig, Complaint> {
    let mut goals = GoalsConfig::default();
    goals.weight = table.above_zero("weight")?.map_or(goals.weight, |field| field.value);
    goals.share = table.above_zero("share")?.map(|field| field.value);
    if let Some(field) = table.duration("latency")? {
        if field.value.is_zero() {
            return Err(field.complain("no request takes no time", "use a mean latency such as \"2ms\""));
        }
        goals.latency = Some(field.value);
    }
    if let Some(field) = table.above_zero("iops")? {
        if goals.latency.is_some() {
            return Err(field.complain(
                "a tenant is promised a latency or IOPS, not both",
                "remove the line, or `latency`",
            ));
        }
        goals.iops = Some(field.value);
    }
    if let Some(field) = table.size("max")? {
        if cache.blocks_in(field.value) == 0 {
            let block = ExactSize(cache.block_bytes.into());
            return Err(field.complain(
                format!("{} is less than a block", ExactSize(field.value)),
                format!("use at least \"{block}\""),
            ));
        }
        goals.max_bytes = Some(field.value);
    }
    Ok(goals)
}

fn online_policy(field: &Field<'_, &str>) -> Result<PolicySpec, Complaint> {
    let policy: PolicySpec = field.value.parse().map_err(|error| unknown_spec(field, &error))?;
    if !policy.is_online() {
        let message = format!("replacement \"{policy}\" must know the future: it is for simulations only");
        return Err(field.complain(message, "use \"lru\", \"arc\", \"s3-fifo\" or another that does not"));
    }
    Ok(policy)
}

fn unknown_spec(field: &Field<'_, &str>, error: &SpecError) -> Complaint {
    field.complain(error.to_string(), "correct it, or leave the key out for its default")
}

/// The rules between values: what must be unique, and what must fit together.
struct Rules<'c> {
    base: &'c Path,
    cache: &'c CacheConfig,
    control: &'c ControlConfig,
    api_socket: Option<PathBuf>,
    tenant_names: Unique,
    volume_names: Unique,
    backings: Unique,
    vhost_sockets: Unique,
    /// What is spoken on each of the volumes' unix sockets.
    protocols: BTreeMap<PathBuf, &'static str>,
    quota_bytes: u64,
}

impl<'c> Rules<'c> {
    fn new(base: &'c Path, cache: &'c CacheConfig, control: &'c ControlConfig) -> Self {
        let tenant_names = Unique::new("tenant name");
        let (volume_names, backings) = (Unique::new("volume name"), Unique::new("backing"));
        let (vhost_sockets, protocols) = (Unique::new("vhost-user socket"), BTreeMap::new());
        let quota_bytes = 0;
        Self {
            base,
            cache,
            control,
            api_socket: None,
            tenant_names,
            volume_names,
            backings,
            vhost_sockets,
            protocols,
            quota_bytes,
        }
    }

    fn api(&mut self, table: &Table<'_>) -> Result<ApiConfig, Complaint> {
        let api = api::api(table, self.base)?;
        // The default cannot be in the way of anything but a path that somebody chose, which is then refused.
        if let Some(field) = table.string("socket")? {
            self.not_ours(&api.socket, &field)?;
        }
        self.api_socket = Some(api.socket.clone());
        Ok(api)
    }

    fn tenant(&mut self, table: &Table<'_>) -> Result<TenantConfig, Complaint> {
        let dirty = ["dirty_rest", "dirty_max", "dirty_age"];
        let known = ["name", "quota", "write_policy", "replacement", "admission", "population", "volume"];
        let wanted = ["weight", "share", "latency", "iops", "max"];
        table.allow_only(&[&known[..], &dirty[..], &wanted[..]].concat())?;
        let field = table.required("name", "\"db\"")?;
        let name = name(&field)?;
        self.tenant_names.insert(
            name.clone(),
            &field,
            "give each tenant a name of its own; a tenant may have several volumes",
        )?;
        let quota_bytes = table.size("quota")?.map(|field| self.quota(&field)).transpose()?;
        let keep = self.cache.keep;
        let policy = table.string("write_policy")?;
        let write_policy = policy.map_or(Ok(PolicyChoice::Auto), |field| write_policy(&field, keep))?;
        let dirty = dirty_limits(table)?;
        let (caching, goals) = (caching(table)?, goals(table, self.cache)?);
        let population =
            table.string("population")?.map(|field| field.choose(&Population::NAMED)).transpose()?;
        let tables = table.tables("volume", "[[tenant.volume]]")?;
        if tables.is_empty() {
            return Err(table.complain(
                format!("tenant \"{name}\" has no volume"),
                "add [[tenant.volume]] with the keys name, backing and nbd (or vhost_user, or ublk)",
            ));
        }
        let volumes = tables.iter().map(|table| self.volume(table)).collect::<Result<Vec<_>, _>>()?;
        Ok(TenantConfig { name, quota_bytes, write_policy, dirty, caching, population, goals, volumes })
    }

    /// A quota of at least a block that fits beside the quotas before it. Initial quotas under `eci` must fit as well:
    /// the blocks that they promise are there or not.
    fn quota(&mut self, field: &Field<'_, u64>) -> Result<u64, Complaint> {
        let block = ExactSize(self.cache.block_bytes.into());
        if self.cache.blocks_in(field.value) == 0 {
            return Err(field.complain(
                format!("a quota of {} is less than a block", ExactSize(field.value)),
                format!("use at least \"{block}\", or remove the line for an equal share"),
            ));
        }
        self.quota_bytes = self.quota_bytes.saturating_add(field.value);
        if self.quota_bytes > self.cache.size_bytes {
            let message = format!(
                "the quotas up to here add up to {}, more than the cache of {}",
                ExactSize(self.quota_bytes),
                ExactSize(self.cache.size_bytes)
            );
            return Err(field.complain(
                message,
                "lower quotas or raise cache.size; a tenant without quota gets an equal share of the rest",
            ));
        }
        Ok(field.value)
    }

    fn volume(&mut self, table: &Table<'_>) -> Result<VolumeConfig, Complaint> {
        table.allow_only(&["name", "backing", "nbd", "vhost_user", "ublk", "ordered"])?;
        let field = table.required("name", "\"db-root\"")?;
        let name = name(&field)?;
        self.volume_names.insert(
            name.clone(),
            &field,
            "give each volume a name of its own: it names the NBD export",
        )?;
        let backing = self.backing(&table.required("backing", "\"/srv/db.img\"")?)?;
        let nbd = table.string("nbd")?.map(|field| self.listen(&field)).transpose()?;
        let vhost_user = table.string("vhost_user")?.map(|field| self.vhost_socket(&field)).transpose()?;
        let ublk = table.boolean("ublk")?.unwrap_or(false);
        if ublk && name.starts_with('.') {
            return Err(field.complain(
                format!("a block device cannot be called \"{name}\""),
                "choose a name that does not begin with a dot: the device is /dev/larder/NAME",
            ));
        }
        if nbd.is_none() && vhost_user.is_none() && !ublk {
            return Err(table.complain(
                format!("volume \"{name}\" is not served in any way"),
                "add nbd = \"unix:/run/larder/NAME.sock\", vhost_user = \"/run/larder/NAME.vhost\" or ublk = true, or several of these",
            ));
        }
        let ordered = table.boolean("ordered")?.unwrap_or(false);
        if ordered && !self.cache.keep {
            return Err(table.complain(
                format!("volume \"{name}\" is ordered, and the cache is not kept over restarts"),
                "remove keep = false from [cache], or ordered = true from the volume",
            ));
        }
        Ok(VolumeConfig { name, backing, nbd, vhost_user, ublk, ordered })
    }

    fn backing(&mut self, field: &Field<'_, &str>) -> Result<BackingConfig, Complaint> {
        let backing = if field.value.contains("://") {
            nbd_backing(field)?
        } else {
            BackingConfig::Path(path(field, self.base)?)
        };
        if let BackingConfig::Path(path) = &backing {
            self.not_ours(path, field)?;
        }
        self.backings.insert(
            backing.to_string(),
            field,
            "two caches over one disk would serve stale data: give each volume a backing of its own",
        )?;
        Ok(backing)
    }

    /// Refuse a path that already means the cache device, the control socket or the API's.
    fn not_ours(&self, path: &Path, field: &Field<'_, &str>) -> Result<(), Complaint> {
        let taken = [(&self.cache.path, "the cache device"), (&self.control.socket, "the control socket")];
        let api = self.api_socket.as_ref().map(|path| (path, "the API's socket"));
        match taken.iter().chain(&api).find(|(ours, _)| *ours == path) {
            Some((_, what)) => {
                Err(field.complain(format!("{} is {what}", path.display()), "use another path"))
            }
            None => Ok(()),
        }
    }

    /// The socket of a vhost-user device: a path, also written as NBD's addresses are.
    fn vhost_socket(&mut self, field: &Field<'_, &str>) -> Result<PathBuf, Complaint> {
        let path = field.value.strip_prefix("unix:").unwrap_or(field.value);
        let path = socket_path(&field.with(path), self.base)?;
        self.not_ours(&path, field)?;
        self.one_protocol(&path, "vhost-user", field)?;
        let help = "a hypervisor finds one disk on a socket: give each volume a path of its own";
        self.vhost_sockets.insert(path.display().to_string(), field, help)?;
        Ok(path)
    }

    /// Refuse a socket that would have to speak two protocols.
    fn one_protocol(
        &mut self,
        path: &Path,
        protocol: &'static str,
        field: &Field<'_, &str>,
    ) -> Result<(), Complaint> {
        match self.protocols.insert(path.to_owned(), protocol) {
            Some(other) if other != protocol => {
                let message = format!("{} is a socket for {other} already", path.display());
                Err(field.complain(message, "use another path"))
            }
            _ => Ok(()),
        }
    }

    fn listen(&mut self, field: &Field<'_, &str>) -> Result<ListenAddress, Complaint> {
        if let Some(path) = field.value.strip_prefix("unix:") {
            let path = socket_path(&field.with(path), self.base)?;
            self.not_ours(&path, field)?;
            self.one_protocol(&path, "nbd", field)?;
            return Ok(ListenAddress::Unix(path));
        }
        let address = field.value.strip_prefix("tcp:").and_then(|text| text.parse::<SocketAddr>().ok());
        // Port 0 would mean another port at every start.
        let address = address.filter(|address| address.port() != 0);
        address.map(ListenAddress::Tcp).ok_or_else(|| {
            field.complain(
                format!("{:?} is no address to listen on", field.value),
                "write \"unix:/run/larder/NAME.sock\", \"tcp:127.0.0.1:10809\" or \"tcp:[::1]:10809\"",
            )
        })
    }

    /// What only the whole document can tell.
    fn all(&self, root: &Table<'_>, tenants: &[TenantConfig]) -> Result<(), Complaint> {
        let volumes: usize = tenants.iter().map(|tenant| tenant.volumes.len()).sum();
        if tenants.is_empty() {
            return Err(root.complain("there is no tenant to serve", "add [[tenant]] and [[tenant.volume]]"));
        }
        if tenants.len() > TENANTS_MAX || volumes > VOLUMES_MAX {
            let message = format!(
                "{} tenants with {volumes} volumes are more than {TENANTS_MAX} with {VOLUMES_MAX}",
                tenants.len()
            );
            return Err(
                root.complain(message, "spread them over several daemons, each with a cache of its own")
            );
        }
        let blocks = self.cache.blocks() as usize;
        if blocks < tenants.len() {
            let message = format!(
                "{} tenants do not fit a cache of {blocks} blocks: each needs at least one",
                tenants.len()
            );
            return Err(root.complain(message, "raise cache.size"));
        }
        Ok(())
    }
}

/// An NBD URI, judged by the protocol's own rules.
fn nbd_backing(field: &Field<'_, &str>) -> Result<BackingConfig, Complaint> {
    field.value.parse().map(BackingConfig::Nbd).map_err(|error| {
        let help = "write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH, or the path of a file or block device";
        field.complain(format!("{error}"), help)
    })
}
