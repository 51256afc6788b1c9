#!/bin/sh
# Feed arbitrary bytes to the parsers, the readers of cache images and the queues of guests, each target for so many seconds. Stable Rust is enough: the parsers are safe code, so no sanitizer is needed.
# usage: scripts/fuzz.sh SECONDS [TARGET...]
set -eu
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- nbd_server nbd_client trace cache_image vhost_queue
cargo fuzz --version >/dev/null 2>&1 || { echo "installing cargo-fuzz from crates.io"; cargo install cargo-fuzz --locked --quiet; }
for target in "$@"; do
    echo "fuzzing $target for $seconds s"
    mkdir -p "fuzz/corpus/$target"
    cargo fuzz run "$target" --sanitizer none -- -max_total_time="$seconds" -print_final_stats=1
done
