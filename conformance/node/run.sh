#!/usr/bin/env bash
# Runs node-postgres' integration tests on the server in the environment, with one process for each file.
set -euo pipefail
cd "$(dirname "$0")"
exec node run.mjs "$(cd ../../target/conformance/node/source/packages/pg && pwd)"
