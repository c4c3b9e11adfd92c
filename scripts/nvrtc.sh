#!/usr/bin/env bash
# nvrtc.sh DIRECTORY: installs the compiler of the GPU kernels, requirements/gpu-build.txt, into it,
# with an environment of its own (DIRECTORY/../python), for a program is built before .venv is there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh
directory=$1
environment=$(dirname "$directory")/python

rm -rf "$directory" "$environment"
mkdir -p "$directory"
step "virtual environment $environment" "$(scripts/find-python.sh)" -m venv "$environment"
step "NVRTC, the compiler of the GPU kernels" "$environment/bin/python" -m pip \
    --disable-pip-version-check --no-input install --no-deps --require-hashes \
    --target "$directory" -r requirements/gpu-build.txt || {
    echo "hostbench: NVRTC cannot be had here, so gpu-bench gets no CUDA kernels;" \
        "make run NVRTC=none builds it for OpenCL alone, and all other programs" >&2
    exit 1
}
