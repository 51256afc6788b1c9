#!/bin/sh
# Install the simulators that ours is held against, from PyPI, into a virtual environment of their own; print its python. Does nothing where it is there.
# usage: scripts/peers.sh [FOLDER]    (target/peers by default)
set -eu
folder=${1:-$(dirname "$0")/../target/peers}
libcachesim=0.3.5

mkdir -p "$(dirname "$folder")"
# Two tests may come here at the same time: the second waits for the first.
exec 9>"$folder.lock"
flock 9

if [ ! -x "$folder/bin/python" ] || ! "$folder/bin/python" -c "import libcachesim, sys; sys.exit(libcachesim.__version__ != '$libcachesim')" 2>/dev/null; then
    echo "installing libcachesim $libcachesim from PyPI into $folder" >&2
    rm -rf "$folder"
    /usr/bin/python3 -m venv "$folder" >&2 || { echo "error: no python3-venv. Install it: apt-get install python3-venv" >&2; exit 1; }
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "libcachesim==$libcachesim" >&2
fi
echo "$folder/bin/python"
