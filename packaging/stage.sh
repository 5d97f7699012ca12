#!/bin/sh
# Lays out the files that the .deb and the .rpm have in common, as they are installed: packaging/stage.sh BINARY TREE
# deb.sh and rpm.sh call it. If the program cannot run on this machine, HOTROW is one of the same version that can. Needs binutils.
set -eu
export LC_ALL=C
umask 022

[ $# = 2 ] || { sed -n 2p "$0" >&2; exit 2; }
binary=$1 tree=$2
packaging=$(cd "$(dirname "$0")" && pwd)

place() { # MODE FILE PATH
    mkdir -p "$tree/$(dirname "$3")"
    install -m "$1" "$2" "$tree/$3"
}
completions() { # SHELL PATH
    mkdir -p "$tree/$(dirname "$2")"
    # Without the settings of this shell: a wrong one would be an error.
    env -i "${HOTROW:-$binary}" completions "$1" > "$tree/$2"
}

case $binary in
/*) ;;
*) binary=$PWD/$binary ;;
esac
place 0755 "$binary" usr/bin/hotrow
"${STRIP:-strip}" --strip-unneeded --remove-section=.comment "$tree/usr/bin/hotrow"
place 0644 "$packaging/hotrow.service" usr/lib/systemd/system/hotrow.service
place 0644 "$packaging/hotrow.socket" usr/lib/systemd/system/hotrow.socket
place 0644 "$packaging/hotrow.toml" etc/hotrow/hotrow.toml
completions bash usr/share/bash-completion/completions/hotrow
completions zsh usr/share/zsh/vendor-completions/_hotrow
completions fish usr/share/fish/vendor_completions.d/hotrow.fish
mkdir -p "$tree/usr/share/man/man1"
gzip -9n < "$packaging/hotrow.1" > "$tree/usr/share/man/man1/hotrow.1.gz"
