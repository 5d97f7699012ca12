#!/usr/bin/env bash
# Downloads the dependencies of the examples, in the specified versions, with each language's package manager.
set -euo pipefail
cd "$(dirname "$0")"

need() {
    command -v "$1" > /dev/null || { echo "the examples need $1: install $2" >&2; exit 1; }
}
need python3 "Python 3.10 or newer with venv (Debian: python3-venv)"
need java "a JDK, 17 or newer (Debian: default-jdk-headless)"
need mvn "Maven (Debian: maven)"
need node "Node.js, 18 or newer (Debian: nodejs)"
need npm "npm (Debian: npm)"
need go "Go, 1.25 or newer (Debian: golang-go)"
need curl "curl, 7.82 or newer (Debian: curl)"

venv=../target/examples-python
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --requirement python/requirements.txt
(cd java && mvn --quiet --batch-mode dependency:copy-dependencies)
(cd node && npm ci --silent --no-audit --no-fund)
(cd go && go mod download)
(cd rust && cargo build --quiet)
