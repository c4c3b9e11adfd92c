#!/bin/sh
# What the image of the cpu service has besides our programs. Runs as root while it is built.
set -eu

# Left out of the packages below: a graphics stack with two compilers (for GPU stressors of stress-ng
# and GPU transports of OpenMPI) and Perl's library (for scripts of likwid). They would be two thirds
# of the image.
for left_out in 'lib/*/libLLVM*' 'lib/*/libgallium*' 'lib/*/libz3.so*' 'lib/*/libamd_comgr*' \
    'lib/*/libamdhip64*' 'lib/*/libperl.so*' 'lib/*/perl/*' 'share/perl/*'; do
    echo "path-exclude=/usr/$left_out"
done >/etc/dpkg/dpkg.cfg.d/hostbench

# Debian has no likwid for arm64.
likwid=likwid
[ "$(dpkg --print-architecture)" != arm64 ] || likwid=

# OpenBLAS for gemm and linpack; the peers.
# shellcheck disable=SC2086 # a package, or none
apt-get install --yes --no-install-recommends \
    hpcc libopenblas0-pthread $likwid stress-ng sysbench
