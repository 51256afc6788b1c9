#!/bin/sh
# Install Schemathesis, which asks an HTTP API all that its description allows and much that it does not, from PyPI. Does nothing where it is there.
# usage: scripts/schemathesis.sh [FOLDER]    into a virtual environment of its own (target/schemathesis by default); prints its program
set -eu
version=4.32.5

here=$(dirname "$0")
folder=${1:-$here/../target/schemathesis}

mkdir -p "$(dirname "$folder")"
# Two tests may come here at the same time: the second waits for the first.
exec 9>"$folder.lock"
flock 9

if [ "$(cat "$folder/version" 2>/dev/null)" != "$version" ]; then
    echo "installing schemathesis $version from PyPI into $folder" >&2
    rm -rf "$folder"
    /usr/bin/python3 -m venv "$folder" >&2 || { echo "error: no python3-venv. Install it: apt-get install python3-venv" >&2; exit 1; }
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "schemathesis==$version" >&2
    echo "$version" >"$folder/version"
fi
echo "$folder/bin/st"
