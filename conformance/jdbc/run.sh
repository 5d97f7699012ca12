#!/usr/bin/env bash
# Runs the client program on the server in the environment.
set -euo pipefail
cd "$(dirname "$0")"
work=../../target/conformance/jdbc
javac -d "$work/classes" -cp "$work/jars/*" ./*.java
exec java -cp "$work/classes:$work/jars/*" Suite
