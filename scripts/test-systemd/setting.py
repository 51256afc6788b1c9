"""Where things are in the guest, and the configurations that the steps serve."""

import pathlib

from tools import uri

CONFIG = pathlib.Path("/etc/larder/larder.toml")
DROP_IN = pathlib.Path("/etc/systemd/system/larder.service.d/test.conf")
SSD = "/dev/nvme0n1"
# Over a reboot.
LEDGER = pathlib.Path("/var/lib/db-root.ledger")

# As README and docs/service.md have it: a file as the cache; a file and a block device as backings, one of them under write-back.
ON_A_FILE = """
[cache]
path = "/var/lib/larder/cache.img"
size = "32MiB"

[control]
socket_group = "larder"

[[tenant]]
name = "db"
write_policy = "wb"

[[tenant.volume]]
name = "db-root"
backing = "/srv/db.img"
nbd = "unix:/run/larder/db-root.sock"
vhost_user = "/run/larder/db-root.vhost"

[[tenant]]
name = "web"

[[tenant.volume]]
name = "web-root"
backing = "/dev/vdb"
nbd = "unix:/run/larder/web-root.sock"
"""
ONE_MORE = """
[[tenant]]
name = "mail"

[[tenant.volume]]
name = "mail-root"
backing = "/srv/mail.img"
nbd = "unix:/run/larder/mail-root.sock"
"""


def size_of(volume):
    return f"import nbd; h = nbd.NBD(); h.connect_uri({uri(volume)!r}); print(h.get_size())"
