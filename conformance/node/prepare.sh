#!/usr/bin/env bash
# node-postgres' own tests. No package contains them, so they come from its repository, at the commit of the release.
set -euo pipefail
for need in "node:Node.js, 18 or newer (Debian: nodejs)" "npm:npm (Debian: npm)" "git:git"; do
    command -v "${need%%:*}" > /dev/null || { echo "the node-postgres suite needs ${need#*:}" >&2; exit 1; }
done
cd "$(dirname "$0")"
mkdir -p ../../target/conformance/node
work=$(cd ../../target/conformance/node && pwd)
tag=pg@8.23.0
commit=df274d1ba9ad9d11a8f1079314faeafde7208207
if ! cmp -s package-lock.json "$work/package-lock.json"; then
    cp package.json "$work"
    cp package-lock.json "$work/package-lock.json.new"
    (cd "$work" && cp package-lock.json.new package-lock.json && npm ci --silent --no-audit --no-fund) || { rm -f "$work/package-lock.json"; exit 1; }
fi
if [ "$(git -C "$work/source" rev-parse HEAD 2> /dev/null)" != "$commit" ]; then
    rm -rf "$work/source"
    git -c advice.detachedHead=false clone --quiet --depth 1 --branch "$tag" https://github.com/brianc/node-postgres "$work/source"
    [ "$(git -C "$work/source" rev-parse HEAD)" = "$commit" ] || { echo "node-postgres' tag $tag is not $commit" >&2; exit 1; }
fi
