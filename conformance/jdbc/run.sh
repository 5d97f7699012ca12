#!/usr/bin/env bash
# Runs the client program at the server that the environment names.
set -euo pipefail
cd "$(dirname "$0")"
work=../../target/conformance/jdbc
javac -d "$work/classes" -cp "$work/jars/*" ./*.java
exec java -cp "$work/classes:$work/jars/*" Suite
