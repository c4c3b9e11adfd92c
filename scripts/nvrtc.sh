#!/usr/bin/env bash
# nvrtc.sh DIRECTORY: installs the compiler of the GPU kernels, requirements/gpu-build.txt, into it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

install_wheel "NVRTC, the compiler of the GPU kernels" requirements/gpu-build.txt "$1" || {
    echo "hostbench: NVRTC cannot be had here, so gpu-bench gets no CUDA kernels;" \
        "make run NVRTC=none builds it for OpenCL alone, and all other programs" >&2
    exit 1
}
