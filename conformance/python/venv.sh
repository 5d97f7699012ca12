#!/usr/bin/env bash
# The Python suites source this file. It creates the suite's virtual environment in target/conformance, with the versions
# that its requirements.txt pins. $suite is the suite's folder in conformance, $work its folder in target/conformance.
set -euo pipefail
command -v python3 > /dev/null || { echo "the Python suites need Python 3.11 or newer with venv (Debian: python3-venv)" >&2; exit 1; }
suite=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
work="$suite/../../target/conformance/$(basename "$suite")"
mkdir -p "$work"
work=$(cd "$work" && pwd)
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
if ! cmp -s "$suite/requirements.txt" "$work/installed.txt"; then
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$suite/requirements.txt"
    cp "$suite/requirements.txt" "$work/installed.txt"
fi

# Downloads an sdist for the tests in it, by name, version and SHA-256, and unpacks it as $work/source.
fetch_source() {
    [ "$(cat "$work/source.txt" 2> /dev/null)" != "$1 $2 $3" ] || return 0
    rm -rf "$work/sdist" "$work/source"
    echo "$1==$2 --hash=sha256:$3" > "$work/source.in"
    "$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary "$1" --require-hashes \
        --requirement "$work/source.in" --dest "$work/sdist"
    mkdir "$work/source"
    tar -xzf "$work"/sdist/*.tar.gz -C "$work/source" --strip-components 1
    echo "$1 $2 $3" > "$work/source.txt"
}
