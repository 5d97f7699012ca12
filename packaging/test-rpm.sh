#!/usr/bin/env bash
# Tests the RPM package in a new Debian with a systemd of its own: packaging/test-rpm.sh target/rpm/hotrow-0.1.0-1.x86_64.rpm
# Installs it with rpm, runs the service in front of a private PostgreSQL server of this machine, upgrades and removes it. The
# dependencies are only compared with a list, because their names are not Debian's. Needs what test-deb.sh needs, and rpmbuild and
# rpmlint instead of lintian. Takes about three minutes. Prints one line for each check, and stops at the first that fails.
set -euo pipefail
[ $# = 1 ] || { sed -n 2p "$0" >&2; exit 2; }
. "$(dirname "$0")/test-root.sh"

rpm=$(realpath "$1")
packaging=$(cd "$(dirname "$0")" && pwd)
of_package() { rpm --query --nosignature --package "$rpm" "$@"; }

check "rpmlint finds nothing" as_nobody env HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent rpmlint --strict --config "$packaging/rpm/rpmlint.toml" "$rpm"
check "its files" of_package --queryformat '[%{FILENAMES} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILEMODES:octal} %{FILEFLAGS:fflags}\n]'
for line in "/etc/hotrow root:hotrow 40750 " "/etc/hotrow/hotrow.toml root:hotrow 100640 cn" "/usr/bin/hotrow root:root 100755 " \
    "/usr/lib/systemd/system/hotrow.service root:root 100644 "; do
    grep -q -x -- "$line" "$work/output" || { cat "$work/output" >&2; fail "the files have no line: $line"; }
done
echo "ok: owners and modes in the package"
check "its dependencies" of_package --requires
says '^libc.so.6(GLIBC_'
says '^(shadow-utils or shadow)$'

new_debian systemd,dbus,rpm
new_server
# The distributions with rpm enable no service of a package that an administrator has not named.
mkdir -p "$root/usr/lib/systemd/system-preset"
echo "disable *" > "$root/usr/lib/systemd/system-preset/99-default-disable.preset"

files > "$work/files.before"
cp "$rpm" "$root/hotrow.rpm"
check "the package can be installed" inside rpm --install --nodeps /hotrow.rpm
says "set upstream in /etc/hotrow/hotrow.toml"
check "its files are those that it lists" inside rpm --verify --nodeps hotrow
is /etc/hotrow "root:hotrow 750"
is /etc/hotrow/hotrow.toml "root:hotrow 640"
check "the user hotrow cannot log in" inside sh -c 'getent passwd hotrow | grep ":/:/sbin/nologin$"'
check "hotrow --version" inside hotrow --version
refused "the service is not enabled" inside systemctl is-enabled hotrow.service hotrow.socket
check "bash completes commands" inside bash -c '. /usr/share/bash-completion/completions/hotrow &&
    COMP_WORDS=(hotrow heal) COMP_CWORD=1 && _hotrow hotrow heal hotrow && [ "${COMPREPLY[*]}" = health ]'

gate=$(free_port)
metrics=$(free_port)
cat >> "$root/etc/hotrow/hotrow.toml" << END
upstream = "postgres://gate:secret@127.0.0.1:$server/shop"
listen = "127.0.0.1:$gate"
metrics = "127.0.0.1:$metrics"
END
check "systemctl enable --now" inside systemctl enable --now hotrow
check "the service runs as the user hotrow" inside sh -c "[ \"\$(stat -c %U:%G /proc/$(main_pid))\" = hotrow:hotrow ]"
check "psql through the gateway" through "" "select 1"
check "hotrow health" inside hotrow health --config /etc/hotrow/hotrow.toml
says "127.0.0.1:$metrics is live$"
ready() { inside hotrow health --ready --config /etc/hotrow/hotrow.toml > /dev/null 2>&1; }
until_true ready
echo "ok: hotrow health --ready"

# An upgrade to a later version, while clients connect.
SOURCE_DATE_EPOCH=$(date +%s) "$packaging/rpm.sh" "$root/usr/bin/hotrow" 99.0.0-1 "$(uname -m)" "$work/newer" > "$work/output" 2>&1 ||
    { cat "$work/output" >&2; fail "no later package"; }
cp "$work"/newer/*.rpm "$root/newer.rpm"
settings=$(md5sum < "$root/etc/hotrow/hotrow.toml")
newcomers() { while [ ! -e "$work/enough" ]; do through "" "select 1" || echo refused; done > "$work/newcomers" 2>&1; }
newcomers &
newcomers_pid=$!
old=$(main_pid)
check "an upgrade" inside rpm --upgrade --nodeps /newer.rpm
new=$(main_pid)
[ "$new" != "$old" ] && [ "$new" -gt 1 ] || fail "the main process is $new, after $old"
echo "ok: the new program serves: process $new after $old"
check "new clients reach it" through "" "select 1"
touch "$work/enough"
wait "$newcomers_pid"
[ "$(sort -u "$work/newcomers")" = 1 ] || { sort "$work/newcomers" | uniq -c >&2; fail "a client was refused during the upgrade"; }
echo "ok: none of $(wc -l < "$work/newcomers") clients that connected meanwhile was refused"
[ "$settings" = "$(md5sum < "$root/etc/hotrow/hotrow.toml")" ] || fail "the upgrade has changed the edited settings"
is /etc/hotrow/hotrow.toml "root:hotrow 640"
check "the service stays enabled" inside systemctl is-enabled hotrow.service

# Removal.
check "removal" inside rpm --erase hotrow
refused "the port is closed" through "" "select 1"
[ "$settings" = "$(md5sum < "$root/etc/hotrow/hotrow.toml.rpmsave")" ] || fail "the removal has not kept the settings"
echo "ok: the settings are kept"
rm -r "$root/hotrow.rpm" "$root/newer.rpm" "$root/etc/hotrow"
# Debian lacks /usr/share/licenses, which the base of an rpm distribution has.
files | grep -v -e '^/var/lib/rpm' -e '^/root/.rpmdb' -e '^/usr/share/licenses$' > "$work/files.after"
grep -v -e '^/var/lib/rpm' -e '^/root/.rpmdb' "$work/files.before" > "$work/files.expected"
check "no other file is left" diff "$work/files.expected" "$work/files.after"
echo "all checks passed"
