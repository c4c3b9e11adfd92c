#!/usr/bin/env bash
# Runs a command with HOSTBENCH_SCRATCH on an ext4 file system on a loop device in memory: a disk that
# answers at once, so that what is compared on it are the programs. As root.
#
# usage: benchmarks/disk/on_loop_device.sh COMMAND [ARGUMENT ...]
#
# Everything is mounted in a namespace of its own and the device lets go of its file by itself, so
# nothing is left, however this ends.
set -euo pipefail

mib=1536 # of memory: the file system, which holds the 1 GiB that fio and ours are given

[[ $# -gt 0 ]] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[[ $(id -u) == 0 ]] || { echo "a loop device is made by root: run this as root" >&2; exit 2; }
if [[ ${IN_NAMESPACE:-} != 1 ]]; then
    exec env IN_NAMESPACE=1 unshare --mount --propagation private bash "$0" "$@"
fi
unset IN_NAMESPACE

mount -t tmpfs -o "size=$((mib + 16))m" tmpfs /mnt
truncate --size "${mib}M" /mnt/disk
fallocate --length "${mib}M" /mnt/disk # memory is taken now, not while measuring
mkfs.ext4 -q -F -m 0 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /mnt/disk
mkdir /mnt/scratch
mount -o loop /mnt/disk /mnt/scratch
export HOSTBENCH_SCRATCH=/mnt/scratch HOSTBENCH_DISK_RESERVE_BYTES=0
exec "$@"
