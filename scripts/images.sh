#!/usr/bin/env bash
# images.sh REGISTRY [PUSH]: builds the images for a cluster, REGISTRY/hostbench and
# REGISTRY/orchestrator, with this version as their tag; with PUSH pushes them. Exit 2: REGISTRY is
# missing.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -z ${1:-} ]]; then
    echo "hostbench: REGISTRY is missing; give the registry and folder that your nodes pull from: make images REGISTRY=registry.example/hostbench" >&2
    exit 2
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
secrets=()
# As for compose.yaml: a build behind a proxy that has certificates of its own.
[[ -z ${HOSTBENCH_CA_BUNDLE:-} ]] || secrets=(--secret "id=ca_bundle,src=$HOSTBENCH_CA_BUNDLE")

for target in hostbench orchestrator; do
    image=${1%/}/$target:$version
    docker build --target "$target" --tag "$image" "${secrets[@]}" .
    [[ -z ${2:-} ]] || docker push "$image"
done
