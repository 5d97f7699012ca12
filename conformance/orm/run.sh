#!/usr/bin/env bash
# Runs the application's tests on the server in the environment.
set -euo pipefail
work=$(cd "$(dirname "$0")/../../target/conformance/orm" && pwd)
cd "$(dirname "$0")"
PYTHONPATH=../python PYTHONDONTWRITEBYTECODE=1 exec "$work/venv/bin/python" -m pytest -p report -p no:cacheprovider --quiet --timeout 60 .
