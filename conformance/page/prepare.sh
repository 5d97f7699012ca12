#!/usr/bin/env bash
# Installs what the browser test of the operations page needs: playwright-core. The browser is the system's Chromium.
set -euo pipefail
for need in "node:Node.js, 20 or newer (Debian: nodejs)" "npm:npm (Debian: npm)"; do
    command -v "${need%%:*}" > /dev/null || { echo "the page's test needs ${need#*:}" >&2; exit 1; }
done
cd "$(dirname "$0")"
mkdir -p ../../target/conformance/page
work=$(cd ../../target/conformance/page && pwd)
if ! cmp -s package-lock.json "$work/package-lock.json"; then
    cp package.json "$work"
    cp package-lock.json "$work"
    (cd "$work" && npm ci --silent --no-audit --no-fund) || { rm -f "$work/package-lock.json"; exit 1; }
fi
