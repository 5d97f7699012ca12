# A new Debian with a systemd of its own in front of a private PostgreSQL server of this machine, for the tests of the packages. They
# source this file, which defines `check` and other functions of the tests, and call `new_debian` and `new_server`. Needs root,
# debootstrap, an installed PostgreSQL (or HOTROW_PG_BIN), and a mirror of Debian (or DEBIAN_MIRROR). Leaves nothing behind.
[ "$(id -u)" = 0 ] || { echo "${0##*/}: needs root, for a root folder and namespaces of its own" >&2; exit 2; }
[ -n "${HOTROW_TEST_BOUNDED:-}" ] || HOTROW_TEST_BOUNDED=1 exec timeout --kill-after=60 900 "$0" "$@"

suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
bin=${HOTROW_PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)}
work=$(mktemp -d /var/tmp/hotrow-test-package.XXXXXX)
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

# A Debian with systemd as its first process, in namespaces of its own. The network is that of this machine.
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
child() { systemd=$(cat "/proc/$unshare_pid/task/$unshare_pid/children" | tr -d ' '); [ -n "$systemd" ]; }
running() { inside systemctl is-system-running > /dev/null 2>&1; }
new_debian() { # PACKAGES, separated by commas
    check "a new Debian ($suite)" timeout 400 debootstrap --variant=minbase --include="$1" "$suite" "$root" "$mirror"
    mount -t cgroup2 cgroup2 "$work/cgroup"
    mkdir "$work/cgroup/${work##*/}"
    boot 2> "$work/boot" &
    unshare_pid=$!
    until_true child
    until_true running
    echo "ok: its systemd $(inside systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p') runs"
}

new_server() { # sets server to its port
    server=$(free_port)
    mkdir "$work/pg" && chown nobody: "$work/pg"
    echo secret > "$work/password" && chmod 0644 "$work/password"
    as_nobody "$bin/initdb" -D "$work/pg" -U gate --pwfile="$work/password" -A scram-sha-256 -E UTF8 --no-sync > /dev/null
    check "a PostgreSQL server on port $server" as_nobody timeout 60 "$bin/pg_ctl" start -s -w -D "$work/pg" -l "$work/pg/log" \
        -o "-p $server -c listen_addresses=127.0.0.1 -c unix_socket_directories='$work/pg' -c fsync=off"
    PGPASSWORD=secret "$bin/psql" -X -q "host=127.0.0.1 port=$server user=gate dbname=postgres" -c "create database shop"
}
