#!/bin/sh
# What the image of the cpu service has besides our programs. Runs as root while it is built.
set -eu

# Left out of the packages below: a graphics stack with two compilers (for GPU stressors of stress-ng
# and GPU transports of OpenMPI), what hwloc finds GPUs and displays with, OpenMPI for Fortran, Java and
# other machines, Perl's library (for scripts of likwid), and Intel's ciphers for one stressor, whose
# place stand-ins/ takes. They would be two thirds of the image.
for left_out in 'lib/*/libLLVM*' 'lib/*/libgallium*' 'lib/*/libz3.so*' 'lib/*/libamd_comgr*' \
    'lib/*/libamdhip64*' 'lib/*/libhsa-runtime64*' 'lib/*/libze_*' 'lib/*/libX11.so*' 'share/X11/*' \
    'lib/*/liboshmem*' 'lib/*/libmpi_*' bin/scp bin/sftp bin/ssh-add 'bin/ssh-key*' 'lib/openssh/*' \
    'lib/*/libperl.so*' 'lib/*/perl/*' 'share/perl/*' 'lib/*/libIPSec_MB.*'; do
    echo "path-exclude=/usr/$left_out"
done >/etc/dpkg/dpkg.cfg.d/hostbench

# Debian has no likwid for arm64.
likwid=likwid
[ "$(dpkg --print-architecture)" != arm64 ] || likwid=

# OpenBLAS for gemm and linpack; the peers but perf, which needs all of Perl and Python.
# shellcheck disable=SC2086 # a package, or none
apt-get install --yes --no-install-recommends \
    hpcc libopenblas0-pthread $likwid rt-tests stress-ng sysbench
# Nothing here calls OpenBLAS's LAPACK. dpkg cannot leave it out: OpenBLAS's set-up looks for it.
rm /usr/lib/*/openblas-pthread/liblapack.so.3
