#!/usr/bin/env bash
# Downloads the applications in the specified versions with each language's package manager, and FreeRADIUS and Zabbix from
# the packages of this Debian release. Nothing is installed on the system: the packages are unpacked in a folder.
set -euo pipefail
cd "$(dirname "$0")"

need() {
    command -v "$1" > /dev/null || { echo "the applications need $1: install $2" >&2; exit 1; }
}
need python3 "Python 3.10 or newer with venv (Debian: python3-venv)"
need node "Node.js, 20 or newer (Debian: nodejs)"
need npm "npm (Debian: npm)"
need go "Go, 1.26 or newer (Debian: golang-go)"
need apt-get "the applications on Debian 12, which has packages of FreeRADIUS and Zabbix"

mkdir -p ../../target
target=$(cd ../../target && pwd)/applications
[ -x "$target/bin/pip" ] || python3 -m venv "$target"
"$target/bin/pip" install --quiet --requirement requirements.txt
(cd node && npm ci --silent --no-audit --no-fund --ignore-scripts)
[ -x "$target/bin/miniflux.app" ] || GOBIN=$target/bin go install miniflux.app/v2@v2.3.5

# --reinstall: packages that the system has are wanted in the folder, too.
if [ ! -d "$target/debian" ]; then
    rm -rf "$target/debian.new"
    mkdir -p "$target/debian.new/archives/partial"
    apt-get install --quiet --quiet --yes --no-install-recommends --reinstall --download-only \
        --option Debug::NoLocking=1 --option Dir::Cache::Archives="$target/debian.new/archives" \
        freeradius freeradius-common freeradius-config freeradius-postgresql freeradius-utils libfreeradius3 zabbix-server-pgsql
    for package in "$target/debian.new/archives"/*.deb; do
        dpkg-deb --extract "$package" "$target/debian.new"
    done
    rm -r "$target/debian.new/archives"
    mv "$target/debian.new" "$target/debian"
fi
