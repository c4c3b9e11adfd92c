#!/bin/sh
# What the image of the mem service has besides our programs. Runs as root while it is built.
set -eu

# Left out of the packages below: a compiler and a library for GPU transports of OpenMPI, what hwloc
# finds GPUs and displays with, OpenMPI for Fortran, Java and other machines, and Perl's library for
# scripts of likwid.
for left_out in 'lib/*/libLLVM*' 'lib/*/libz3.so*' 'lib/*/libamd_comgr*' 'lib/*/libamdhip64*' \
    'lib/*/libhsa-runtime64*' 'lib/*/libze_*' 'lib/*/libX11.so*' 'share/X11/*' 'lib/*/liboshmem*' \
    'lib/*/libmpi_*' bin/scp bin/sftp bin/ssh-add 'bin/ssh-key*' 'lib/openssh/*' \
    'lib/*/libperl.so*' 'lib/*/perl/*' 'share/perl/*'; do
    echo "path-exclude=/usr/$left_out"
done >/etc/dpkg/dpkg.cfg.d/hostbench

# Debian has no likwid for arm64.
likwid=likwid
[ "$(dpkg --print-architecture)" != arm64 ] || likwid=

# The peers, with OpenBLAS for HPL, which hpcc runs too.
# shellcheck disable=SC2086 # a package, or none
apt-get install --yes --no-install-recommends \
    hpcc libopenblas0-pthread $likwid mbw sysbench
# Nothing here calls OpenBLAS's LAPACK. dpkg cannot leave it out: OpenBLAS's set-up looks for it.
rm -f /usr/lib/*/openblas-pthread/liblapack.so.3
