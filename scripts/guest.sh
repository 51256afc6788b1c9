#!/bin/sh
# A small guest for tests, out of Debian's packages: nothing is installed, no network is needed beyond apt's.
#   scripts/guest.sh build DIR            make DIR/vmlinux and DIR/base.cpio, where they are not there yet
#   scripts/guest.sh initrd DIR JOB OUT   an initramfs that runs the shell script JOB, then powers off
# Boot: qemu-system-x86_64 -accel tcg -kernel DIR/vmlinux -initrd OUT -append "console=ttyS0 quiet panic=-1"
# The guest prints JOB-DONE and the script's result on its console.
set -eu

# What jobs may use, with the Debian packages that have it here.
programs="fio mkfs.ext4 e2fsck blkdiscard"
modules="virtio_pci virtio_blk ext4"

build() {
    out=$1
    mkdir -p "$out"
    exec 9>"$out/lock"
    flock 9
    [ ! -e "$out/done" ] || return 0
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    newest() {
        apt-cache search --names-only '^linux-image-6\.1\.0-[0-9]+-cloud-amd64$' | cut -d' ' -f1 | sort -V | tail -n 1
    }
    package=$(newest)
    if [ -z "$package" ]; then
        apt-get update -q >&2
        package=$(newest)
    fi
    [ -n "$package" ] || { echo "error: apt knows no kernel linux-image-6.1.0-*-cloud-amd64" >&2; exit 1; }
    echo "building a guest with $package in $out" >&2
    (cd "$work" && apt-get download -q "$package" >&2)
    dpkg -x "$work"/*.deb "$work/kernel"
    version=$(ls "$work/kernel/lib/modules")
    unpack_kernel "$work/kernel/boot/vmlinuz-$version" "$out/vmlinux"
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
    cp "$work/kernel/lib/modules/$version/modules.builtin" "$work/kernel/lib/modules/$version/modules.order" "$target/"
    depmod -b "$root" "$version"
    for program in $programs; do
        add_program "$root" "$program"
    done
    init > "$root/init"
    chmod +x "$root/init"
    (cd "$root" && find . | cpio -o -H newc --quiet) > "$out/base.cpio"
    touch "$out/done"
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
    cp -L "$path" "$1/sbin/$2"
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

initrd() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp "$2" "$work/job.sh"
    { cat "$1/base.cpio"; (cd "$work" && echo job.sh | cpio -o -H newc --quiet); } > "$3"
}

PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
case "${1:-}" in
    build) build "$2" ;;
    initrd) initrd "$2" "$3" "$4" ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
