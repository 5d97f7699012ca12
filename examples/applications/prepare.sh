#!/usr/bin/env bash
# Downloads the applications in the specified versions, with each language's package manager.
set -euo pipefail
cd "$(dirname "$0")"

need() {
    command -v "$1" > /dev/null || { echo "the applications need $1: install $2" >&2; exit 1; }
}
need python3 "Python 3.10 or newer with venv (Debian: python3-venv)"
need node "Node.js, 20 or newer (Debian: nodejs)"
need npm "npm (Debian: npm)"
need go "Go, 1.26 or newer (Debian: golang-go)"

mkdir -p ../../target
target=$(cd ../../target && pwd)/applications
[ -x "$target/bin/pip" ] || python3 -m venv "$target"
"$target/bin/pip" install --quiet --requirement requirements.txt
(cd node && npm ci --silent --no-audit --no-fund --ignore-scripts)
[ -x "$target/bin/miniflux.app" ] || GOBIN=$target/bin go install miniflux.app/v2@v2.3.5
