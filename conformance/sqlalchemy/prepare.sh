#!/usr/bin/env bash
# SQLAlchemy's own tests, from its source distribution.
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
fetch_source sqlalchemy 2.1.9 d700a8b2edfb26282a470333d6bc4a454c4acda4d201a3bea7b72fa76c217d28
