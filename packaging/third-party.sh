#!/bin/sh
# Prints the libraries that the program contains, with their licences and the texts of these: packaging/third-party.sh [TARGET]
# A package has to carry them. Needs cargo, and the sources of the libraries, which a build downloads.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo tree --locked --package hotrow --edges normal,no-proc-macro --target "$target" --prefix none --format '{p}|{l}' > "$work/tree"
# The project's own crates have a path in the place of a registry.
sed 's/ (\*)$//' "$work/tree" | grep -v '(/' | sort -u > "$work/libraries"
[ -s "$work/libraries" ] || { echo "third-party.sh: cargo tree lists no libraries" >&2; exit 1; }

echo "hotrow contains these libraries. The texts of their licences are below."
echo
echo "the standard library of Rust $(rustc --version | cut -d ' ' -f 2): MIT OR Apache-2.0"
while IFS='|' read -r library licence; do
    name=${library% v*} version=${library#* v}
    echo "$name $version: $licence"
    set -- "$sources"/*/"$name-$version"
    [ -d "$1" ] || { echo "third-party.sh: $1 does not exist: build the program first" >&2; exit 1; }
    for text in "$1"/LICEN[CS]E* "$1"/COPYING* "$1"/COPYRIGHT* "$1"/NOTICE*; do
        [ -f "$text" ] || continue
        sum=$(md5sum < "$text" | cut -c 1-32)
        cp "$text" "$work/$sum.text"
        echo "$name $version" >> "$work/$sum.used"
    done
done < "$work/libraries"

for used in "$work"/*.used; do
    printf '\n%s\n\n' "----- $(sort -u "$used" | paste -s -d , | sed 's/,/, /g')"
    cat "${used%.used}.text"
done
