#!/usr/bin/env bash
# openblas.sh DIRECTORY: installs the BLAS of gemm and linpack, requirements/openblas.txt, into it.
# Where its wheel cannot be had that is no failure: cpu-bench then takes the system's.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

install_wheel "OpenBLAS of gemm and linpack" requirements/openblas.txt "$1" \
    --only-binary :all: --retries 1 || {
    echo "hostbench: OpenBLAS's wheel cannot be had here, so gemm and linpack take the system's" \
        "library (libopenblas0-pthread); OPENBLAS=none, given to make, does not try" >&2
    exit 0
}
touch "$1/installed"
