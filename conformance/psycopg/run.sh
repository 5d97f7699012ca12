#!/usr/bin/env bash
# Runs psycopg's tests, except tests that read source code or take minutes.
set -euo pipefail
work=$(cd "$(dirname "$0")/../../target/conformance/psycopg" && pwd)
plugins=$(cd "$(dirname "$0")/../python" && pwd)
cd "$work/source"
cache=$(mktemp -d) # an interrupted run leaves a file there that prevents the next run
trap 'rm -rf "$cache"' EXIT
PYTHONPATH=$plugins PSYCOPG_IMPL=binary "$work/venv/bin/python" -m pytest -p report --override-ini "cache_dir=$cache" --quiet --timeout 60 \
    -m "not slow and not mypy and not dns" --test-dsn "host=$PGHOST port=$PGPORT user=$PGUSER dbname=$PGDATABASE" tests
