# Larder's commands. Each installs the Debian packages that it needs (as root, or with sudo), and says so.
.PHONY: build demo demo-allocators test kills bench bench-guest bench-engine bench-flushes bench-endurance bench-recovery bench-vhost bench-sim bench-locality bench-tenants bench-reservations fuzz soak lint doc man deb test-deb test-systemd

# Where cargo puts what it builds.
RELEASE = $(or $(CARGO_TARGET_DIR),target)/release

build:
	@scripts/install-deps.sh build
	cargo build --release --locked

# Manual pages and completions, in target/manual.
man:
	@scripts/install-deps.sh build
	cargo run --locked -p larder -- generate --date "$$(date -u +%F)" target/manual

# A Debian package, and its life in a fresh Debian (as root, with the network).
deb:
	@scripts/install-deps.sh deb
	scripts/deb.sh

test-deb:
	@scripts/install-deps.sh deb
	scripts/test-deb.sh "$$(scripts/deb.sh | tail -1)"

# The package under a real systemd, in a small Debian under QEMU (as root, with the network for apt; the tree and the kernel are kept below CARGO_TARGET_DIR).
# Some six minutes after the build. SUITE=trixie: a newer systemd; KERNEL=ublk: block devices too, with a kernel from backports.
SUITE ?= bookworm
KERNEL ?= plain
test-systemd:
	@scripts/install-deps.sh test-systemd
	cargo build --locked -p larder-export --example vhost_load
	LARDER_KERNEL=$(KERNEL) scripts/test-systemd.sh "$$(scripts/deb.sh | tail -1)" $(RELEASE)/../debug/examples/vhost_load $(SUITE)

# The main job on real components, in under five minutes after the build.
demo:
	@scripts/install-deps.sh demo
	cargo build --release --locked
	/usr/bin/python3 demo/demo.py --larder $(RELEASE)/larder

# The allocators of the daemon, live on the same two tenants and on eight: latencies and how right predictions were. Some 10 minutes after the build.
demo-allocators:
	@scripts/install-deps.sh demo
	cargo build --release --locked
	/usr/bin/python3 demo/allocators.py --larder $(RELEASE)/larder

# All tests: units, properties, known answers, and the real clients end to end.
test:
	@scripts/install-deps.sh test
	cargo test --workspace --locked

# The real daemon killed (SIGKILL) at random moments under clients, fio and ext4, on good devices and (a quarter as often under fio and ext4) on failing ones.
# TIMES=200 by default.
TIMES ?= 200
kills:
	@scripts/install-deps.sh test
	LARDER_KILLS=$(TIMES) cargo test -p larder --test e2e --locked -- killed --nocapture

# Speed beside the peers, interleaved in one run, as ratios.
bench:
	@scripts/install-deps.sh bench
	cargo build --release --locked
	/usr/bin/python3 bench/nbd.py --larder $(RELEASE)/larder
	/usr/bin/python3 bench/writeback.py --larder $(RELEASE)/larder

# vhost-user-blk beside qemu-storage-daemon, without a guest.
bench-vhost:
	@scripts/install-deps.sh bench
	cargo build --release --locked -p larder -p larder-export --bins --examples
	/usr/bin/python3 bench/vhost.py --larder $(RELEASE)/larder --load $(RELEASE)/examples/vhost_load

# Larder, dm-cache and bcache inside one guest, on the same disks and requests: what each reads and writes where. TRACES=folder with msr_web_1.csv.gz and
# arc_P3.lis.zst; without it the workloads are generated. In about half an hour.
TRACES ?=
bench-guest:
	@scripts/install-deps.sh bench-guest
	cargo build --release --locked -p larder
	/usr/bin/python3 bench/guest_caches.py --larder $(RELEASE)/larder $(if $(TRACES),--traces $(TRACES))

# What the engine itself costs, without devices: processor time for a hit, metadata written, memory for a block; then two engines at once.
bench-engine:
	@scripts/install-deps.sh build
	cargo build --release --locked -p larder-engine --example engine_cost
	$(RELEASE)/examples/engine_cost
	$(RELEASE)/examples/engine_cost 262144 2

# What a guest's flush costs under write-back where one of the SSD takes 3 ms, beside fio on the SSD. Takes root, for a loop device. In a minute.
bench-flushes:
	@scripts/install-deps.sh bench-flushes
	cargo build --release --locked -p larder
	/usr/bin/python3 bench/flushes.py --larder $(RELEASE)/larder

# What the SSD gets under write-back besides the guest's data, counted by the device. Takes root, for a loop device.
bench-endurance:
	@scripts/install-deps.sh test
	cargo build --release --locked
	/usr/bin/python3 bench/endurance.py --larder $(RELEASE)/larder

# How long a start takes to read the metadata of a full cache of GIB (1024 by default, which take 10 GiB of disk and 5 GiB of memory), by the daemon's code.
GIB ?= 1024
bench-recovery:
	@scripts/install-deps.sh build
	cargo build --release --locked -p larder-io --example recovery
	$(RELEASE)/examples/recovery $(GIB) $(RELEASE)/..

# Replacement policies beside libCacheSim's: accesses per second, as ratios, and memory. In about ten minutes.
bench-sim:
	@scripts/install-deps.sh bench
	cargo build --release --locked -p larder-policy -p larder-trace --example replay --example msr_speed
	/usr/bin/python3 bench/sim.py

# Reuse distances, sampled and exact, beside libCacheSim's. In about ten minutes.
bench-locality:
	@scripts/install-deps.sh bench-locality
	cargo build --release --locked -p larder-policy -p larder-locality --example replay --example locality_speed --example exact_speed
	/usr/bin/python3 bench/locality.py

# A thousand idle tenants and fifty busy ones: processor time of the loop, memory of an idle tenant, time of the status. In about six minutes.
bench-tenants:
	@scripts/install-deps.sh bench
	cargo build --release --locked -p larder
	/usr/bin/python3 bench/tenants.py --larder $(RELEASE)/larder

# Reservations and shares set while the daemon runs, on emulated disks: what was promised, and what came by epoch. In about forty minutes.
bench-reservations:
	@scripts/install-deps.sh bench
	cargo build --release --locked -p larder
	/usr/bin/python3 bench/reservations.py --larder $(RELEASE)/larder

# The protocol parsers against arbitrary bytes. SECONDS_EACH=60 by default.
SECONDS_EACH ?= 60
fuzz:
	@scripts/install-deps.sh build
	scripts/fuzz.sh $(SECONDS_EACH)

# Histories of the whole engine on simulated devices that crash, lose and rot. SEEDS=0..100000 by default.
SEEDS ?= 0..100000
soak:
	@scripts/install-deps.sh build
	cargo run --release --locked -p larder-simtest -- --seeds $(SEEDS) --threads $$(nproc)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
