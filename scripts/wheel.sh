#!/usr/bin/env bash
# wheel.sh ARCHITECTURE GLIBC DIRECTORY: packs DIRECTORY/hostbench-VERSION-py3-none-manylinux_...whl: the code, and in
# it suites, baselines, the page of the manual and the programs of build/wheel-ARCHITECTURE. The same
# commit and compiler give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

platform=manylinux_${2/./_}_$1
programs=build/wheel-$1
stage=$programs/stage
compiler="gcc $("$1-linux-gnu-gcc" -dumpfullversion)"
umask 022
rm -rf "$stage"
scripts/copy-code.sh "$stage" "$platform, $compiler"
mv "$stage/suites" "$stage/baselines" "$stage/hostbench"
mkdir "$stage/hostbench/bin" "$stage/requirements"
install "$programs"/*-bench "$stage/hostbench/bin"
"$1-linux-gnu-strip" --strip-debug "$stage"/hostbench/bin/*
install --mode=644 LICENSE pyproject.toml "$stage"
scripts/manual.sh "$stage/share" .venv/bin/python
# setuptools is for .venv alone. A checkout has OpenBLAS beside the programs, a wheel beside itself.
grep -hvx setuptools requirements/cli.in requirements/openblas.in >"$stage/requirements/cli.in"
# The times of all files in it.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
mkdir -p "$3"
step "wheel for $platform" .venv/bin/python scripts/pack_wheel.py "$stage" "$platform" "$3"
echo "    $(ls "$3"/hostbench-*-"$platform".whl)"
