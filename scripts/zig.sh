#!/usr/bin/env bash
# zig.sh DIRECTORY: installs what a wheel's programs are linked with, requirements/wheel.txt, into it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

install_wheel "zig, which links the programs of a wheel" requirements/wheel.txt "$1"
