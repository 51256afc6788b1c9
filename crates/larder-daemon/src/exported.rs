//! How clients reach the volumes: over which listeners, hypervisors' sockets and block devices, and who does now.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use larder_engine::VolumeId;
use larder_export::nbd::{Export, ExportTable, NbdCommand};
use larder_export::ublk::{UblkCommand, UblkPlace, UblkStanding, UblkState, UblkVolume};
use larder_export::vhost::{VhostCommand, VhostVolume};
use larder_export::{ExportCommand, ListenAddress, Listener, Users};
use larder_io::{Handle, HandleError, VolumeInfo};

use crate::config::VolumeConfig;
use crate::status::VolumeStatus;

/// How long a way to a volume may take to close.
const CLOSED_WITHIN: Duration = Duration::from_secs(20);

/// A volume that is to be reached.
#[derive(Clone, Debug)]
pub struct Reached<'a> {
    /// What was configured.
    pub config: &'a VolumeConfig,
    /// Its tenant's name.
    pub tenant: &'a str,
    /// What says which disk its backing is.
    pub identity: String,
    /// Its reactor, and its identity there.
    pub reactor: usize,
    /// See there.
    pub volume: VolumeId,
    /// Size and block sizes.
    pub info: VolumeInfo,
}

impl Reached<'_> {
    /// As an NBD server offers it.
    pub fn export(&self) -> Export {
        Export {
            name: self.config.name.clone(),
            description: format!("a volume of {}", self.tenant),
            identity: self.identity.clone(),
            reactor: self.reactor,
            volume: self.volume,
            info: self.info,
        }
    }
}

/// An NBD listener.
#[derive(Debug)]
struct Door {
    /// The reactor that has it.
    reactor: usize,
    table: Arc<ExportTable>,
}

#[derive(Debug, Default)]
struct Ways {
    doors: BTreeMap<ListenAddress, Door>,
    /// The hypervisors of each volume that is served so, by its name.
    hypervisors: BTreeMap<String, Users>,
    /// How the block devices of the volumes that are served so stand, likewise.
    ublk: BTreeMap<String, UblkState>,
}

/// All ways to all volumes. Cheap to clone; every clone tells the same.
#[derive(Clone, Debug, Default)]
pub struct Exported(Arc<Mutex<Ways>>);

impl Exported {
    fn ways(&self) -> MutexGuard<'_, Ways> {
        // Nothing can panic while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A listener at this address, of this reactor, has these exports.
    pub fn note_door(&self, address: ListenAddress, reactor: usize, table: Arc<ExportTable>) {
        self.ways().doors.insert(address, Door { reactor, table });
    }

    /// A disk for hypervisors who come to this listener.
    pub fn disk(&self, reached: &Reached<'_>, listener: Listener) -> VhostVolume {
        let (name, users) = (reached.config.name.clone(), Users::default());
        self.ways().hypervisors.insert(name.clone(), users.clone());
        VhostVolume { name, volume: reached.volume, info: reached.info, listener, users }
    }

    /// A block device of this host.
    pub fn block_device(&self, reached: &Reached<'_>) -> UblkVolume {
        let (name, state) = (reached.config.name.clone(), UblkState::default());
        self.ways().ublk.insert(name.clone(), state.clone());
        UblkVolume {
            name,
            backing: reached.identity.clone(),
            volume: reached.volume,
            info: reached.info,
            state,
        }
    }

    /// What the listener at this address offers.
    pub fn table(&self, address: &ListenAddress) -> Option<Arc<ExportTable>> {
        self.ways().doors.get(address).map(|door| Arc::clone(&door.table))
    }

    /// True if somebody listens there for NBD.
    pub fn has_door(&self, address: &ListenAddress) -> bool {
        self.ways().doors.contains_key(address)
    }

    /// Open all ways to a volume that has come. `nbd` is for an address at which nobody listened, `vhost` for its own socket.
    ///
    /// # Errors
    /// Where its reactor takes no commands.
    pub fn open(
        &self,
        reached: &Reached<'_>,
        reactors: &[Handle<ExportCommand>],
        (nbd, vhost): (Option<Listener>, Option<Listener>),
    ) -> Result<(), HandleError> {
        let reactor = &reactors[reached.reactor];
        if let Some(address) = &reached.config.nbd {
            let export = reached.export();
            let door = self.ways().doors.get(address).map(|door| Arc::clone(&door.table));
            match (door, nbd) {
                (Some(table), _) => table.add(export),
                (None, Some(listener)) => {
                    let table = ExportTable::new(vec![export]);
                    self.note_door(address.clone(), reached.reactor, Arc::clone(&table));
                    reactor.frontend(ExportCommand::Nbd(NbdCommand::listen(listener, table)))?;
                }
                (None, None) => tracing::error!(%address, "BUG: nobody listens there"),
            }
        }
        if let Some(listener) = vhost {
            let disk = self.disk(reached, listener);
            reactor.frontend(ExportCommand::Vhost(VhostCommand::serve(disk)))?;
        }
        if reached.config.ublk {
            let device = self.block_device(reached);
            reactor.frontend(ExportCommand::Ublk(UblkCommand::serve(device)))?;
        }
        Ok(())
    }

    /// Close all ways to a volume that nobody uses. False where somebody does: then some of them may be closed, and asking again goes on.
    ///
    /// # Errors
    /// Where its reactor takes no commands.
    pub fn close(
        &self,
        config: &VolumeConfig,
        volume: VolumeId,
        reactor: usize,
        reactors: &[Handle<ExportCommand>],
    ) -> Result<bool, HandleError> {
        if self.users(&config.name) > 0 {
            return Ok(false);
        }
        let of_it = &reactors[reactor];
        let closed = |command: &dyn Fn(Sender<bool>) -> ExportCommand| {
            let (answer, wait) = mpsc::channel();
            of_it.frontend(command(answer))?;
            Ok(wait.recv_timeout(CLOSED_WITHIN).unwrap_or(false))
        };
        if config.vhost_user.is_some() && self.ways().hypervisors.contains_key(&config.name) {
            if !closed(&|answer| ExportCommand::Vhost(VhostCommand::close(volume, answer)))? {
                return Ok(false);
            }
            self.ways().hypervisors.remove(&config.name);
        }
        if config.ublk && self.ways().ublk.contains_key(&config.name) {
            if !closed(&|answer| ExportCommand::Ublk(UblkCommand::remove(volume, answer)))? {
                return Ok(false);
            }
            self.ways().ublk.remove(&config.name);
        }
        let Some(address) = &config.nbd else { return Ok(true) };
        let (reactor, is_last) = match self.ways().doors.get(address) {
            None => return Ok(true),
            Some(door) if door.table.remove(&config.name).is_err() => return Ok(false),
            Some(door) => (door.reactor, door.table.is_empty()),
        };
        if is_last {
            let (answer, wait) = mpsc::channel();
            reactors[reactor].frontend(ExportCommand::Nbd(NbdCommand::close(address.clone(), answer)))?;
            self.ways().doors.remove(address);
            // One that does not answer closes it later: whoever binds the address meanwhile is told so.
            let _ = wait.recv_timeout(CLOSED_WITHIN);
        }
        Ok(true)
    }

    /// Clients of a volume now: connections, hypervisors, and its block device where somebody has that open, which takes a moment to find out.
    pub fn users(&self, name: &str) -> usize {
        let opened = self.block_device_of(name).is_some_and(|place| place.is_in_use());
        self.clients(name) + usize::from(opened)
    }

    /// Those that have connected.
    fn clients(&self, name: &str) -> usize {
        let ways = self.ways();
        let nbd: usize = ways.doors.values().filter_map(|door| door.table.connections(name)).sum();
        nbd + ways.hypervisors.get(name).map_or(0, Users::count)
    }

    /// A volume has grown: those who connect from now on are told, and this host, if it has a block device: why that could not be.
    pub fn resize(&self, name: &str, bytes: u64) -> Option<String> {
        self.ways().doors.values().for_each(|door| door.table.resize(name, bytes));
        let device = self.block_device_of(name);
        device.and_then(|place| place.resize(bytes).err()).map(|error| error.to_string())
    }

    /// Wait until it is known of each block device how it stands, but not beyond `until`.
    pub fn wait(&self, until: Instant) {
        let states: Vec<UblkState> = self.ways().ublk.values().cloned().collect();
        states.iter().for_each(|state| drop(state.wait(until)));
    }

    /// The block device of a volume, if it is there.
    fn block_device_of(&self, name: &str) -> Option<UblkPlace> {
        match self.ways().ublk.get(name)?.get() {
            UblkStanding::Served(place) => Some(place),
            UblkStanding::Starting | UblkStanding::Absent(_) => None,
        }
    }

    /// What there is to tell of how volumes are reached, and by whom.
    pub fn tell<'v>(&self, volumes: impl Iterator<Item = &'v mut VolumeStatus>) {
        let ways = self.ways();
        let mut connections: HashMap<String, usize> = HashMap::new();
        for door in ways.doors.values() {
            for (name, count) in door.table.used() {
                *connections.entry(name).or_default() += count;
            }
        }
        for volume in volumes {
            let nbd = connections.get(&volume.name).copied().unwrap_or(0);
            let hypervisors = ways.hypervisors.get(&volume.name).map_or(0, Users::count);
            volume.clients = (nbd + hypervisors) as u64;
            match ways.ublk.get(&volume.name).map(UblkState::get) {
                None => {}
                Some(UblkStanding::Starting) => volume.ublk_problem = Some("it is being made".into()),
                Some(UblkStanding::Served(place)) => volume.ublk = Some(place.path().display().to_string()),
                Some(UblkStanding::Absent(why)) => volume.ublk_problem = Some(why),
            }
        }
    }
}
