//! `larder volume show`: lines to paste, from the configuration alone.

use std::fs;

use crate::lab::Lab;

const CONFIG: &str = r#"
[cache]
path = "cache.img"
size = "64MiB"
[[tenant]]
name = "db"
[[tenant.volume]]
name = "db-root"
backing = "/srv/db.img"
nbd = "unix:/run/larder/db-root.sock"
vhost_user = "/run/larder/db,root.vhost"
[[tenant.volume]]
name = "db-log"
backing = "/srv/log.img"
nbd = "tcp:127.0.0.1:10809"
[[tenant.volume]]
name = "db-data"
backing = "/srv/data.img"
ublk = true
"#;

const DB_ROOT: &str = r"volume db-root of tenant db, on /srv/db.img

  QEMU, over vhost-user (with the guest's memory shared: here 4 GiB)
    -object memory-backend-memfd,id=mem,size=4G,share=on -numa node,memdev=mem \
    -chardev socket,id=db-root,path=/run/larder/db,,root.vhost,reconnect=1 \
    -device vhost-user-blk-pci,chardev=db-root,num-queues=4

  libvirt, over vhost-user: in <domain>, then in <devices>
    <memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>

    <disk type='vhostuser' device='disk'>
      <driver name='qemu' type='raw' queues='4'/>
      <source type='unix' path='/run/larder/db,root.vhost'><reconnect enabled='yes' timeout='1'/></source>
      <target dev='vda' bus='virtio'/>
    </disk>

  Cloud Hypervisor, over vhost-user
    --memory size=4G,shared=on --disk vhost_user=on,socket=/run/larder/db,root.vhost,num_queues=4,queue_size=128

  QEMU, over NBD
    -drive file='nbd+unix:///db-root?socket=/run/larder/db-root.sock',format=raw,if=virtio,cache=none

  libvirt, over NBD: in <devices>
    <disk type='network' device='disk'>
      <driver name='qemu' type='raw' cache='none'/>
      <source protocol='nbd' name='db-root'><host transport='unix' socket='/run/larder/db-root.sock'/></source>
      <target dev='vda' bus='virtio'/>
    </disk>

  the host itself, over NBD; then in /etc/fstab, once it has a file system
    modprobe nbd && nbd-client -unix '/run/larder/db-root.sock' /dev/nbd0 -name 'db-root' -persist

    /dev/nbd0 /mnt/db-root ext4 noauto,_netdev 0 2
";

const DB_DATA: &str = r"volume db-data of tenant db, on /srv/data.img

  the host itself, as a block device; then in /etc/fstab, once it has a file system
    modprobe ublk_drv

    /dev/larder/db-data /mnt/db-data ext4 noauto,_netdev,x-systemd.requires=larder.service 0 2
";

fn show(name: &[&str]) -> std::process::Output {
    let lab = Lab::new();
    let path = lab.path("larder.toml");
    fs::write(&path, CONFIG).expect("a configuration");
    lab.larder(&[&["volume", "show", "--config", path.to_str().expect("UTF-8")], name].concat())
}

#[test]
fn the_lines_of_a_volume_can_be_pasted() {
    let output = show(&["db-root"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), DB_ROOT);
    assert_eq!(String::from_utf8_lossy(&show(&["db-data"]).stdout), DB_DATA);
}

#[test]
fn without_a_name_all_volumes_are_shown() {
    let output = show(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with(DB_ROOT) && text.contains("nbd-client 127.0.0.1 10809 /dev/nbd0 -name 'db-log'"),
        "{text}"
    );
    assert_eq!(text.matches("vhost-user-blk-pci").count(), 1, "db-log is not served so: {text}");
}

#[test]
fn an_unknown_volume_is_told_with_those_there_are() {
    let output = show(&["db-rot"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("there is no volume \"db-rot\"") && text.contains("db-root, db-log"), "{text}");
}
