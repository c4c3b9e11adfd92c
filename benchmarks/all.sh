#!/usr/bin/env bash
# Measure what README.md lacks of this machine's CPU maker, and write its tables. --plan says what
# that is and how long it takes; see missing.py.
cd "$(dirname "$0")/.." && exec .venv/bin/python -m benchmarks.missing "$@"
