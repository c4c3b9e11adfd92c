#!/bin/sh
# What the image of the disk service has besides our programs. Runs as root while it is built.
set -eu

# The peers; dd is one of coreutils.
apt-get install --yes --no-install-recommends fio ioping sysbench

# A new volume there takes over owner and mode.
install --directory --owner=10001 --group=10001 --mode=700 /scratch
