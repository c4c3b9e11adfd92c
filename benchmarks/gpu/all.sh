#!/usr/bin/env bash
# Every comparison of the GPU in turn, about 25 minutes with 7 pairs on a quiet host with a card; the
# tables go to standard output, the raw figures to results/CARD/ beside this script. What is not installed
# (nvbandwidth, PyTorch, cuBLASLt) is named on standard error and left out; a script that could
# compare nothing fails like one that missed a target.
#
# usage: [HOSTBENCH_GPU=INDEX|UUID] [HOSTBENCH_GPU_SECONDS=2] benchmarks/gpu/all.sh [PAIRS]
#   HOSTBENCH_GPU          the card, the first one where it is unset
#   HOSTBENCH_GPU_SECONDS  how long each trial of ours and each loop of copies takes
set -euo pipefail

pairs=${1:-7}
cd "$(dirname "$0")/../.."
python=.venv/bin/python
failed=0

"$python" -c 'from benchmarks.gpu.trials import device; print(device().name)'

compare() { # SCRIPT
    local began=$SECONDS
    printf '\n%s\n\n' "$1"
    "$python" -m "benchmarks.gpu.$1" "$pairs" || failed=1
    echo "$1: $((SECONDS - began)) s" >&2
}

compare against_limit
compare against_copies
compare against_cublaslt
compare latencies
compare against_peers
exit "$failed"
