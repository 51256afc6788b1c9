#!/bin/sh
# A small guest for tests, out of Debian's packages: nothing is installed, no network is needed beyond apt's.
#   scripts/guest.sh build DIR            make DIR/vmlinux and DIR/base.cpio, where they are not there yet
#   scripts/guest.sh build-ublk DIR       the same with a kernel that has ublk, and DIR/qemu: a QEMU that boots it (both from backports)
#   scripts/guest.sh build-ublk-new DIR   likewise, with the newest kernel of Debian 13's backports: what 6.12 cannot do yet
#   scripts/guest.sh build-caches DIR     the same with other caches of Linux (dm-cache, bcache), and nbd: for make bench-guest
#   scripts/guest.sh build-boot DIR       the same without programs, to boot a system from a disk: for make test-systemd
#   scripts/guest.sh build-boot-ublk DIR  likewise, with ublk
#   scripts/guest.sh initrd DIR JOB OUT [PROGRAM...]   an initramfs that runs the shell script JOB, then powers off; PROGRAMs are files of this host
# Boot: qemu-system-x86_64 -accel tcg -kernel DIR/vmlinux -initrd OUT -append "console=ttyS0 quiet panic=-1"
# The guest prints JOB-DONE and the script's result on its console.
set -eu

# What jobs may use, with the Debian packages that have it here.
programs="fio mkfs.ext4 e2fsck blkdiscard"
modules="virtio_pci virtio_blk ext4"
# Of which release the kernel is, and options of apt's that know it.
kernels='^linux-image-6\.1\.0-[0-9]+-cloud-amd64$'
apt=""
# Of which release's backports it is, where that is another than this host's.
kernel_release=""

# build DIR KIND
build() {
    out=$1
    kind=$2
    mkdir -p "$out"
    exec 9>"$out/lock"
    flock 9
    # What another version of this script made lacks something.
    version_of_this=$(sha256sum < "$0")
    [ "$(cat "$out/done" 2>/dev/null)" != "$version_of_this" ] || return 0
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    if [ "$kind" = ublk ]; then
        with_backports
        newer_qemu "$out/qemu"
        [ -z "$kernel_release" ] || only_backports_of "$kernel_release"
    fi
    newest() {
        apt-cache $apt search --names-only "$kernels" | cut -d' ' -f1 | sort -V | tail -n 1
    }
    package=$(newest)
    if [ -z "$package" ]; then
        apt-get $apt update -q >&2
        package=$(newest)
    fi
    [ -n "$package" ] || { echo "error: apt knows no kernel $kernels" >&2; exit 1; }
    echo "building a guest with $package in $out" >&2
    # From 6.19 on kernel and modules come in packages of their own.
    more=""
    for part in binary modules; do
        of_it="linux-$part-${package#linux-image-}"
        [ -z "$(apt-cache $apt search --names-only "^$(echo "$of_it" | sed 's/[.+]/\\&/g')$")" ] || more="$more $of_it"
    done
    (cd "$work" && apt-get $apt download -q "$package" $more >&2)
    for file in "$work"/*.deb; do
        dpkg -x "$file" "$work/kernel"
    done
    # Newer ones have all below /usr.
    [ -d "$work/kernel/lib" ] || ln -s usr/lib "$work/kernel/lib"
    version=$(ls "$work/kernel/lib/modules")
    image="$work/kernel/boot/vmlinuz-$version"
    [ -e "$image" ] || image="$work/kernel/lib/modules/$version/vmlinuz"
    unpack_kernel "$image" "$out/vmlinux"
    depmod -b "$work/kernel" "$version"

    root="$work/root"
    mkdir -p "$root/bin" "$root/sbin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/run" "$root/mnt" "$root/etc"
    cp "$(command -v busybox)" "$root/bin/busybox"
    target="$root/lib/modules/$version"
    mkdir -p "$target"
    for module in $modules; do
        # Some are part of the kernel.
        modprobe -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" { print $2 }' || true
    done | sort -u | while read -r file; do
        case "$file" in
            *.xz) xz -dc "$file" > "$target/$(basename "$file" .xz)" ;;
            *) cp "$file" "$target/" ;;
        esac
    done
    for list in builtin order; do
        cp "$work/kernel/lib/modules/$version/modules.$list" "$target/" 2>/dev/null || true
    done
    depmod -b "$root" "$version"
    for program in $programs; do
        add_program "$root" "$program"
    done
    init > "$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet) > "$out/base.cpio"
    echo "$version_of_this" > "$out/done"
}

# Ask a state of apt's own that knows Debian's backports as well, from the mirror that this host uses. The system's stays as it is.
with_backports() {
    state="$work/apt"
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/sources"
    sources=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
    mirror=$(echo "$sources" | awk '$1 == "URIs:" { print $2; exit }')
    key=$(echo "$sources" | awk '$1 == "Signed-By:" { print $2; exit }')
    mirror=${mirror:-http://deb.debian.org/debian}
    key=${key:-/usr/share/keyrings/debian-archive-keyring.gpg}
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    for suite in "$release" "$release-backports"; do
        echo "deb [signed-by=$key] $mirror $suite main"
    done > "$state/sources/all.list"
    apt="-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$state/sources -o Dir::State::Lists=$state/lists -o Dir::Cache=$state/cache"
    apt-get $apt update -q >&2
    kernels='^linux-image-6\.12\.[0-9]+\+.*-cloud-amd64$'
    modules="$modules ublk_drv loop"
    programs="$programs mount umount"
}

# From here on ask for what this release's backports have alone.
only_backports_of() {
    echo "deb [signed-by=$key] $mirror $1-backports main" > "$state/sources/all.list"
    apt-get $apt update -q >&2
    kernels='^linux-image-[0-9.]+\+.*-cloud-amd64$'
}

# Debian 12's QEMU crashes kernels from 6.12 on in some boots: unpack a newer one, with what it needs, beside the system's.
newer_qemu() {
    mkdir -p "$1" "$work/qemu"
    # What would be installed; already installed packages are not named, and not needed.
    wanted=$(apt-get $apt -s --no-install-recommends -t "$release-backports" install qemu-system-x86 | awk '$1 == "Inst" { print $2 }')
    case " $(echo $wanted) " in
        *" qemu-system-x86 "*) ;;
        *) echo "error: $release-backports has no newer qemu-system-x86" >&2; exit 1 ;;
    esac
    (cd "$work/qemu" && apt-get $apt -t "$release-backports" download -q $wanted >&2)
    for package in "$work"/qemu/*.deb; do
        dpkg -x "$package" "$1"
    done
    cat > "$1/run" <<'R'
#!/bin/sh
# This QEMU, with its own libraries and firmware before the system's.
here=$(dirname "$(realpath "$0")")
LD_LIBRARY_PATH="$here/usr/lib/x86_64-linux-gnu:$here/lib/x86_64-linux-gnu" \
    exec "$here/usr/bin/qemu-system-x86_64" -L "$here/usr/share/qemu" -L "$here/usr/share/seabios" -L /usr/share/seabios -L /usr/share/qemu "$@"
R
    chmod +x "$1/run"
}

# The ELF inside a bzImage: it boots without unpacking itself, which takes long under emulation.
unpack_kernel() {
    python3 - "$1" "$2" <<'P'
import struct, subprocess, sys
image = open(sys.argv[1], "rb").read()
sectors = image[0x1F1] or 4
offset, length = struct.unpack_from("<II", image, 0x248)
start = (sectors + 1) * 512 + offset
payload = image[start : start + length]
unpackers = {b"\xfd7zXZ": ["xz", "-dc", "--single-stream"], b"\x28\xb5\x2f\xfd": ["zstd", "-dc"], b"\x1f\x8b": ["gzip", "-dc"], b"\x02\x21\x4c\x18": ["lz4", "-dc"]}
command = next((command for magic, command in unpackers.items() if payload.startswith(magic)), None)
if command is None:
    sys.exit(f"error: the kernel is packed in an unknown way: {payload[:6].hex()}")
# What follows the packed kernel is no error.
unpacked = subprocess.run(command, input=payload, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
if not unpacked.startswith(b"\x7fELF"):
    sys.exit("error: no kernel came out of the package")
open(sys.argv[2], "wb").write(unpacked)
P
}

# A program of this host, with its libraries.
add_program() {
    path=$(command -v "$2") || { echo "error: no $2 here; scripts/install-deps.sh test installs it" >&2; exit 1; }
    path=$(realpath "$path")
    cp -L "$path" "$1/sbin/$(basename "$2")"
    # A static program has none.
    { ldd "$path" 2>/dev/null || true; } | grep -o '/[^ ]*' | sort -u | while read -r library; do
        mkdir -p "$1$(dirname "$library")"
        [ -e "$1$library" ] || cp -L "$library" "$1$library"
    done
}

init() {
    cat <<'I'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
# A guest that hangs tells where, before whoever waits for it gives it up.
(
    sleep 240
    echo "GUEST-SLOW: what runs after 240 s, and what waits"
    ps
    for task in /proc/[0-9]*/task/*; do
        [ -s "$task/cmdline" ] && echo "$task $(tr '\0' ' ' < "$task/cmdline"): $(cat "$task/wchan")"
    done
    echo w > /proc/sysrq-trigger
    dmesg | tail -n 60
    cat /tmp/*.log
) > /dev/console 2>&1 &
echo GUEST-UP
modprobe virtio_pci
modprobe virtio_blk
modprobe ext4
result=127
[ -f /job.sh ] && { sh /job.sh; result=$?; }
echo "JOB-DONE $result"
sync
poweroff -f
I
}

# initrd DIR JOB OUT [PROGRAM...]
initrd() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    base="$1/base.cpio" out=$3
    mkdir -p "$work/sbin"
    cp "$2" "$work/job.sh"
    shift 3
    for program in "$@"; do
        add_program "$work" "$program"
        # Debug information takes the guest's memory, and tells nobody anything.
        strip -o "$work/stripped" "$program" && mv "$work/stripped" "$work/sbin/$(basename "$program")"
        chmod +x "$work/sbin/$(basename "$program")"
    done
    { cat "$base"; (cd "$work" && find . -mindepth 1 | cpio -o -H newc --quiet); } > "$out"
}

PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
case "${1:-}" in
    build) build "$2" plain ;;
    build-ublk) build "$2" ublk ;;
    build-ublk-new)
        kernel_release=trixie
        build "$2" ublk
        ;;
    build-caches)
        programs="$programs dmsetup make-bcache nbd-client"
        modules="$modules dm-mod dm-cache dm-cache-smq bcache nbd"
        build "$2" plain
        ;;
    build-boot)
        programs=""
        modules="$modules nvme"
        build "$2" plain
        ;;
    build-boot-ublk)
        programs=""
        modules="$modules nvme"
        build "$2" ublk
        ;;
    initrd) shift; initrd "$@" ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
