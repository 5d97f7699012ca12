#!/usr/bin/env bash
# asyncpg's own tests, from its source distribution.
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
fetch_source asyncpg 0.32.0 45e64e56714d888330b884aad1dfb363d0bf43fb343e3d1a8968525f3bade478
rm -rf "$work/tests" && mkdir "$work/tests" && cp -r "$work/source/tests" "$work/tests/tests" # not in the folder of the sources, which are not built
