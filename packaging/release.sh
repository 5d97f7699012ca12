#!/usr/bin/env bash
# Makes all files of a release on one machine: packaging/release.sh [--binary FILE] [--out FOLDER] [COMMIT]
# COMMIT is a commit or a tag, by default HEAD. The files come into target/dist, or into FOLDER, which must be empty: the
# program with its manual page as .tar.gz, the .deb, the .rpm, the Helm chart, a list of the libraries (SBOM), and SHA256SUMS.
#
# With the same Rust and the same tools, the same commit is meant to give the same bytes: times are those of the commit, and the
# program has no paths of this machine. --binary takes a program that is built already, to try this script.
# Needs git, Rust, python3, binutils, dpkg-deb and rpmbuild (Debian: apt install rpm).
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022

usage() { sed -n 2p "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
binary='' out=$root/target/dist commit=HEAD
while [ $# -gt 0 ]; do
    case $1 in
    --binary) [ $# -gt 1 ] || usage; binary=$(realpath "$2"); shift 2 ;;
    --out) [ $# -gt 1 ] || usage; out=$(realpath -m "$2"); shift 2 ;;
    -*) usage ;;
    *) commit=$1; shift ;;
    esac
done
if [ "$out" = "$root/target/dist" ]; then
    rm -rf "$out"
elif [ -n "$(ls -A "$out" 2> /dev/null)" ]; then
    echo "release.sh: $out is not empty: name another folder" >&2
    exit 2
fi
for tool in git cargo python3 strip dpkg-deb rpmbuild; do
    command -v "$tool" > /dev/null || { echo "release.sh: $tool is missing: see the first lines of $0" >&2; exit 2; }
done

commit=$(git -C "$root" rev-parse --verify "$commit^{commit}")
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH

# The files of the commit, and nothing that only this checkout has.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/source
mkdir "$source"
git -C "$root" archive "$commit" | tar -x -C "$source"

if [ -z "$binary" ]; then
    target=${CARGO_TARGET_DIR:-$root/target}/dist-build
    # The last prefix that fits a path counts.
    RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$target=/target --remap-path-prefix=$source=/hotrow" \
        CARGO_INCREMENTAL=0 cargo build --manifest-path "$source/Cargo.toml" --target-dir "$target" --release --locked --package hotrow
    binary=$target/release/hotrow
    if grep -a -q -F -e "$source" -e "${CARGO_HOME:-$HOME/.cargo}/registry" "$binary"; then
        echo "release.sh: the program contains paths of this machine: the build is not reproducible" >&2
        exit 1
    fi
fi

# A tag names a version. Any other commit is older than the release that follows.
program=$(env -i "$binary" --version | cut -d ' ' -f 2)
tag=$(git -C "$root" describe --tags --exact-match --match 'v[0-9]*' "$commit" 2> /dev/null || true)
if [ -n "$tag" ]; then
    version=${tag#v}
    [ "$version" = "$program" ] || { echo "release.sh: the tag is $tag, and the program says $program" >&2; exit 1; }
    package=${version/-/\~}
else
    date=$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M)
    short=$(git -C "$root" rev-parse --short=8 "$commit")
    version=$program-git.$date-$short
    package=$program~git$date.$short
fi
machine=$(uname -m)
case $machine in
x86_64) deb_arch=amd64 ;;
aarch64) deb_arch=arm64 ;;
*) deb_arch=$(dpkg --print-architecture) ;;
esac

mkdir -p "$out"
(cd "$source" && packaging/third-party.sh) > "$work/third-party"
"$source/packaging/deb.sh" "$binary" "$package-1" "$deb_arch" "$out" "$work/third-party"
"$source/packaging/rpm.sh" "$binary" "$package-1" "$machine" "$out" "$work/third-party"

pack() { # NAME: the folder $work/NAME becomes a .tar.gz without names, times and order of this machine
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$work" -c "$1" | gzip -9n
}
name=hotrow-$version-$machine-linux
mkdir -p "$work/$name"
"$source/packaging/stage.sh" "$binary" "$work/staged"
cp "$work/staged/usr/bin/hotrow" "$work/staged/usr/share/man/man1/hotrow.1.gz" "$source/LICENSE" "$source/CHANGELOG.md" \
    "$source/packaging/hotrow.service" "$source/packaging/hotrow.toml" "$work/third-party" "$work/$name/"
mkdir "$work/$name/completions"
cp "$work/staged/usr/share/bash-completion/completions/hotrow" "$work/$name/completions/hotrow.bash"
cp "$work/staged/usr/share/zsh/vendor-completions/_hotrow" "$work/staged/usr/share/fish/vendor_completions.d/hotrow.fish" \
    "$work/$name/completions/"
pack "$name" > "$out/$name.tar.gz"

python3 "$source/packaging/sbom.py" "$work/$name/hotrow" "$version" > "$out/hotrow-$version-$machine.cdx.json"

mkdir "$work/hotrow"
cp -r "$source/packaging/chart/." "$work/hotrow/"
sed -i -e "s/^version: .*/version: $version/" -e "s/^appVersion: .*/appVersion: \"$version\"/" "$work/hotrow/Chart.yaml"
pack hotrow > "$out/hotrow-chart-$version.tgz"

(cd "$out" && sha256sum -- * > "$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
cat "$out/SHA256SUMS"
