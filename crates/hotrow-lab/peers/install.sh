#!/usr/bin/env bash
# Installs queues of other projects, in the versions of this folder, for `hotrow-lab bench queue --peers`.
set -euo pipefail
cd "$(dirname "$0")"

need() {
    command -v "$1" > /dev/null || { echo "the peers need $1: install $2" >&2; exit 1; }
}
need npm "npm (Debian: npm); it fetches the Node.js that the packages want"
need go "Go, 1.26 or newer (Debian: golang-go)"

(cd node && npm ci --no-audit --no-fund)
(cd go && go build -o river .)
