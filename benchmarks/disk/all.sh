#!/usr/bin/env bash
# Every comparison of the disk in turn, about a quarter of an hour on a quiet host; the tables go to
# standard output, the raw figures to results/ beside this script. As root, for the loop device.
#
# usage: benchmarks/disk/all.sh [PAIRS]; HOSTBENCH_SCRATCH is the directory on the disk to measure
set -euo pipefail

pairs=${1:-11}
cd "$(dirname "$0")/../.."
failed=0

compare() { # TITLE COMMAND [ARGUMENT ...]
    local began=$SECONDS
    printf '\n%s\n\n' "$1"
    "${@:2}" || failed=1
    echo "$1: $((SECONDS - began)) s" >&2
}

python=.venv/bin/python
compare "against fio on a loop device" \
    benchmarks/disk/on_loop_device.sh "$python" -m benchmarks.disk.against_fio "$pairs"
compare "against fio on the disk" "$python" -m benchmarks.disk.against_fio "$pairs"
compare contamination "$python" -m benchmarks.disk.contamination
exit "$failed"
