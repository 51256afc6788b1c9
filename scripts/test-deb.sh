#!/bin/sh
# Install, run, upgrade, remove and purge the Debian package in a fresh Debian below a temporary folder. Takes root, and the network for mmdebstrap.
# usage: scripts/test-deb.sh PACKAGE.deb [SUITE]
set -eu
package=$(realpath "$1")
suite=${2:-bookworm}
[ "$(id -u)" = 0 ] || { echo "error: not root. Run as root: $0 $*" >&2; exit 1; }
command -v mmdebstrap >/dev/null || { echo "error: mmdebstrap is missing; install it: apt-get install mmdebstrap" >&2; exit 1; }

folder=$(mktemp -d)
root=$folder/root
daemon=
tidy() {
    [ -z "$daemon" ] || kill -KILL "$daemon" || true
    umount "$root/proc" 2>/dev/null || true
    rm -rf "$folder"
}
trap tidy EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
step() { echo "== $*"; }
inside() { chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
# Wait up to a minute for something to hold.
until_it_holds() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "not after a minute: $*"
        sleep 0.1
    done
}

step "a fresh Debian ($suite)"
mmdebstrap --quiet --variant=minbase --include=systemd,passwd,util-linux "$suite" "$root"
mount -t proc proc "$root/proc"
# As if systemd ran, with a systemctl that writes down what it is asked.
mkdir -p "$root/run/systemd/system" "$root/packages"
cat > "$root/usr/local/sbin/systemctl" <<'FAKE'
#!/bin/sh
echo "$*" >> /systemctl.log
case "$*" in *is-active*|*is-enabled*|*show*) [ -e /larder-runs ] ;; esac
FAKE
chmod 755 "$root/usr/local/sbin/systemctl"

step "the package, and a later one with another sample configuration"
cp "$package" "$root/packages/now.deb"
dpkg-deb -R "$package" "$folder/later"
sed -i 's/^Version: .*/&+later/' "$folder/later/DEBIAN/control"
echo "# a later sample" >> "$folder/later/etc/larder/larder.toml"
(cd "$folder/later" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum > DEBIAN/md5sums)
dpkg-deb --root-owner-group -b "$folder/later" "$root/packages/later.deb" >/dev/null

step "install"
inside apt-get install -y -q --no-install-recommends /packages/now.deb >/dev/null
inside larder --version
[ "$(inside stat -c '%U %a' /var/lib/larder)" = "larder 750" ] || fail "no folder for the cache"
[ "$(inside stat -c '%U:%G %a' /run/larder)" = "larder:larder 750" ] || fail "no folder for the sockets"
inside test -e /usr/share/man/man1/larder-serve.1.gz || fail "no manual page"
inside test -e /usr/lib/systemd/system/larder.service -o -e /lib/systemd/system/larder.service || fail "no unit"
! grep -qs "start larder" "$root/systemctl.log" || fail "it is started without a configuration"
inside dpkg-query -W -f '${Conffiles}' larder | grep -q /etc/larder/larder.toml || fail "the configuration is no conffile"

step "run, as the user of the service"
cat > "$root/etc/larder/larder.toml" <<'CONF'
[cache]
path = "/var/lib/larder/cache.img"
size = "8MiB"
[[tenant]]
name = "a"
write_policy = "wb"
dirty_rest = 90
dirty_max = 95
dirty_age = "1h"
[[tenant.volume]]
name = "a0"
backing = "/srv/a0.img"
nbd = "unix:/run/larder/a0.sock"
CONF
truncate -s 16M "$root/srv/a0.img"
inside chown larder: /srv/a0.img
inside sh -c 'echo $$ > /daemon.pid; exec setpriv --reuid larder --regid larder --init-groups larder serve' 2> "$folder/log" &
started=$!
until_it_holds grep -q " ready" "$folder/log"
daemon=$(cat "$root/daemon.pid")
inside larder status >/dev/null || fail "no status"

step "upgrade"
touch "$root/larder-runs"
: > "$root/systemctl.log"
cp "$root/etc/larder/larder.toml" "$folder/larder.toml"
inside dpkg --force-confold -i /packages/later.deb >/dev/null 2>&1 || fail "the upgrade"
cmp -s "$root/etc/larder/larder.toml" "$folder/larder.toml" || fail "the operator's configuration is another one"
grep -q "restart.*larder.service" "$root/systemctl.log" || fail "the daemon is not restarted: $(cat "$root/systemctl.log")"
! grep -q "stop.*larder.service" "$root/systemctl.log" || fail "the daemon is stopped before it is restarted"

step "dirty data"
command -v nbdcopy >/dev/null || { echo "error: nbdcopy is missing; install it: apt-get install libnbd-bin" >&2; exit 1; }
head -c 1M /dev/urandom > "$folder/data"
nbdcopy --flush "$folder/data" "nbd+unix:///a0?socket=$root/run/larder/a0.sock"
kill -KILL "$daemon"
daemon=
wait "$started" || true
until_it_holds inside larder cache info /var/lib/larder/cache.img
cp "$root/usr/bin/larder" "$folder/larder"
sum=$(sha256sum < "$root/var/lib/larder/cache.img")

step "remove"
rm "$root/larder-runs"
inside dpkg -r larder >/dev/null 2>&1
inside test ! -e /usr/bin/larder -a -e /etc/larder/larder.toml || fail "what stays after a removal"

step "purge"
inside dpkg -P larder > "$folder/said" 2>&1
inside test ! -e /etc/larder -a ! -e /run/larder || fail "what goes with a purge: $(ls -la "$root/etc/larder" "$root/run/larder" 2>&1)"
grep -q "is kept" "$folder/said" || fail "nothing is said of what is kept"
[ "$(sha256sum < "$root/var/lib/larder/cache.img")" = "$sum" ] || fail "the cache has changed"

step "the dirty data is there after all"
cp "$folder/larder" "$root/larder"
inside /larder cache writeback /var/lib/larder/cache.img
cmp -n 1048576 "$folder/data" "$root/srv/a0.img" || fail "dirty data is lost"

step "install and purge once more, with nothing cached"
rm "$root/var/lib/larder/cache.img"*
inside dpkg -i /packages/now.deb >/dev/null 2>&1
inside dpkg -P larder >/dev/null 2>&1
inside test ! -e /var/lib/larder || fail "an empty folder is left"
left=$(inside find / -xdev -name '*larder*' -not -path '/proc/*' -not -path '/larder*' -not -path '/packages/*' 2>/dev/null | grep -v '^/var/lib/dpkg/info/\|^/var/log/\|^/srv' || true)
[ -z "$left" ] || fail "left after a purge: $left"
echo "the package installs, runs, upgrades and purges cleanly"
