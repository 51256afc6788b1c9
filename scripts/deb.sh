#!/bin/sh
# Build the Debian package: a release build, manual pages and completions from it, and all of it in a .deb, whose path is the last line.
# usage: scripts/deb.sh [PROFILE]   a profile of cargo; release by default, dev for a quick look
set -eu
cd "$(dirname "$0")/.."
profile=${1:-release}
target=${CARGO_TARGET_DIR:-target}
case $profile in dev) built=$target/debug ;; *) built=$target/$profile ;; esac

tools=$target/tools
command -v cargo-deb >/dev/null || [ -x "$tools/bin/cargo-deb" ] || {
    echo "installing cargo-deb into $tools"
    cargo install cargo-deb --locked --root "$tools"
}
PATH=$PATH:$tools/bin

cargo build --profile "$profile" --locked -p larder
rm -rf packaging/manual
date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" +%F)
"$built/larder" generate --date "$date" packaging/manual
cargo deb -p larder --profile "$profile" --no-build --locked --output "$target/debian/"
find "$target/debian" -name 'larder_*.deb' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2
