#!/usr/bin/env bash
# Calls a running API in all the ways that its OpenAPI document allows and forbids: run.sh URL TOKEN. A take waits for up to a
# minute. The stream of the operations page is left out, because it does not end.
set -euo pipefail
# While one worker waits for an order, the other goes on.
url=$1 token=$2
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$here/python
exec "${SCHEMATHESIS:-schemathesis}" --config-file "$here/schemathesis.toml" run "$url/openapi.json" --url "$url" \
    --header "Authorization: Bearer $token" --max-examples 40 --phases coverage,fuzzing,stateful \
    --exclude-path /live --seed 7 --workers 2 --request-timeout 70 --no-color
