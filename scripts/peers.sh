#!/bin/sh
# Install what ours is held against, from PyPI: libCacheSim's python module, or its programs, built from the source that PyPI has. Does nothing where it is there.
# usage: scripts/peers.sh [FOLDER]          into a virtual environment of its own (target/peers by default); prints its python
#        scripts/peers.sh --tools [FOLDER]  distUtil and mrcProfiler (target/peer-tools by default); prints the folder that they are in
set -eu
libcachesim=0.3.5
source=https://files.pythonhosted.org/packages/af/c4/45905a3f8bc84593550af94a882795e78f2f2b200f90737ff8e4bdb71d5c/libcachesim-$libcachesim.tar.gz
sha256=a1512046ab45bc0e5f0a81e5673cd02209477ffeefcb17a05fa714a06371abfb

here=$(dirname "$0")
tools=
[ "${1:-}" != --tools ] || { tools=yes; shift; }
folder=${1:-$here/../target/peer${tools:+-tool}s}

mkdir -p "$(dirname "$folder")"
# Two tests may come here at the same time: the second waits for the first.
exec 9>"$folder.lock"
flock 9

install_module() {
    [ ! -x "$folder/bin/python" ] || ! "$folder/bin/python" -c "import libcachesim, sys; sys.exit(libcachesim.__version__ != '$libcachesim')" 2>/dev/null || return 0
    echo "installing libcachesim $libcachesim from PyPI into $folder" >&2
    rm -rf "$folder"
    /usr/bin/python3 -m venv "$folder" >&2 || { echo "error: no python3-venv. Install it: apt-get install python3-venv" >&2; exit 1; }
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "libcachesim==$libcachesim" >&2
}

# As its own instructions build it: CMake's release build.
build_tools() {
    [ "$(cat "$folder/version" 2>/dev/null)" != "$libcachesim" ] || return 0
    echo "building distUtil and mrcProfiler of libcachesim $libcachesim from PyPI (80 MB) in $folder" >&2
    rm -rf "$folder"
    mkdir "$folder"
    /usr/bin/python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' "$source" "$folder/source.tar.gz"
    echo "$sha256  $folder/source.tar.gz" | sha256sum --check --quiet >&2
    tar -xzf "$folder/source.tar.gz" -C "$folder" --strip-components=2 "libcachesim-$libcachesim/src/libCacheSim"
    cmake -S "$folder/libCacheSim" -B "$folder/build" -DENABLE_TESTS=OFF >"$folder/log" 2>&1 &&
        cmake --build "$folder/build" --target distUtil mrcProfiler --parallel "$(nproc)" >>"$folder/log" 2>&1 ||
        { tail -n 20 "$folder/log" >&2; echo "error: libCacheSim does not build: see $folder/log" >&2; exit 1; }
    mv "$folder/build/bin" "$folder/bin"
    rm -rf "$folder/libCacheSim" "$folder/build" "$folder/source.tar.gz"
    echo "$libcachesim" >"$folder/version"
}

if [ "$tools" ]; then
    build_tools
    echo "$folder/bin"
else
    install_module
    echo "$folder/bin/python"
fi
