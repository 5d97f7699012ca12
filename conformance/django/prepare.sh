#!/usr/bin/env bash
# Django and psycopg, for an ordinary application.
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
