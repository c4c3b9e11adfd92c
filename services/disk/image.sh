#!/bin/sh
# What the image of the disk service has besides our programs. Runs as root while it is built.
set -eu

# Left out of the packages below: what fio reaches Ceph with, whose place stand-ins/ takes, and what
# that needs. It would be a third of what this image adds.
for left_out in 'lib/*/ceph/*' 'lib/*/librados.*' 'lib/*/librbd.*' 'lib/*/libboost_*' \
    'lib/*/libcryptsetup.*' 'lib/*/libfmt.*' 'share/doc/libboost-*'; do
    echo "path-exclude=/usr/$left_out"
done >/etc/dpkg/dpkg.cfg.d/hostbench-disk

# The peers; dd is one of coreutils.
apt-get install --yes --no-install-recommends fio ioping sysbench

# A new volume there takes over owner and mode.
install --directory --owner=10001 --group=10001 --mode=700 /scratch
