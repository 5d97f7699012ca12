#!/usr/bin/env bash
# psycopg's own tests. No package contains them, so they come from its repository, at the commit of the release.
set -euo pipefail
. "$(dirname "$0")/../python/venv.sh"
tag=3.3.4
commit=83f110367cdd249cc0a352e2246ecea9e878e5a0
if [ "$(git -C "$work/source" rev-parse HEAD 2> /dev/null)" != "$commit" ]; then
    rm -rf "$work/source"
    git clone --quiet --depth 1 --branch "$tag" https://github.com/psycopg/psycopg "$work/source"
    [ "$(git -C "$work/source" rev-parse HEAD)" = "$commit" ] || { echo "psycopg's tag $tag is not $commit" >&2; exit 1; }
fi
