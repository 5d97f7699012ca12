#!/usr/bin/env bash
# Runs node-postgres' integration tests, each file a process, at the server that the environment names.
set -euo pipefail
cd "$(dirname "$0")"
exec node run.mjs "$(cd ../../target/conformance/node/source/packages/pg && pwd)"
