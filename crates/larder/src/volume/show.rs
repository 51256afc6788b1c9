//! `larder volume show`: how guests, containers and the host get at a volume, as lines to paste.
//!
//! It reads the configuration, and needs no daemon.

use std::fmt::Write as _;
use std::path::Path;

use larder_daemon::config::{Config, ListenAddress, TenantConfig, UBLK_LINKS, VolumeConfig};

use crate::cli;
use crate::output::print;
use crate::problem::Problem;

/// Queues of a disk in the examples; a guest uses one for each of its processors.
const QUEUES: u32 = 4;

/// Print the ways to one volume, or to all.
pub fn show(options: &cli::ShowVolume) -> Result<(), Problem> {
    let config = Config::load(&options.config)?;
    let wanted = |volume: &VolumeConfig| options.name.as_ref().is_none_or(|name| *name == volume.name);
    let found: Vec<String> = config
        .tenants
        .iter()
        .flat_map(|tenant| tenant.volumes.iter().map(move |volume| (tenant, volume)))
        .filter(|(_, volume)| wanted(volume))
        .map(|(tenant, volume)| ways(tenant, volume))
        .collect();
    if let Some(name) = &options.name
        && found.is_empty()
    {
        let names: Vec<&str> = config.volumes().map(|volume| volume.name.as_str()).collect();
        let help = format!("{} has the volumes {}", options.config.display(), names.join(", "));
        return Err(Problem::new(format_args!("there is no volume \"{name}\""), help));
    }
    print(&found.join("\n"))
}

/// Everything about one volume.
fn ways(tenant: &TenantConfig, volume: &VolumeConfig) -> String {
    let mut text = format!("volume {} of tenant {}, on {}\n", volume.name, tenant.name, volume.backing);
    if let Some(socket) = &volume.vhost_user {
        vhost_user(&mut text, &volume.name, socket);
    }
    if volume.ublk {
        ublk(&mut text, &volume.name);
    }
    if let (Some(address), Some(uri)) = (&volume.nbd, volume.export_uri()) {
        nbd(&mut text, &volume.name, address, &uri.to_string());
    }
    text
}

/// A title, and lines below it.
fn part(text: &mut String, title: &str, lines: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n  {title}");
    for line in lines.lines() {
        let _ = writeln!(text, "{}", format_args!("    {line}").to_string().trim_end());
    }
}

fn vhost_user(text: &mut String, name: &str, socket: &Path) {
    let socket = socket.display().to_string();
    // QEMU separates options by commas, and wants those of a value doubled.
    let escaped = socket.replace(',', ",,");
    let xml = xml(&socket);
    part(
        text,
        "QEMU, over vhost-user (with the guest's memory shared: here 4 GiB)",
        &format!(
            "-object memory-backend-memfd,id=mem,size=4G,share=on -numa node,memdev=mem \\\n\
             -chardev socket,id={name},path={escaped},reconnect=1 \\\n\
             -device vhost-user-blk-pci,chardev={name},num-queues={QUEUES}"
        ),
    );
    part(
        text,
        "libvirt, over vhost-user: in <domain>, then in <devices>",
        &format!(
            "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>\n\n\
             <disk type='vhostuser' device='disk'>\n  \
             <driver name='qemu' type='raw' queues='{QUEUES}'/>\n  \
             <source type='unix' path='{xml}'><reconnect enabled='yes' timeout='1'/></source>\n  \
             <target dev='vda' bus='virtio'/>\n\
             </disk>"
        ),
    );
    part(
        text,
        "Cloud Hypervisor, over vhost-user",
        &format!(
            "--memory size=4G,shared=on --disk vhost_user=on,socket={socket},num_queues={QUEUES},queue_size=128"
        ),
    );
}

fn ublk(text: &mut String, name: &str) {
    let device = Path::new(UBLK_LINKS).join(name);
    let device = device.display();
    part(
        text,
        "the host itself, as a block device; then in /etc/fstab, once it has a file system",
        &format!(
            "modprobe ublk_drv\n\n\
             {device} /mnt/{name} ext4 noauto,_netdev,x-systemd.requires=larder.service 0 2"
        ),
    );
}

fn nbd(text: &mut String, name: &str, address: &ListenAddress, uri: &str) {
    part(
        text,
        "QEMU, over NBD",
        &format!("-drive file='{}',format=raw,if=virtio,cache=none", uri.replace(',', ",,")),
    );
    let (host, client) = match address {
        ListenAddress::Unix(path) => {
            let path = path.display().to_string();
            (format!("transport='unix' socket='{}'", xml(&path)), format!("-unix '{path}'"))
        }
        ListenAddress::Tcp(tcp) => {
            (format!("name='{}' port='{}'", tcp.ip(), tcp.port()), format!("{} {}", tcp.ip(), tcp.port()))
        }
    };
    part(
        text,
        "libvirt, over NBD: in <devices>",
        &format!(
            "<disk type='network' device='disk'>\n  \
             <driver name='qemu' type='raw' cache='none'/>\n  \
             <source protocol='nbd' name='{name}'><host {host}/></source>\n  \
             <target dev='vda' bus='virtio'/>\n\
             </disk>"
        ),
    );
    part(
        text,
        "the host itself, over NBD; then in /etc/fstab, once it has a file system",
        &format!(
            "modprobe nbd && nbd-client {client} /dev/nbd0 -name '{name}' -persist\n\n\
             /dev/nbd0 /mnt/{name} ext4 noauto,_netdev 0 2"
        ),
    );
}

/// Text between apostrophes in XML.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
