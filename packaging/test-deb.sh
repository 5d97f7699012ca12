#!/usr/bin/env bash
# Tests the Debian package in a new Debian with a systemd of its own: packaging/test-deb.sh target/deb/hotrow_0.1.0-1_amd64.deb
# Installs it, runs the service in front of a private PostgreSQL server of this machine, upgrades it under a client, purges it.
# Needs root, debootstrap, lintian, openssl, an installed PostgreSQL (or HOTROW_PG_BIN), and a mirror of Debian (or DEBIAN_MIRROR).
# Leaves nothing behind. Takes about three minutes. Prints one line for each check, and stops at the first that fails.
set -euo pipefail
[ $# = 1 ] || { sed -n 2p "$0" >&2; exit 2; }
. "$(dirname "$0")/test-root.sh"

deb=$(realpath "$1")

check "lintian finds nothing" as_nobody lintian --fail-on error,warning,info --allow-root "$deb"
new_debian systemd,dbus
new_server

# Installation.
files > "$work/files.before"
cp "$deb" "$root/hotrow.deb"
check "the package can be installed" inside apt-get install --yes --no-install-recommends /hotrow.deb
says "set upstream in /etc/hotrow/hotrow.toml"
check "its files are those that it lists" inside dpkg --verify hotrow
is /etc/hotrow "root:hotrow 750"
is /etc/hotrow/hotrow.toml "root:hotrow 640"
is /usr/bin/hotrow "root:root 755"
for unit in hotrow.service hotrow.socket; do is /usr/lib/systemd/system/$unit "root:root 644"; done
for file in /usr/share/man/man1/hotrow.1.gz /usr/share/doc/hotrow/copyright /usr/share/doc/hotrow/changelog.gz; do
    is $file "root:root 644"
done
is / "root:root 755"
echo "ok: owners and modes"
check "bash completes commands" inside bash -c '. /usr/share/bash-completion/completions/hotrow &&
    COMP_WORDS=(hotrow heal) COMP_CWORD=1 && _hotrow hotrow heal hotrow && [ "${COMPREPLY[*]}" = health ]'
check "the user hotrow cannot log in" inside sh -c 'getent passwd hotrow | grep ":/nonexistent:/usr/sbin/nologin$"'
refused "another user cannot read the settings" inside setpriv --reuid=nobody --regid=nogroup --clear-groups \
    cat /etc/hotrow/hotrow.toml
version=$(dpkg-deb --field "$deb" Version)
check "hotrow --version" inside hotrow --version
says "^hotrow ${version%%[-~+]*}"
check "hotrow help config" inside hotrow help config
says "^\* upstream "
commands=$(inside hotrow --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p')
[ -n "$commands" ] || fail "hotrow --help lists no commands"
for command in $commands; do
    zgrep -q "^\.It Cm $command$" "$root/usr/share/man/man1/hotrow.1.gz" || fail "the manual page has no command $command"
done
echo "ok: the manual page has the commands of hotrow --help"

# Before a server is named.
refused "the service is not enabled" inside systemctl is-enabled hotrow.service hotrow.socket
refused "the service does not start without a server" inside systemctl start hotrow
says_in_log() { inside journalctl --unit hotrow --output cat --no-pager | grep "$1" > /dev/null; }
until_true says_in_log "no server is named: name one with"
echo "ok: the log says that no server is named"
inside systemctl stop hotrow
inside systemctl reset-failed # the count of starts, too

# The service, with a password and a key that only its group can read.
gate=$(free_port)
metrics=$(free_port)
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$work/gateway.key" -out "$work/gateway.crt" \
    2> /dev/null
cat >> "$root/etc/hotrow/hotrow.toml" << END
upstream = "postgres://gate:secret@127.0.0.1:$server/shop"
listen = "127.0.0.1:$gate"
metrics = "127.0.0.1:$metrics"
tls_cert_file = "/etc/hotrow/gateway.crt"
tls_key_file = "/etc/hotrow/gateway.key"
drain_timeout_ms = 60000
END
cp "$work/gateway.crt" "$work/gateway.key" "$root/etc/hotrow/"
inside sh -c 'chown root:hotrow /etc/hotrow/gateway.* && chmod 0640 /etc/hotrow/gateway.*'
check "the settings are right" inside setpriv --reuid=hotrow --regid=hotrow --clear-groups \
    hotrow serve --check --config /etc/hotrow/hotrow.toml
check "systemctl enable --now" inside systemctl enable --now hotrow
check "the service runs as the user hotrow" inside sh -c "[ \"\$(stat -c %U:%G /proc/$(main_pid))\" = hotrow:hotrow ]"
check "psql through the gateway" through "" "create table item (id int primary key, stock int not null); insert into item values (7, 9)"
check "with TLS" through sslmode=require "update item set stock = stock - 1 where id = 7 and stock >= 1 returning stock"
says "^8$"
[ "$(directly "select stock from item")" = 8 ] || fail "the server has another stock"
check "hotrow health" inside hotrow health --config /etc/hotrow/hotrow.toml
says "127.0.0.1:$metrics is live$"
check "systemctl reload" inside systemctl reload hotrow
echo "lanes = 0" >> "$root/etc/hotrow/hotrow.toml"
refused "a reload with wrong settings fails" inside systemctl reload hotrow
sed -i '$d' "$root/etc/hotrow/hotrow.toml"
check "systemd accepts the units" inside systemd-analyze verify --man=no hotrow.service hotrow.socket
check "a good score of its restrictions" inside systemd-analyze security --threshold=20 --no-pager hotrow.service
grep 'Overall exposure' "$work/output"

# Upgrades: to later versions whose settings file is not the same.
newer() { # SUFFIX
    rm -rf "$work/newer"
    dpkg-deb --raw-extract "$deb" "$work/newer"
    sed -i "s/^Version: .*/&$1/" "$work/newer/DEBIAN/control"
    echo "# A line of version $1." >> "$work/newer/etc/hotrow/hotrow.toml"
    dpkg-deb --build --root-owner-group -Znone "$work/newer" "$root/newer.deb" > /dev/null
}
upgrade() { inside apt-get install --yes --option Dpkg::Options::=--force-confdef --option Dpkg::Options::=--force-confold /newer.deb; }
settings=$(md5sum < "$root/etc/hotrow/hotrow.toml")
chmod 0600 "$root/etc/hotrow/gateway.crt" # what an administrator chose stays: the service can no longer read this file

newer +test1
old=$(main_pid)
check "an upgrade whose new program cannot start" upgrade
says "has not handed over to the new program, and continues"
[ "$(main_pid)" = "$old" ] || fail "the old process does not continue"
check "leaves the old process serving" through "" "select 1"
is /etc/hotrow/gateway.crt "root:hotrow 600"
chmod 0640 "$root/etc/hotrow/gateway.crt"

# A client is in the middle of a transaction while the package is upgraded, and others connect.
begin() { # The stock that the client then sees. The transaction is open until `commit`.
    coproc PSQL { PGPASSWORD=secret exec "$bin/psql" -X -q -A -t "host=127.0.0.1 port=$gate user=gate dbname=shop" 2> "$work/client"; }
    psql_pid=$PSQL_PID answers=${PSQL[0]} statements=${PSQL[1]}
    echo "begin; update item set stock = stock - 1 where id = 7 returning stock;" >&"$statements"
    read -r -t 20 answer <&"$answers" && [ "$answer" = "$1" ] || fail "the client in a transaction got: ${answer:-nothing}"
}
commit() {
    printf '%s\n' "commit;" "\\echo answered" >&"$statements"
    read -r -t 20 answer <&"$answers" && [ "$answer" = answered ] || fail "the client that commits got: ${answer:-nothing}"
    echo '\q' >&"$statements"
    wait "$psql_pid" || true
    [ "$(directly "select stock from item")" = "$1" ] || { cat "$work/client" >&2; fail "the transaction was not committed"; }
}
begin 7
newcomers() { while [ ! -e "$work/enough" ]; do through "" "select 1" || echo refused; done > "$work/newcomers" 2>&1; }
newcomers &
newcomers_pid=$!
newer +test2
old=$(main_pid)
check "an upgrade while a client is in a transaction" upgrade
new=$(main_pid)
[ "$new" != "$old" ] && [ "$new" -gt 1 ] || fail "the main process is $new, after $old"
echo "ok: the new program serves: process $new after $old"
check "new clients reach it" through "" "select 1"
touch "$work/enough"
wait "$newcomers_pid"
[ "$(sort -u "$work/newcomers")" = 1 ] || { sort "$work/newcomers" | uniq -c >&2; fail "a client was refused during the upgrade"; }
echo "ok: none of $(wc -l < "$work/newcomers") clients that connected meanwhile was refused"
commit 7
echo "ok: the client has committed"
[ "$settings" = "$(md5sum < "$root/etc/hotrow/hotrow.toml")" ] || fail "the upgrade has changed the edited settings"
is /etc/hotrow/hotrow.toml "root:hotrow 640"
echo "ok: the edited settings are kept"

# A stop after an upgrade: systemd did not start this process itself.
begin 6
inside systemctl stop --no-block hotrow
until_true says_in_log "stopping: transactions under way can finish"
commit 6
stopped() { [ "$(inside systemctl show --property ActiveState --value hotrow)" != deactivating ]; }
until_true stopped
[ "$(inside systemctl show --property Result --value hotrow)" = success ] || fail "the service did not stop regularly"
echo "ok: a stop after an upgrade lets a transaction finish"
check "the service starts again" inside systemctl start hotrow
check "and serves" through "" "select 1"
other() { now=$(main_pid) && [ "$now" != "$old" ] && [ "$now" -gt 1 ] && through "" "select 1" > /dev/null 2>&1; }
for gateway in "a gateway" "a successor"; do
    old=$(main_pid)
    inside sh -c "kill -KILL $old"
    until_true other
    echo "ok: $gateway that is killed is started again"
    old=$now
    inside sh -c "kill -USR2 $old"
    until_true other
done

# Removal.
check "removal stops the gateway" inside apt-get remove --yes hotrow
refused "the port is closed" through "" "select 1"
[ "$settings" = "$(md5sum < "$root/etc/hotrow/hotrow.toml")" ] || fail "the removal has changed the settings"
check "the package can be installed again" inside apt-get install --yes --no-install-recommends /newer.deb
check "and is enabled as before" inside systemctl is-enabled hotrow.service
check "purge" inside apt-get purge --yes hotrow
refused "the user is gone" inside getent passwd hotrow
refused "the group is gone" inside getent group hotrow
rm "$root/hotrow.deb" "$root/newer.deb"
files > "$work/files.after"
check "purge leaves no file" diff "$work/files.before" "$work/files.after"
refused "and no folder in /run" inside test -e /run/hotrow
echo "all checks passed"
