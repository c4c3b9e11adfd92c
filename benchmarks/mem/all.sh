#!/usr/bin/env bash
# Every comparison of memory in turn, about a quarter of an hour on a quiet host; the tables go to
# standard output, the raw figures to results/ beside this script.
#
# usage: benchmarks/mem/all.sh STREAM MULTICHASE [PAIRS]
set -euo pipefail

stream=${1:?the path of STREAM 5.10, see against_stream.py}
multichase=${2:?the path of multichase, see against_multichase.py}
pairs=${3:-7}
stream=$(realpath "$stream") multichase=$(realpath "$multichase")
cd "$(dirname "$0")/../.."
failed=0

compare() { # SCRIPT [ARGUMENT ...]
    local began=$SECONDS
    printf '\n%s\n\n' "$1"
    .venv/bin/python -m "benchmarks.mem.$1" "${@:2}" || failed=1
    echo "$1: $((SECONDS - began)) s" >&2
}

compare against_likwid "$pairs"
compare against_stream "$stream" "$pairs"
compare against_multichase "$multichase" "$pairs"
compare against_assembly "$pairs"
compare repeatability
exit "$failed"
