#!/usr/bin/env bash
# Prints the interpreter to make .venv with: $PYTHON where set, else the first below that is
# Python 3.11 or newer and can make virtual environments. Exit 1: there is none.
set -euo pipefail

# Debian keeps ensurepip, without which a virtual environment has no pip, in python3-venv.
suits() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# /usr/bin/python3 by its path: one from elsewhere may hide it, and be too old.
for python in ${PYTHON:-python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11}; do
    if suits "$python"; then
        command -v "$python"
        exit
    fi
done
echo "hostbench: ${PYTHON:-python3} is not Python 3.11 or newer with the modules venv and" \
    "ensurepip; name one that is: make PYTHON=/path/to/python3" >&2
exit 1
