#!/bin/sh
# Makes an RPM package of a built program:
#   packaging/rpm.sh BINARY VERSION ARCH OUT [LICENCES]     packaging/rpm.sh target/release/hotrow 0.1.0-1 x86_64 target/rpm
# LICENCES is the output of third-party.sh, without which a package must not be published. Needs rpmbuild and binutils. The same
# program, version and rpmbuild give the same bytes: every time is SOURCE_DATE_EPOCH, by default the time of the last commit.
set -eu
export LC_ALL=C TZ=UTC
umask 022

[ $# = 4 ] || [ $# = 5 ] || { sed -n 3p "$0" >&2; exit 2; }
binary=$1 version=$2 arch=$3 out=$4 licences=${5:-}
packaging=$(cd "$(dirname "$0")" && pwd)
root=$packaging/..
case $version in
*-*) ;;
*) echo "rpm.sh: the version $version has no revision of the package: give one, for example $version-1" >&2; exit 2 ;;
esac
[ -n "${SOURCE_DATE_EPOCH:-}" ] || SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct) || {
    echo "rpm.sh: the time of the last commit is unknown outside of a git repository: set SOURCE_DATE_EPOCH" >&2
    exit 2
}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
"$packaging/stage.sh" "$binary" "$tree"
mkdir -p "$tree/usr/share/zsh/site-functions" "$tree/usr/lib/sysusers.d"
mv "$tree/usr/share/zsh/vendor-completions/_hotrow" "$tree/usr/share/zsh/site-functions/"
rmdir "$tree/usr/share/zsh/vendor-completions"
install -m 0644 "$packaging/rpm/sysusers.conf" "$tree/usr/lib/sysusers.d/hotrow.conf"
mkdir -p "$tree/usr/share/doc/hotrow" "$tree/usr/share/licenses/hotrow"
install -m 0644 "$root/CHANGELOG.md" "$tree/usr/share/doc/hotrow/CHANGELOG.md"
install -m 0644 "$root/LICENSE" "$tree/usr/share/licenses/hotrow/LICENSE"
[ -z "$licences" ] || install -m 0644 "$licences" "$tree/usr/share/licenses/hotrow/third-party"

sed -e "s/@VERSION@/${version%-*}/; s/@RELEASE@/${version##*-}/" \
    -e "s/@DATE@/$(date -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')/" \
    -e '/^@HAND_OVER@$/ {' -e "r $packaging/hand-over.sh" -e d -e '}' "$packaging/rpm/hotrow.spec" > "$work/hotrow.spec"
find "$tree" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
# The program is stripped already. xz, because each rpm that has this glibc can read it.
rpmbuild -bb --quiet --target "$arch" --define "_topdir $work" --define "tree $tree" --define "_buildhost hotrow" \
    --define "debug_package %{nil}" --define "__os_install_post %{nil}" --define "_build_id_links none" \
    --define "_binary_payload w6.xzdio" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" "$work/hotrow.spec" >&2
mkdir -p "$out"
rpm=$out/hotrow-$version.$arch.rpm
mv "$work/RPMS/$arch/hotrow-$version.$arch.rpm" "$rpm"
echo "$rpm"
