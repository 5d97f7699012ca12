#!/usr/bin/env bash
# Tests the Debian package in a new Debian with a systemd of its own: packaging/test-deb.sh target/deb/hotrow_0.1.0-1_amd64.deb
# Installs it, runs the service in front of a private PostgreSQL server of this machine, upgrades it under a client, purges it.
# Needs root, debootstrap, lintian, openssl, an installed PostgreSQL (or HOTROW_PG_BIN), and a mirror of Debian (or DEBIAN_MIRROR).
# Leaves nothing behind. Takes about three minutes. Prints one line for each check, and stops at the first that fails.
set -euo pipefail
[ $# = 1 ] || { sed -n 2p "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "test-deb.sh: needs root, for a root folder and namespaces of its own" >&2; exit 2; }
[ -n "${HOTROW_TEST_DEB_BOUNDED:-}" ] || HOTROW_TEST_DEB_BOUNDED=1 exec timeout --kill-after=60 900 "$0" "$@"

deb=$(realpath "$1")
suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
bin=${HOTROW_PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)}
work=$(mktemp -d /var/tmp/hotrow-test-deb.XXXXXX)
chmod 0755 "$work"
root=$work/root
mkdir "$root" "$work/cgroup"
unshare_pid='' systemd=''

cleanup() {
    set +e
    # The end of a namespace's first process ends all of its processes.
    [ -z "$systemd" ] || kill -KILL "$systemd"
    [ -z "$unshare_pid" ] || wait "$unshare_pid" 2> /dev/null
    [ ! -f "$work/pg/postmaster.pid" ] || as_nobody "$bin/pg_ctl" stop -s -D "$work/pg" -m immediate
    if mountpoint -q "$work/cgroup"; then
        [ ! -d "$work/cgroup/${work##*/}" ] || find "$work/cgroup/${work##*/}" -depth -type d -exec rmdir {} +
        umount "$work/cgroup"
    fi
    ! mountpoint -q "$root/proc" || umount "$root/proc"
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

fail() {
    echo "not ok: $*" >&2
    [ -z "$systemd" ] || inside journalctl --unit hotrow --lines 20 --output cat --no-pager >&2
    exit 1
}
check() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" > "$work/output" 2>&1 || { cat "$work/output" >&2; fail "$text: $*"; }
    echo "ok: $text"
}
refused() { # TEXT COMMAND...
    local text=$1
    shift
    ! "$@" > "$work/output" 2>&1 || { cat "$work/output" >&2; fail "$text: succeeded: $*"; }
    echo "ok: $text"
}
says() { grep -q -- "$1" "$work/output" || { cat "$work/output" >&2; fail "the output above does not say: $1"; }; }
until_true() { # COMMAND..., within 30 s
    local end=$((SECONDS + 30))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not within 30 s: $*"
        sleep 0.1 # a poll: there is nothing to wait on
    done
}
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
free_port() { perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'; }
inside() { timeout 120 nsenter --target "$systemd" --mount --uts --ipc --pid --cgroup env -i "${of_root[@]}" "$@"; }
of_root=(PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
through() { PGPASSWORD=secret timeout 20 "$bin/psql" -X -q -A -t "host=127.0.0.1 port=$gate user=gate dbname=shop $1" -c "$2"; }
directly() { PGPASSWORD=secret timeout 20 "$bin/psql" -X -q -A -t "host=127.0.0.1 port=$server user=gate dbname=shop" -c "$1"; }
main_pid() { inside systemctl show --property MainPID --value hotrow; }
# Owner, group and mode of a file of the root.
is() { [ "$(inside stat -c '%U:%G %a' "$1")" = "$2" ] || fail "$1 is $(inside stat -c '%U:%G %a' "$1"), not $2"; }
# All files that a package can leave, without the logs, caches and locks of the tools that install packages.
files() {
    inside find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp \
        -o -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path '/var/lib/dpkg/*-old' \) -prune -o -print |
        grep -v -x -e '/etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)-' -e '/.*\.lock' | sort
}

check "lintian finds nothing" as_nobody lintian --fail-on error,warning,info --allow-root "$deb"

# A Debian with systemd as its first process, in namespaces of its own. The network is that of this machine.
check "a new Debian ($suite)" timeout 400 debootstrap --variant=minbase --include=systemd,dbus "$suite" "$root" "$mirror"
mount -t cgroup2 cgroup2 "$work/cgroup"
mkdir "$work/cgroup/${work##*/}"
boot() {
    echo "$BASHPID" > "$work/cgroup/${work##*/}/cgroup.procs"
    exec unshare --pid --fork --mount --uts --ipc --cgroup --kill-child bash -euc '
        mount --make-rprivate /
        mount --bind "$0" "$0"
        cd "$0"
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mount -t tmpfs tmpfs run
        mount -t tmpfs tmpfs dev
        mount -t cgroup2 cgroup2 sys/fs/cgroup
        mkdir -p dev/pts dev/shm mnt
        mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
        ln -s pts/ptmx dev/ptmx
        for device in null zero full random urandom tty; do
            touch dev/$device
            mount --bind /dev/$device dev/$device
        done
        pivot_root . mnt
        exec chroot . /usr/bin/env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/bash -c \
            "umount -l /mnt && mount --make-rshared / && exec /lib/systemd/systemd --log-target=journal"' "$root"
}
boot 2> "$work/boot" &
unshare_pid=$!
child() { systemd=$(cat "/proc/$unshare_pid/task/$unshare_pid/children" | tr -d ' '); [ -n "$systemd" ]; }
until_true child
running() { inside systemctl is-system-running > /dev/null 2>&1; }
until_true running
echo "ok: its systemd $(inside systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p') runs"

server=$(free_port)
mkdir "$work/pg" && chown nobody: "$work/pg"
echo secret > "$work/password" && chmod 0644 "$work/password"
as_nobody "$bin/initdb" -D "$work/pg" -U gate --pwfile="$work/password" -A scram-sha-256 -E UTF8 --no-sync > /dev/null
check "a PostgreSQL server on port $server" as_nobody timeout 60 "$bin/pg_ctl" start -s -w -D "$work/pg" -l "$work/pg/log" \
    -o "-p $server -c listen_addresses=127.0.0.1 -c unix_socket_directories='$work/pg' -c fsync=off"
PGPASSWORD=secret "$bin/psql" -X -q "host=127.0.0.1 port=$server user=gate dbname=postgres" -c "create database shop"

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
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$work/gateway.key" -out "$work/gateway.crt" \
    2> /dev/null
cat >> "$root/etc/hotrow/hotrow.toml" << END
upstream = "postgres://gate:secret@127.0.0.1:$server/shop"
listen = "127.0.0.1:$gate"
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
