#!/usr/bin/env bash
# openblas.sh DIRECTORY: installs the BLAS of gemm and linpack, requirements/openblas.txt, into it,
# with an environment of its own (DIRECTORY/../python). Where its wheel cannot be had that is no
# failure: cpu-bench then takes the system's.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh
directory=$1
environment=$(dirname "$directory")/python

rm -rf "$directory" "$environment"
mkdir -p "$directory"
step "virtual environment $environment" "$(scripts/find-python.sh)" -m venv "$environment"
step "OpenBLAS of gemm and linpack" "$environment/bin/python" -m pip \
    --disable-pip-version-check --no-input install --no-deps --require-hashes --only-binary :all: \
    --retries 1 --target "$directory" -r requirements/openblas.txt || {
    echo "hostbench: OpenBLAS's wheel cannot be had here, so gemm and linpack take the system's" \
        "library (libopenblas0-pthread); OPENBLAS=none, given to make, does not try" >&2
    exit 0
}
touch "$directory/installed"
