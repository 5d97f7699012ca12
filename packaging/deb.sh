#!/bin/sh
# Makes a Debian package of a built program:
#   packaging/deb.sh BINARY VERSION ARCH OUT [LICENCES]     packaging/deb.sh target/release/hotrow 0.1.0-1 amd64 target/deb
# LICENCES is the output of third-party.sh, without which a package must not be published. Needs dpkg-deb and binutils. The same
# program and version give the same bytes: every time in the package is SOURCE_DATE_EPOCH, by default the time of the last commit.
set -eu
export LC_ALL=C TZ=UTC
umask 022

[ $# = 4 ] || [ $# = 5 ] || { sed -n 2p "$0" >&2; exit 2; }
binary=$1 version=$2 arch=$3 out=$4 licences=${5:-}
packaging=$(cd "$(dirname "$0")" && pwd)
root=$packaging/..
case $version in
*-*) ;;
*) echo "deb.sh: the version $version has no revision of the package: give one, for example $version-1" >&2; exit 2 ;;
esac
[ -n "${SOURCE_DATE_EPOCH:-}" ] || SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct) || {
    echo "deb.sh: the time of the last commit is unknown outside of a git repository: set SOURCE_DATE_EPOCH" >&2
    exit 2
}
export SOURCE_DATE_EPOCH

tree=$(mktemp -d)
chmod 0755 "$tree"
trap 'rm -rf "$tree"' EXIT
place() { # MODE FILE PATH
    mkdir -p "$tree/$(dirname "$3")"
    install -m "$1" "$2" "$tree/$3"
}
pack() { # PATH, compressed without name and time of its file
    gzip -9n > "$tree/$1.gz"
    chmod 0644 "$tree/$1.gz"
}

"$packaging/stage.sh" "$binary" "$tree"
doc=usr/share/doc/hotrow
place 0644 "$packaging/deb/copyright" $doc/copyright
[ -z "$licences" ] || pack $doc/third-party < "$licences"
pack $doc/changelog < "$root/CHANGELOG.md"
pack $doc/changelog.Debian << END
hotrow ($version) unstable; urgency=medium

  * The changes of the program are in changelog.gz.

 -- The Hotrow maintainers <hotrow@users.noreply.github.com>  $(date -R -d "@$SOURCE_DATE_EPOCH")
END
place 0644 "$packaging/deb/lintian-overrides" usr/share/lintian/overrides/hotrow

# The newest version of glibc that a symbol of the program needs. A static program needs none.
needs=$(readelf --wide --version-info --dynamic "$tree/usr/bin/hotrow")
glibc=$(echo "$needs" | sed -n 's/.*Name: GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
depends=${glibc:+, libc6 (>= $glibc)}
if echo "$needs" | grep 'NEEDED.*libgcc_s' > /dev/null; then depends="$depends, libgcc-s1 (>= 4.2)"; fi

mkdir "$tree/DEBIAN"
(cd "$tree" && find etc usr -type f | sort | xargs md5sum) > "$tree/DEBIAN/md5sums"
echo /etc/hotrow/hotrow.toml > "$tree/DEBIAN/conffiles"
chmod 0644 "$tree/DEBIAN/md5sums" "$tree/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    sed -e '/^@HAND_OVER@$/ {' -e "r $packaging/hand-over.sh" -e d -e '}' "$packaging/deb/$script" > "$tree/DEBIAN/$script"
    chmod 0755 "$tree/DEBIAN/$script"
done
# In KiB, each file rounded up, as dpkg-gencontrol counts: du would count blocks of this machine's file system.
size=$(find "$tree/etc" "$tree/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
sed "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/; s/@DEPENDS@/$depends/" "$packaging/deb/control" \
    > "$tree/DEBIAN/control"
find "$tree" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$out"
deb=$out/hotrow_${version}_$arch.deb
# xz, because dpkg of Debian 11 cannot read zstd, which dpkg-deb of Ubuntu would choose.
dpkg-deb --build --root-owner-group -Zxz "$tree" "$deb" > /dev/null
echo "$deb"
