//! Every complaint about a configuration, word for word.

/// How the replaced line of the example starts, its replacement, what is said.
pub(super) const IN_THE_EXAMPLE: &[(&str, &str, &str)] = &[
    (
        r#"backing = "nbd"#,
        r#"backing = 7"#,
        r#"larder.toml:29: "backing" must be a string, not an integer
   |
29 | backing = 7
   |           ^
help: put it in quotes"#,
    ),
    (
        r#"backing = "nbd"#,
        r#"backing = "nbds://host/x""#,
        r#"larder.toml:29: nbds: NBD over TLS is not supported; use nbd:// or nbd+unix://
   |
29 | backing = "nbds://host/x"
   |           ^^^^^^^^^^^^^^^
help: write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH, or the path of a file or block device"#,
    ),
    (
        r#"backing = "nbd"#,
        r#"backing = "nbd://""#,
        r#"larder.toml:29: nbd needs a host: nbd://HOST/EXPORT
   |
29 | backing = "nbd://"
   |           ^^^^^^^^
help: write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH, or the path of a file or block device"#,
    ),
    (
        r#"nbd = "unix"#,
        r#"nbd = "unix:/ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss.sock""#,
        r#"larder.toml:22: the socket path has 108 bytes, more than the 107 that a unix socket can have
   |
22 | nbd = "unix:/ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss.sock"
   |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: use a shorter path, for example below /run/larder"#,
    ),
    (
        r#"size"#,
        r#"sise = "2GiB""#,
        r#"larder.toml:4: unknown key "sise" in [cache]; known keys are path, size, block_size, keep, endurance, bypass_slow
  |
4 | sise = "2GiB"
  | ^^^^
help: correct the key or remove the line"#,
    ),
    (
        r#"size"#,
        r#"size = "2GB""#,
        r#"larder.toml:4: the cache size 2000000000 is no multiple of the block size 4KiB
  |
4 | size = "2GB"
  |        ^^^^^
help: the nearest size that is one: "1953124KiB""#,
    ),
    (
        r#"size"#,
        r#"size = 0"#,
        r#"larder.toml:4: a cache of no size holds nothing
  |
4 | size = 0
  |        ^
help: write a size such as "2GiB""#,
    ),
    (
        r#"size"#,
        r#"size = "2Gib""#,
        r#"larder.toml:4: "size": 2Gib has the unknown unit "Gib"
  |
4 | size = "2Gib"
  |        ^^^^^^
help: write a size such as "10GiB", "512MiB", "4KiB", "500GB", "1.92TB" or "4096" (bytes)"#,
    ),
    (
        r#"size"#,
        r#"size = true"#,
        r#"larder.toml:4: "size" must be a size, not a boolean
  |
4 | size = true
  |        ^^^^
help: write a string with a unit"#,
    ),
    (
        r#"size"#,
        r#"size = "900TiB""#,
        r#"larder.toml:4: 900TiB of 4KiB blocks are more than 4294967280 blocks
  |
4 | size = "900TiB"
  |        ^^^^^^^^
help: use larger blocks or a smaller cache"#,
    ),
    (
        r#"size"#,
        r#"#"#,
        r#"larder.toml:2: "size" is missing in [cache]
  |
2 | [cache]
  | ^^^^^^^
help: add a line such as: size = "2GiB""#,
    ),
    (
        r#"block_size"#,
        r#"block_size = "6KiB""#,
        r#"larder.toml:5: a block of 6KiB cannot be cached
  |
5 | block_size = "6KiB"
  |              ^^^^^^
help: use a power of two from "4KiB" to "128KiB"; "4KiB" suits most disks"#,
    ),
    (
        r#"block_size"#,
        r#"block_size = "256KiB""#,
        r#"larder.toml:5: a block of 256KiB cannot be cached
  |
5 | block_size = "256KiB"
  |              ^^^^^^^^
help: use a power of two from "4KiB" to "128KiB"; "4KiB" suits most disks"#,
    ),
    (
        r#"block_size"#,
        r#"[cache.block_size]"#,
        r#"larder.toml:5: "block_size" must be a size, not a table
  |
5 | [cache.block_size]
  | ^^^^^^^^^^^^^^^^^^
help: write a string with a unit"#,
    ),
    (
        r#"path"#,
        r#"path = 3"#,
        r#"larder.toml:3: "path" must be a string, not an integer
  |
3 | path = 3
  |        ^
help: put it in quotes"#,
    ),
    (
        r#"path"#,
        r#"path = """#,
        r#"larder.toml:3: this is no path
  |
3 | path = ""
  |        ^^
help: write the path of a file or a device"#,
    ),
    (
        r#"socket"#,
        r#"sock = "x""#,
        r#"larder.toml:8: unknown key "sock" in [control]; known keys are socket, socket_group, allocator, epoch, min_blocks, write_threshold, write_back, write_budget, reactors, poll, loss_file
  |
8 | sock = "x"
  | ^^^^
help: correct the key or remove the line"#,
    ),
    (
        r#"allocator"#,
        r#"allocator = "best""#,
        r#"larder.toml:9: unknown allocator "best"
  |
9 | allocator = "best"
  |             ^^^^^^
help: use one of "larder", "centaur", "eci", "scave", "wss", "unified", "combined", "static""#,
    ),
    (
        r#"epoch"#,
        r#"epoch = "500ms""#,
        r#"larder.toml:10: an epoch shorter than a second tells nothing
   |
10 | epoch = "500ms"
   |         ^^^^^^^
help: use at least "1s"; "10m" is the default"#,
    ),
    (
        r#"epoch"#,
        r#"epoch = 600"#,
        r#"larder.toml:10: "epoch": 600 has no unit
   |
10 | epoch = 600
   |         ^^^
help: write a duration such as "10m", "20s", "500ms" or "1h""#,
    ),
    (
        r#"epoch"#,
        r#"epoch = "9000h""#,
        r#"larder.toml:10: an epoch longer than a year never ends
   |
10 | epoch = "9000h"
   |         ^^^^^^^
help: use a duration such as "10m""#,
    ),
    (
        r#"epoch"#,
        r#"min_blocks = -1"#,
        r#"larder.toml:10: "min_blocks" must be a whole number from 0 to 4294967295
   |
10 | min_blocks = -1
   |              ^^
help: write a number such as 1"#,
    ),
    (
        r#"epoch"#,
        r#"write_threshold = 1.5"#,
        r#"larder.toml:10: "write_threshold" must be a ratio from 0.0 to 1.0
   |
10 | write_threshold = 1.5
   |                   ^^^
help: write a number such as 0.5"#,
    ),
    (
        r#"epoch"#,
        r#"reactors = 0"#,
        r#"larder.toml:10: "reactors" must be a whole number from 1 to 256
   |
10 | reactors = 0
   |            ^
help: write a number such as 1"#,
    ),
    (
        r#"epoch"#,
        r#"write_budget = "2GiB""#,
        r#"larder.toml:10: "2GiB" is no budget of writes
   |
10 | write_budget = "2GiB"
   |                ^^^^^^
help: write "unlimited"; "endurance" for what [cache] endurance allows; as there, "0.5DWPD" (of the cache's size) or "300TBW/5y"; or so much in a time, "200GiB/day" or "8GiB/1h""#,
    ),
    (
        r#"epoch"#,
        r#"write_budget = "endurance""#,
        r#"larder.toml:10: no endurance is configured that could be the budget
   |
10 | write_budget = "endurance"
   |                ^^^^^^^^^^^
help: write endurance = "600TBW", say, in [cache]; or the budget itself: "200GiB/day""#,
    ),
    (
        r#"epoch"#,
        r#"poll = "2ms""#,
        r#"larder.toml:10: polling for more than a millisecond takes the processor from others, and makes nothing faster
   |
10 | poll = "2ms"
   |        ^^^^^
help: use a duration such as "50us", or "0us" to sleep at once"#,
    ),
    (
        r#"epoch"#,
        r#"reactors = 2"#,
        r#"larder.toml:10: 2 reactors cannot serve a cache that is kept over restarts
   |
10 | reactors = 2
   |            ^
help: remove the line for one reactor; or write keep = false in [cache] for as many as you like, and a cold cache at each start"#,
    ),
    (
        r#"block_size"#,
        r#"keep = "yes""#,
        r#"larder.toml:5: "keep" must be true or false, not a string
  |
5 | keep = "yes"
  |        ^^^^^
help: write true or false, without quotes"#,
    ),
    (
        r#"block_size"#,
        r#"endurance = "600GB""#,
        r#"larder.toml:5: "600GB" is no endurance
  |
5 | endurance = "600GB"
  |             ^^^^^^^
help: write it as the disk's data sheet does: "600TBW" (terabytes) or "1DWPD" (drive writes per day), over 5 years, or "600TBW/3y""#,
    ),
    (
        r#"name = "web""#,
        r#"name = "db""#,
        r#"larder.toml:25: tenant name "db" is used twice, first on line 13
   |
25 | name = "db"
   |        ^^^^
help: give each tenant a name of its own; a tenant may have several volumes"#,
    ),
    (
        r#"name = "web""#,
        r#"name = "w eb""#,
        r#"larder.toml:25: the name "w eb" contains ' '
   |
25 | name = "w eb"
   |        ^^^^^^
help: use letters, digits, ".", "_" and "-" only"#,
    ),
    (
        r#"name = "web""#,
        r#"name = """#,
        r#"larder.toml:25: a name must have from 1 to 128 characters
   |
25 | name = ""
   |        ^^
help: choose another name"#,
    ),
    (
        r#"name = "web-root""#,
        r#"name = "db-root""#,
        r#"larder.toml:28: volume name "db-root" is used twice, first on line 20
   |
28 | name = "db-root"
   |        ^^^^^^^^^
help: give each volume a name of its own: it names the NBD export"#,
    ),
    (
        r#"name = "web-root""#,
        r#"naem = "db-root""#,
        r#"larder.toml:28: unknown key "naem" in [[tenant.volume]]; known keys are name, backing, nbd, vhost_user, ublk, ordered
   |
28 | naem = "db-root"
   | ^^^^
help: correct the key or remove the line"#,
    ),
    (
        r#"name = "web""#,
        r#"quota = "1KiB""#,
        r#"larder.toml:24: "name" is missing in [[tenant]]
   |
24 | [[tenant]]
   | ^^^^^^^^^^
help: add a line such as: name = "db""#,
    ),
    (
        r#"name = "web""#,
        r#"name = "web"
quota = "1KiB""#,
        r#"larder.toml:26: a quota of 1KiB is less than a block
   |
26 | quota = "1KiB"
   |         ^^^^^^
help: use at least "4KiB", or remove the line for an equal share"#,
    ),
    (
        r#"name = "web""#,
        r#"name = "web"
quota = "2GiB""#,
        r#"larder.toml:26: the quotas up to here add up to 3GiB, more than the cache of 2GiB
   |
26 | quota = "2GiB"
   |         ^^^^^^
help: lower quotas or raise cache.size; a tenant without quota gets an equal share of the rest"#,
    ),
    (
        r#"write_policy"#,
        "write_policy = \"wb\"\ndirty_max = 0",
        r#"larder.toml:16: "dirty_max" must be a whole number from 1 to 100
   |
16 | dirty_max = 0
   |             ^
help: write a number such as 1"#,
    ),
    (
        r#"write_policy"#,
        r#"write_policy = "wb-ordered""#,
        r#"larder.toml:15: unknown write_policy "wb-ordered"
   |
15 | write_policy = "wb-ordered"
   |                ^^^^^^^^^^^^
help: write write_policy = "wb" here, and ordered = true in each [[tenant.volume]] that is to keep the order of its flushes"#,
    ),
    (
        r#"write_policy"#,
        r#"write_policy = "xx""#,
        r#"larder.toml:15: unknown write_policy "xx"
   |
15 | write_policy = "xx"
   |                ^^^^
help: use one of "auto", "wb", "wt", "ro""#,
    ),
    (
        r#"replacement"#,
        r#"replacement = "lur""#,
        r#"larder.toml:16: unknown replacement policy `lur`; known are fifo, lru, clock, lfu, aging-lfu, arc, mq, 2q, lirs, larc, s3-fifo, sieve, w-tinylfu, random, belady
   |
16 | replacement = "lur"
   |               ^^^^^
help: correct it, or leave the key out for its default"#,
    ),
    (
        r#"replacement"#,
        r#"replacement = "belady""#,
        r#"larder.toml:16: replacement "belady" must know the future: it is for simulations only
   |
16 | replacement = "belady"
   |               ^^^^^^^^
help: use "lru", "arc", "s3-fifo" or another that does not"#,
    ),
    (
        r#"replacement"#,
        r#"replacement = "larc""#,
        r#"larder.toml:17: `larc` brings its own admission policy and cannot stand behind `nth:3`; use `lru+nth:3`, or `larc` alone
   |
17 | admission = "nth:3"
   |             ^^^^^^^
help: leave `admission` out, or take another replacement"#,
    ),
    (
        r#"admission"#,
        r#"admission = "prob:2""#,
        r#"larder.toml:17: `2` is not what `prob` takes: the probability with which a block enters, 0 to 1, as in `prob:0.1`
   |
17 | admission = "prob:2"
   |             ^^^^^^^^
help: correct it, or leave the key out for its default"#,
    ),
    (
        r#"backing = "nbd"#,
        r#"backing = "/srv/db.img""#,
        r#"larder.toml:29: backing "/srv/db.img" is used twice, first on line 21
   |
29 | backing = "/srv/db.img"
   |           ^^^^^^^^^^^^^
help: two caches over one disk would serve stale data: give each volume a backing of its own"#,
    ),
    (
        r#"backing = "nbd"#,
        r#"backing = "/srv/./db.img""#,
        r#"larder.toml:29: backing "/srv/db.img" is used twice, first on line 21
   |
29 | backing = "/srv/./db.img"
   |           ^^^^^^^^^^^^^^^
help: two caches over one disk would serve stale data: give each volume a backing of its own"#,
    ),
    (
        r#"backing = "nbd"#,
        r#"backing = "/var/lib/larder/cache.img""#,
        r#"larder.toml:29: /var/lib/larder/cache.img is the cache device
   |
29 | backing = "/var/lib/larder/cache.img"
   |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: use another path"#,
    ),
    (
        r#"nbd = "tcp"#,
        r#"nbd = "tcp:localhost:10809""#,
        r#"larder.toml:30: "tcp:localhost:10809" is no address to listen on
   |
30 | nbd = "tcp:localhost:10809"
   |       ^^^^^^^^^^^^^^^^^^^^^
help: write "unix:/run/larder/NAME.sock", "tcp:127.0.0.1:10809" or "tcp:[::1]:10809""#,
    ),
    (
        r#"nbd = "tcp"#,
        r#"nbd = "unix:/run/larder/larder.sock""#,
        r#"larder.toml:30: /run/larder/larder.sock is the control socket
   |
30 | nbd = "unix:/run/larder/larder.sock"
   |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: use another path"#,
    ),
    (
        r#"nbd = "tcp"#,
        r#"vhost_user = "unix:/run/larder/db-root.sock""#,
        r#"larder.toml:30: /run/larder/db-root.sock is a socket for nbd already
   |
30 | vhost_user = "unix:/run/larder/db-root.sock"
   |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: use another path"#,
    ),
    (
        r#"nbd = "tcp"#,
        r#"ordered = false"#,
        r#"larder.toml:27: volume "web-root" is not served in any way
   |
27 | [[tenant.volume]]
   | ^^^^^^^^^^^^^^^^^
help: add nbd = "unix:/run/larder/NAME.sock", vhost_user = "/run/larder/NAME.vhost" or ublk = true, or several of these"#,
    ),
    (
        r#"[cache]"#,
        r#"cache = 1"#,
        r#"larder.toml:3: unknown key "path" at the top level; known keys are cache, control, api, tenant
  |
3 | path = "/var/lib/larder/cache.img"   # a file or a block device
  | ^^^^
help: correct the key or remove the line"#,
    ),
    (
        r#"[cache]"#,
        r#"[cash]"#,
        r#"larder.toml:2: unknown key "cash" at the top level; known keys are cache, control, api, tenant
  |
2 | [cash]
  |  ^^^^
help: correct the key or remove the line"#,
    ),
    (
        r#"epoch"#,
        r#"epoch = = 1"#,
        r#"larder.toml:10: not valid TOML: extra `=`, expected nothing
   |
10 | epoch = = 1
   |         ^
help: see https://toml.io for the syntax"#,
    ),
    (
        r#"epoch"#,
        r#"epoch = "1h"
epoch = "2h""#,
        r#"larder.toml:11: not valid TOML: duplicate key
   |
11 | epoch = "2h"
   | ^^^^^
help: see https://toml.io for the syntax"#,
    ),
];

/// A text, and what is said about it.
pub(super) const OF_WHOLE_TEXTS: &[(&str, &str)] = &[
    (
        r#"cache = { path = "a", size = "1MiB", keep = false }
[[tenant]]
name = "t"
[[tenant.volume]]
name = "v"
backing = "b"
nbd = "unix:/v.sock"
ordered = true
"#,
        r#"larder.toml:4: volume "v" is ordered, and the cache is not kept over restarts
  |
4 | [[tenant.volume]]
  | ^^^^^^^^^^^^^^^^^
help: remove keep = false from [cache], or ordered = true from the volume"#,
    ),
    (
        r#""#,
        r#"larder.toml:1: [cache] is missing
  |
1 | 
  | ^
help: add [cache] with the keys path and size"#,
    ),
    (
        r#"[cache]
path = "a"
size = 4096
"#,
        r#"larder.toml:1: there is no tenant to serve
  |
1 | [cache]
  | ^
help: add [[tenant]] and [[tenant.volume]]"#,
    ),
    (
        r#"[cache]
path = "a"
size = 4096
[tenant]
name = "b"
"#,
        r#"larder.toml:4: "tenant" must be written as [[tenant]]
  |
4 | [tenant]
  | ^^^^^^^^
help: write [[tenant]] on a line of its own, with its keys below"#,
    ),
    (
        r#"[cache]
path = "a"
size = 4096
[[tenant]]
name = "b"
"#,
        r#"larder.toml:4: tenant "b" has no volume
  |
4 | [[tenant]]
  | ^^^^^^^^^^
help: add [[tenant.volume]] with the keys name, backing and nbd (or vhost_user, or ublk)"#,
    ),
    (
        r#"[cache]
path = "a"
size = 4096
[[tenant]]
name = "a"
volume.name = 3"#,
        r#"larder.toml:6: "volume" must be written as [[tenant.volume]]
  |
6 | volume.name = 3
  | ^^^^^^
help: write [[tenant.volume]] on a line of its own, with its keys below"#,
    ),
    (
        r#"[cache]
path = "a"
size = 4096
[[tenant]]
name = "a"
[[tenant.volume]]
name = "a"
backing = "b"
nbd = "unix:x"
[[tenant]]
name = "b"
[[tenant.volume]]
name = "b"
backing = "c"
nbd = "unix:x"
"#,
        r#"larder.toml:1: 2 tenants do not fit a cache of 1 blocks: each needs at least one
  |
1 | [cache]
  | ^
help: raise cache.size"#,
    ),
    (
        r#"[cache]
path = "a"
size = 4096
[[tenant]]
name = "a"
[[tenant.volume]]
name = ".a"
backing = "b"
ublk = true
"#,
        r#"larder.toml:7: a block device cannot be called ".a"
  |
7 | name = ".a"
  |        ^^^^
help: choose a name that does not begin with a dot: the device is /dev/larder/NAME"#,
    ),
];
