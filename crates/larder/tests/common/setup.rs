//! A configuration on temporary files, put together by a test.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::daemon::Larder;
use super::pattern;

/// Bytes of a cache block in all tests.
pub const BLOCK: u64 = 4096;

/// What opens the API over TCP.
pub const TOKEN: &str = "a-token-for-tests-only";

/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;

/// A folder of its own, and the configuration that grows in it.
pub struct Setup {
    folder: TempDir,
    cache_size: String,
    cache: String,
    control: String,
    api: String,
    tenants: String,
}

impl Setup {
    /// A cache of this size (as in `larder.toml`), without tenants yet, under the default allocator.
    pub fn new(cache_size: &str) -> Self {
        Self::within(&std::env::temp_dir(), cache_size)
    }

    /// The same in memory: no device lags behind, however busy the machine is.
    pub fn in_memory(cache_size: &str) -> Self {
        Self::within(Path::new("/dev/shm"), cache_size)
    }

    fn within(place: &Path, cache_size: &str) -> Self {
        let folder =
            tempfile::Builder::new().prefix("larder-").tempdir_in(place).expect("a temporary folder");
        let (cache, control, api, tenants) = Default::default();
        Self { folder, cache_size: cache_size.into(), cache, control, api, tenants }
    }

    /// The cache is cold at each start.
    pub fn cold(mut self) -> Self {
        self.cache = "keep = false\n".into();
        self
    }

    /// The cache is kept over restarts, as it is where nothing else is said.
    pub fn kept(mut self) -> Self {
        self.cache.clear();
        self
    }

    /// This line of the tenants' tables no more.
    pub fn without(mut self, line: &str) -> Self {
        assert!(self.tenants.contains(line), "no {line} in {}", self.tenants);
        self.tenants = self.tenants.replace(line, "");
        self
    }

    /// Another size of the cache, from the next start on.
    pub fn resized(mut self, cache_size: &str) -> Self {
        self.cache_size = cache_size.into();
        self
    }

    /// One more line in `[control]`.
    pub fn control(mut self, line: &str) -> Self {
        self.control += &format!("{line}\n");
        self
    }

    /// The HTTP API on its unix socket ([`Setup::api_socket`]); `keys` are further lines of `[api]`.
    pub fn api(mut self, keys: &str) -> Self {
        self.api = format!("[api]\nsocket = \"{}\"\n{keys}\n", self.api_socket().display());
        self
    }

    /// The API on TCP besides, for who brings [`TOKEN`]; where it listens.
    pub fn api_on_tcp(self) -> (Self, SocketAddr) {
        let (address, token) = (free_tcp_address(), self.path("token"));
        fs::write(&token, format!("{TOKEN}\n")).expect("a token in the test's folder");
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a mode");
        let keys = format!("listen = \"{address}\"\ntoken_file = \"{}\"", token.display());
        (self.api(&keys), address)
    }

    /// A tenant; `keys` are lines of its table. Its volumes follow.
    pub fn tenant(mut self, name: &str, keys: &str) -> Self {
        // Writing to a String cannot fail.
        let _ = writeln!(self.tenants, "\n[[tenant]]\nname = \"{name}\"\n{keys}");
        self
    }

    /// A volume of the last tenant, on any backing, behind any address.
    pub fn volume_at(mut self, name: &str, backing: &str, nbd: &str) -> Self {
        let _ = writeln!(
            self.tenants,
            "[[tenant.volume]]\nname = \"{name}\"\nbacking = \"{backing}\"\nnbd = \"{nbd}\""
        );
        self
    }

    /// A volume of the last tenant on a new sparse file, as the disk of a guest over vhost-user.
    pub fn disk(self, name: &str, bytes: u64) -> Self {
        let backing = self.sparse_file(name, bytes);
        self.remote_disk(name, &backing)
    }

    /// The same on any backing.
    pub fn remote_disk(mut self, name: &str, backing: &str) -> Self {
        let socket = self.vhost_socket(name);
        let _ = writeln!(
            self.tenants,
            "[[tenant.volume]]\nname = \"{name}\"\nbacking = \"{backing}\"\nvhost_user = \"{}\"",
            socket.display()
        );
        self
    }

    /// A volume of the last tenant on a new sparse file, as a block device of the host alone.
    pub fn block_device(mut self, name: &str, bytes: u64) -> Self {
        let backing = self.sparse_file(name, bytes);
        let _ = writeln!(
            self.tenants,
            "[[tenant.volume]]\nname = \"{name}\"\nbacking = \"{backing}\"\nublk = true"
        );
        self
    }

    /// Where a hypervisor finds a volume.
    pub fn vhost_socket(&self, volume: &str) -> PathBuf {
        self.path(&format!("{volume}.vhost"))
    }

    /// The writes of the last volume reach its backing in the order of its flushes.
    pub fn ordered(mut self) -> Self {
        self.tenants += "ordered = true\n";
        self
    }

    /// A volume of the last tenant on any backing, behind the unix socket of its name.
    pub fn volume_on(self, name: &str, backing: &str) -> Self {
        let nbd = format!("unix:{}", self.socket(name).display());
        self.volume_at(name, backing, &nbd)
    }

    /// A volume of the last tenant on a new sparse file, behind the unix socket of its name.
    pub fn volume(self, name: &str, bytes: u64) -> Self {
        let backing = self.sparse_file(name, bytes);
        self.volume_on(name, &backing)
    }

    /// The same on a file full of the stamps of `seed`.
    pub fn stamped_volume(self, name: &str, bytes: u64, seed: u64) -> Self {
        let backing = self.sparse_file(name, bytes);
        pattern::write_file(Path::new(&backing), seed, bytes);
        self.volume_on(name, &backing)
    }

    /// Create the backing file of a volume, all holes.
    pub fn sparse_file(&self, name: &str, bytes: u64) -> String {
        let path = self.backing(name);
        let file = File::create(&path).expect("a backing in the test's folder");
        file.set_len(bytes).expect("a sparse file");
        path.display().to_string()
    }

    /// A file in the test's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The test's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file that backs a volume.
    pub fn backing(&self, volume: &str) -> PathBuf {
        self.path(&format!("{volume}.img"))
    }

    /// The unix socket of a volume.
    pub fn socket(&self, volume: &str) -> PathBuf {
        self.path(&format!("{volume}.sock"))
    }

    /// The NBD URI of a volume behind its own unix socket.
    pub fn uri(&self, volume: &str) -> String {
        format!("nbd+unix:///{volume}?socket={}", self.socket(volume).display())
    }

    /// The cache file or device.
    pub fn cache(&self) -> PathBuf {
        self.path("cache.img")
    }

    /// The control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// The unix socket of the HTTP API.
    pub fn api_socket(&self) -> PathBuf {
        self.path("api.sock")
    }

    /// Write `larder.toml`, and give its path.
    pub fn write_config(&self) -> PathBuf {
        // Cache and backings lie on one disk here: what else it has to do must not decide what is a hit.
        let text = format!(
            "[cache]\npath = \"{}\"\nsize = \"{}\"\nbypass_slow = false\n{}\n[control]\nsocket = \"{}\"\n{}{}{}",
            self.cache().display(),
            self.cache_size,
            self.cache,
            self.control_socket().display(),
            self.control,
            self.api,
            self.tenants,
        );
        let path = self.path("larder.toml");
        fs::write(&path, text).expect("a configuration in the test's folder");
        path
    }

    /// Start the daemon, and wait until it is ready.
    pub fn start(self) -> Larder {
        Larder::start(self)
    }
}

/// An address of this host on which nobody listens.
pub fn free_tcp_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("the address of a listener")
}
