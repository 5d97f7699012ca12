#!/usr/bin/env bash
# SQLAlchemy and psycopg, for an ordinary application.
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
