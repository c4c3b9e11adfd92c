#!/usr/bin/env bash
# old-glibc.sh DIRECTORY: puts the oldest C library there that the machine's own mirrors still have,
# 2.31 of Debian 11 or Ubuntu 20.04, for a test that runs the programs of a wheel on it. It is
# taken out of its package and installed nowhere.
set -euo pipefail
directory=$(realpath -m "$1")
[[ -e $directory ]] && exit
cd "$(dirname "$0")/.."
. scripts/step.sh
. scripts/apt.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apt_home=$work/apt
case $ID in
    debian) old=bullseye ;;
    ubuntu) old=focal ;;
    *) echo "hostbench: only Debian's and Ubuntu's mirrors have an old C library" >&2; exit 1 ;;
esac
step "package lists of $VERSION_CODENAME" update_lists "$VERSION_CODENAME"
step "package lists of $old" update_lists "$old"
# Without what is installed here, which is newer.
step "libc6 of $old" download "$old" "$work" -o Dir::State::status=/dev/null libc6
dpkg-deb --extract "$work"/libc6_*.deb "$work/root"
mkdir -p "${directory%/*}"
mv "$work/root" "$directory"
