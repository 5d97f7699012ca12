#!/usr/bin/env bash
# Runs SQLAlchemy's dialect suite and its tests of PostgreSQL, with psycopg and with asyncpg.
set -euo pipefail
work=$(cd "$(dirname "$0")/../../target/conformance/sqlalchemy" && pwd)
plugins=$(cd "$(dirname "$0")/../python" && pwd)
cd "$work/source"
at="$PGUSER@$PGHOST:$PGPORT/$PGDATABASE"
PYTHONPATH=$plugins exec "$work/venv/bin/python" -m pytest -p report -p no:cacheprovider --quiet --timeout 60 \
    --override-ini addopts= -m "not memory_intensive and not mypy and not timing_intensive" \
    --dburi "postgresql+psycopg://$at" --dburi "postgresql+asyncpg://$at" test/dialect/postgresql test/dialect/test_suite.py
