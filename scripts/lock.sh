#!/usr/bin/env bash
# Resolves requirements/*.in into the lock files beside them: exact versions with the hashes of all
# their files, for every Python from 3.11 on, without the address they came from.
# In this order: each takes the versions of those before it as constraints.
set -euo pipefail
cd "$(dirname "$0")/../requirements"
for name in cli service orchestrator kubernetes gpu-build openblas wheel redis audit dev installers; do
    ../.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --custom-compile-command "make lock" ${UPGRADE:+--upgrade} \
        --output-file "$name.txt" "$name.in"
done
