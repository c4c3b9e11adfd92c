#!/usr/bin/env bash
# python-env.sh cli|dev: installs requirements/{cli,dev}.txt and hostbench itself into .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh
requirements=$1

# What the environment was made from. A directory that was moved or copied and an interpreter that
# was upgraded are in it, as either leaves a .venv that looks right and is not.
fingerprint() {
    { pwd && .venv/bin/python -VV && cat "requirements/$1.txt" pyproject.toml; } 2>&1 | sha256sum
}
current() { # SET
    [[ -e .venv/$1.stamp && $(fingerprint "$1") == "$(<".venv/$1.stamp")" ]]
}

current "$requirements" && exit
exec 9>build/setup.lock
flock 9 # two `make` at once: the second waits, then finds the work done
current "$requirements" && exit

pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

if ! grep -qsFx "$PWD $(.venv/bin/python -VV 2>&1)" .venv/made-for; then
    python=$(scripts/find-python.sh)
    rm -rf .venv
    step "virtual environment .venv with $python" "$python" -m venv .venv
    echo "$PWD $(.venv/bin/python -VV)" >.venv/made-for
fi
# What is never imported need not be compiled: half of the time.
step "Python packages of requirements/$requirements.txt" \
    pip install --no-compile --require-hashes -r "requirements/$requirements.txt"
step "hostbench into .venv" pip install --no-deps --no-build-isolation --editable .

# dev holds all of cli, in the same versions.
for made in cli "$requirements"; do
    fingerprint "$made" >".venv/$made.stamp"
done
