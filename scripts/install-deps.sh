#!/bin/sh
# Install the Debian packages that one of the make targets needs, and say so. Does nothing where all are there.
# usage: scripts/install-deps.sh build|deb|test|test-systemd|bench|bench-flushes|bench-guest|bench-locality|demo
set -eu
case "${1:-}" in
    build) packages="build-essential pkg-config" ;;
    deb) packages="build-essential pkg-config dpkg-dev mmdebstrap libnbd-bin" ;;
    test-systemd) packages="build-essential pkg-config dpkg-dev mmdebstrap e2fsprogs qemu-system-x86 seabios busybox-static cpio kmod xz-utils python3" ;;
    test) packages="build-essential pkg-config nbdkit nbdkit-plugin-python libnbd-bin python3-libnbd qemu-utils qemu-system-common fio fuse3 e2fsprogs zstd python3-venv qemu-system-x86 seabios busybox-static cpio kmod xz-utils lz4 prometheus openssl curl bsdutils mandoc man-db systemd strace" ;;
    bench) packages="build-essential pkg-config python3 nbdkit libnbd-bin qemu-utils qemu-system-common fio python3-venv" ;;
    bench-flushes) packages="build-essential pkg-config python3 nbdkit nbdkit-plugin-python libnbd-bin fuse3 fio" ;;
    bench-guest) packages="build-essential pkg-config python3 fio e2fsprogs qemu-system-x86 seabios busybox-static cpio kmod xz-utils lz4 dmsetup bcache-tools nbd-client" ;;
    bench-locality) packages="build-essential pkg-config python3 cmake libglib2.0-dev libzstd-dev" ;;
    demo) packages="build-essential pkg-config nbdkit libnbd-bin python3-libnbd zstd" ;;
    *) echo "usage: $0 build|deb|test|test-systemd|bench|bench-flushes|bench-guest|bench-locality|demo" >&2; exit 2 ;;
esac

command -v cargo >/dev/null || { echo "error: no cargo. Install Rust 1.95 or later: https://rustup.rs" >&2; exit 1; }

missing=""
for package in $packages; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing Debian packages:$missing"
sudo=""
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || { echo "error: not root, and no sudo. Run as root: apt-get install$missing" >&2; exit 1; }
fi
$sudo apt-get update -q
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
