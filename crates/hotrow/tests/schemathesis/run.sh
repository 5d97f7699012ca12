#!/usr/bin/env bash
# Calls a running API in all the ways that its OpenAPI document allows and forbids: run.sh URL TOKEN. A take waits for up to a
# minute.
set -euo pipefail
url=$1 token=$2
config=$(cd "$(dirname "$0")" && pwd)/schemathesis.toml
exec "${SCHEMATHESIS:-schemathesis}" --config-file "$config" run "$url/openapi.json" --url "$url" \
    --header "Authorization: Bearer $token" --max-examples 40 --phases coverage,fuzzing,stateful \
    --seed 7 --workers 2 --request-timeout 70 --no-color
