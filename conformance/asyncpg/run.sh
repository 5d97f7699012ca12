#!/usr/bin/env bash
# Runs asyncpg's tests on the server in the environment, except tests that start their own servers.
set -euo pipefail
work=$(cd "$(dirname "$0")/../../target/conformance/asyncpg" && pwd)
plugins=$(cd "$(dirname "$0")/../python" && pwd)
cd "$work/tests"
PYTHONPATH=$plugins exec "$work/venv/bin/python" -m pytest -p report -p no:cacheprovider --quiet --timeout 60 tests
