#!/usr/bin/env bash
# image-layers.sh: builds what the images of the stack and of campaigns consist of, and leaves it in
# the builder's cache, so that a test has its own images in seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

engine=$(scripts/docker-engine.sh env)
eval "$engine"
secrets=()
[[ ! -e ${SSL_CERT_FILE:-} ]] || secrets=(--secret "id=ca_bundle,src=$SSL_CERT_FILE")

layers() { # OPTION...
    docker buildx build --quiet --output type=cacheonly "${secrets[@]}" "$@" .
}

for script in services/*/image.sh; do
    subsystem=${script%/image.sh}
    layers --target service --build-arg "SUBSYSTEM=${subsystem#services/}"
done
layers --target orchestrator
layers --target hostbench
# What the test of OpenCL without a GPU has on top: tests/e2e/compose.pocl.yaml.
layers --target service --build-arg SUBSYSTEM=gpu --build-arg OPENCL_DRIVERS=pocl-opencl-icd
