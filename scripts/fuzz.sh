#!/bin/sh
# Feed arbitrary bytes to the NBD parsers, each target for so many seconds. Stable Rust is enough: the parsers are safe code, so no sanitizer is needed.
# usage: scripts/fuzz.sh SECONDS
set -eu
seconds=${1:-60}
cargo fuzz --version >/dev/null 2>&1 || { echo "installing cargo-fuzz from crates.io"; cargo install cargo-fuzz --locked --quiet; }
mkdir -p fuzz/corpus/nbd_server fuzz/corpus/nbd_client
for target in nbd_server nbd_client; do
    echo "fuzzing $target for $seconds s"
    cargo fuzz run "$target" --sanitizer none -- -max_total_time="$seconds" -print_final_stats=1
done
