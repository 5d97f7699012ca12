#!/usr/bin/env bash
# Calls a running payment service in all the ways that its OpenAPI document allows and forbids: run.sh URL
set -euo pipefail
url=$1
config=$(cd "$(dirname "$0")" && pwd)/schemathesis.toml
exec "${SCHEMATHESIS:-schemathesis}" --config-file "$config" run "$url/openapi.json" --url "$url" \
    --max-examples 40 --phases coverage,fuzzing,stateful --seed 7 --workers 2 --request-timeout 10 --no-color
