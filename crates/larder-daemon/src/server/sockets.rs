//! The sockets on which clients and operators connect, and the group that may use them.

use larder_export::group_id;
use larder_export::nbd::{self, ListenAddress, Listener};

use super::ServeError;
use crate::config::{Config, SocketGroup};
use crate::control_socket::ControlSocket;

/// All of them, listening. Dropped, they leave nothing behind.
pub(super) struct Sockets {
    /// One for each distinct address, with the addresses' volumes told apart by name.
    pub listeners: Vec<Listener>,
    pub control: ControlSocket,
}

impl Sockets {
    /// Listen on every address that a configuration names.
    pub fn bind(config: &Config) -> Result<Self, ServeError> {
        let group = config.control.socket_group.as_ref().map(number).transpose()?;
        let mut addresses: Vec<&ListenAddress> = config.volumes().map(|volume| &volume.listen).collect();
        addresses.sort();
        addresses.dedup();
        let bind = |address| nbd::bind_for_group(address, group);
        let listeners = addresses.into_iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { listeners, control: ControlSocket::bind(&config.control.socket, group)? })
    }
}

/// The number of a group.
fn number(group: &SocketGroup) -> Result<u32, ServeError> {
    match group {
        SocketGroup::Number(number) => Ok(*number),
        SocketGroup::Name(name) => group_id(name)
            .map_err(|source| ServeError::Os { action: "look the socket group up", source })?
            .ok_or_else(|| ServeError::UnknownGroup(name.clone())),
    }
}
