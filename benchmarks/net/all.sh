#!/usr/bin/env bash
# Every comparison of the network in turn, about 20 minutes on a quiet host; the tables go to
# standard output, the raw figures to results/ beside this script. As root, for the namespaces.
#
# usage: benchmarks/net/all.sh [PAIRS]; IPERF3 names an iperf3 of 3.18 or newer
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
compare "against sockperf" "$python" -m benchmarks.net.against_sockperf "$pairs"
compare "against iperf3" "$python" -m benchmarks.net.against_iperf3 "$pairs"
compare "loss is exact" "$python" -m benchmarks.net.loss_is_exact
exit "$failed"
