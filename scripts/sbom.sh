#!/usr/bin/env bash
# sbom.sh: runs sbom.py in an environment of its own, build/audit. Exit 1: an advisory names what is
# installed.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

environment=build/audit
if ! cmp --silent requirements/audit.txt "$environment/installed"; then
    rm -rf "$environment"
    step "virtual environment $environment" "$(scripts/find-python.sh)" -m venv "$environment"
    step "pip-audit into it" "$environment/bin/python" -m pip --disable-pip-version-check --no-input \
        install --require-hashes -r requirements/audit.txt
    cp requirements/audit.txt "$environment/installed"
fi
exec "$environment/bin/python" scripts/sbom.py
