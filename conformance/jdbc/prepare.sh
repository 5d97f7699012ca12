#!/usr/bin/env bash
# PgJDBC and HikariCP from Maven Central, whose checksums Maven verifies.
set -euo pipefail
for need in "java:a JDK, 17 or newer (Debian: default-jdk-headless)" "mvn:Maven (Debian: maven)"; do
    command -v "${need%%:*}" > /dev/null || { echo "the JDBC suite needs ${need#*:}" >&2; exit 1; }
done
cd "$(dirname "$0")"
work=../../target/conformance/jdbc
if ! cmp -s pom.xml "$work/pom.xml"; then
    rm -rf "$work" && mkdir -p "$work"
    mvn --quiet --batch-mode --strict-checksums dependency:copy-dependencies -DoutputDirectory="$PWD/$work/jars"
    cp pom.xml "$work/pom.xml"
fi
