//! The sockets on which clients and operators connect, and the group that may use them.

use larder_export::{ListenAddress, Listener, bind_for_group, group_id};

use super::ServeError;
use super::inherited::Inherited;
use crate::api::ApiListeners;
use crate::config::{ApiConfig, Config, SocketGroup, VolumeConfig};
use crate::control_socket::ControlSocket;

/// All of them, listening. Dropped, they leave nothing behind.
pub(super) struct Sockets {
    /// For NBD: one for each distinct address, with the addresses' volumes told apart by name.
    pub nbd: Vec<Listener>,
    /// For vhost-user: one for each volume that is served so, in the order of the configuration.
    pub vhost: Vec<Listener>,
    pub control: ControlSocket,
    /// The HTTP API, where there is one.
    pub api: Option<ApiListeners>,
}

impl Sockets {
    /// Listen on every address that a configuration names, on inherited sockets where there are some.
    pub fn bind(config: &Config, inherited: &mut Inherited) -> Result<Self, ServeError> {
        let group = group(config)?;
        let mut addresses: Vec<&ListenAddress> =
            config.volumes().filter_map(|volume| volume.nbd.as_ref()).collect();
        addresses.sort();
        addresses.dedup();
        let mut bind = |address: &ListenAddress| match inherited.listener(address, group)? {
            Some(listener) => Ok(listener),
            None => bind_for_group(address, group),
        };
        let nbd = addresses.into_iter().map(&mut bind).collect::<Result<_, _>>()?;
        let own = config.volumes().filter_map(VolumeConfig::vhost_address);
        let vhost = own.map(|address| bind(&address)).collect::<Result<_, _>>()?;
        let control = match inherited.control(&config.control.socket) {
            Some(listener) => ControlSocket::activated(listener),
            None => ControlSocket::bind(&config.control.socket, group)?,
        };
        let api = config.api.as_ref().map(|api| bind_api(api, group)).transpose()?;
        Ok(Self { nbd, vhost, control, api })
    }
}

/// The API has a group of its own, or else that of the others.
fn bind_api(config: &ApiConfig, group: Option<u32>) -> Result<ApiListeners, ServeError> {
    let own = config.socket_group.as_ref().map(|group| number("api", group)).transpose()?;
    Ok(ApiListeners::bind(config, own.or(group))?)
}

/// The number of the group that may use the sockets, if there is one.
pub(super) fn group(config: &Config) -> Result<Option<u32>, ServeError> {
    config.control.socket_group.as_ref().map(|group| number("control", group)).transpose()
}

/// The number of the group that a section of the configuration names.
fn number(section: &'static str, group: &SocketGroup) -> Result<u32, ServeError> {
    match group {
        SocketGroup::Number(number) => Ok(*number),
        SocketGroup::Name(name) => group_id(name)
            .map_err(|source| ServeError::Os { action: "look the socket group up", source })?
            .ok_or_else(|| ServeError::UnknownGroup { section, name: name.clone() }),
    }
}
