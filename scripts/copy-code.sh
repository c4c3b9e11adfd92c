#!/usr/bin/env bash
# copy-code.sh DIRECTORY BUILD: lays out what an installation runs: the Python code, suites and
# baselines, without what only tests and builds need, as in the images (Dockerfile). BUILD, in words,
# and the commit are what `hostbench --version` names.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
tar --create --exclude=__pycache__ --exclude='services/*/bench' --exclude='services/*/fuzz' \
    --exclude='services/*/kernels' --exclude='services/*/stand-ins' --exclude='services/*/tests' \
    --exclude=image.sh \
    hostbench services suites baselines | tar --extract --no-same-owner --directory "$1"
# A source archive has no history, and a copy of root's may not be read by git.
commit=$(git describe --always --abbrev=12 --exclude='*' --dirty=' with changes' 2>/dev/null) ||
    commit=unknown
printf '{"commit": "%s", "build": "%s"}\n' "$commit" "$2" >"$1/hostbench/build.json"
chmod -R u=rwX,go=rX "$1" # whatever the umask was
