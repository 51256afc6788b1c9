#!/bin/sh
# The Debian package under a real systemd: a small Debian is put together, booted under QEMU by emulation, and the checks of scripts/test-systemd/ run in it.
# Takes root, and the network for mmdebstrap; nothing is installed here. The fresh Debian and the kernel are kept in FOLDER for the next time.
# usage: scripts/test-systemd.sh PACKAGE.deb VHOST_LOAD [SUITE [FOLDER]]   VHOST_LOAD: the example of larder-export, a client over vhost-user
#   LARDER_KERNEL=ublk     with a kernel that has ublk, from backports
#   LARDER_STEPS="a b"     these steps of scripts/test-systemd alone (each needs what the ones before it leave)
set -eu
package=$(realpath "$1")
load=$(realpath "$2")
suite=${3:-bookworm}
here=$(dirname "$(realpath "$0")")
kept=${4:-${CARGO_TARGET_DIR:-$here/../target}/systemd}
# Guests by emulation are slow, and others may want the processors.
limit=3600
[ "$(id -u)" = 0 ] || { echo "error: not root. Run as root: $0 $*" >&2; exit 1; }
for program in mmdebstrap mke2fs qemu-system-x86_64 cpio dpkg-deb; do
    command -v $program >/dev/null || { echo "error: no $program here; scripts/install-deps.sh test-systemd installs it" >&2; exit 1; }
done
step() { echo "== $*"; }

mkdir -p "$kept"
kept=$(realpath "$kept")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What the checks need besides the package.
packages="systemd,systemd-sysv,udev,dbus,kmod,procps,util-linux,mount,e2fsprogs,python3-libnbd,smartmontools"
base=$kept/$suite.tar
if [ "$(cat "$base.of" 2>/dev/null)" != "$packages" ]; then
    step "a fresh Debian ($suite), kept in $base"
    mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" "$base"
    echo "$packages" > "$base.of"
fi
case ${LARDER_KERNEL:-plain} in
    plain) kernel=$kept/kernel build=build-boot qemu=qemu-system-x86_64 ;;
    ublk) kernel=$kept/kernel-ublk build=build-boot-ublk qemu=$kept/kernel-ublk/qemu/run ;;
    *) echo "error: LARDER_KERNEL is plain or ublk" >&2; exit 2 ;;
esac
"$here/guest.sh" $build "$kernel"

step "the package, and a later one"
root=$folder/root
mkdir "$root"
tar -xf "$base" -C "$root"
install -d "$root/test"
cp "$package" "$root/test/now.deb"
dpkg-deb -R "$package" "$folder/later"
sed -i 's/^Version: .*/&+later/' "$folder/later/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 -b "$folder/later" "$root/test/later.deb" >/dev/null
strip -o "$root/test/vhost_load" "$load"
cp "$here"/test-systemd/*.py "$root/test/"
cp "$here/test-systemd/test.service" "$root/etc/systemd/system/"
echo "${LARDER_STEPS:-}" > "$root/test/steps"
# Newer ones do not listen to the kernel's audit by themselves.
install -d "$root/etc/systemd/journald.conf.d" "$root/etc/systemd/system/sockets.target.wants"
printf '[Journal]\nAudit=yes\n' > "$root/etc/systemd/journald.conf.d/audit.conf"
ln -s /usr/lib/systemd/system/systemd-journald-audit.socket "$root/etc/systemd/system/sockets.target.wants/"
ln -s ../test.service "$root/etc/systemd/system/multi-user.target.wants/test.service"
ln -s /dev/null "$root/etc/systemd/system/serial-getty@.service"
echo "/dev/vda / ext4 errors=remount-ro 0 1" > "$root/etc/fstab"
echo guest > "$root/etc/hostname"
echo "127.0.0.1 localhost guest" > "$root/etc/hosts"
: > "$root/etc/machine-id"

step "disks"
truncate -s 2G "$folder/root.img"
mke2fs -q -t ext4 -d "$root" "$folder/root.img"
truncate -s 256M "$folder/backing.img" "$folder/ssd.img"

# The initramfs of the tests' guests, which mounts the disk and goes on there.
mkdir "$folder/boot"
cat > "$folder/boot/init" <<'I'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/sbin:/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in virtio_pci virtio_blk nvme ext4; do modprobe $module; done
[ ! -e /lib/modules/*/ublk_drv.ko ] || modprobe ublk_drv
tries=0
until [ -b /dev/vda ] || [ $tries = 600 ]; do sleep 0.1; tries=$((tries + 1)); done
mount -t ext4 /dev/vda /mnt
mount --move /dev /mnt/dev
umount /proc
exec switch_root /mnt /sbin/init
I
chmod +x "$folder/boot/init"
{ cat "$kernel/base.cpio"; (cd "$folder/boot" && echo init | cpio -o -H newc --quiet); } > "$folder/initrd"

step "boot"
# systemd has the kernel log refused system calls where it finds this variable, which the kernel hands on.
status=0
: > "$folder/console"
timeout -k 10 $limit "$qemu" -accel tcg,thread=multi -cpu max -smp 2 -m 1500 -display none -nic none -monitor none -serial stdio \
    -kernel "$kernel/vmlinux" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1 audit=1 audit_backlog_limit=8192 SYSTEMD_LOG_SECCOMP=1 systemd.show_status=0 mitigations=off rw" \
    -drive file="$folder/root.img",if=virtio,format=raw,cache=unsafe \
    -drive file="$folder/backing.img",if=virtio,format=raw,cache=unsafe \
    -drive file="$folder/ssd.img",if=none,format=raw,cache=unsafe,id=ssd -device nvme,drive=ssd,serial=test \
    < /dev/null > "$folder/console" 2>&1 &
guest=$!
tail -F -s 0.2 --pid=$guest "$folder/console" 2>/dev/null | sed -un 's,^TEST ,,p' || true
wait $guest || status=$?
if [ $status != 0 ] || ! grep -q '^TEST DONE' "$folder/console"; then
    cp "$folder/console" "$kept/console"
    tail -n 60 "$folder/console"
    echo "FAILED: see $kept/console (the guest ended with $status)" >&2
    exit 1
fi
