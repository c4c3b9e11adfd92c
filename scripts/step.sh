# Sourced by the set-up scripts, in the repository's root.
# shellcheck shell=bash

mkdir -p build
# One a script: make runs several at once.
setup_log=${0##*/}
setup_log=build/${setup_log%.sh}.log

# step TEXT COMMAND...: prints one line; what the command says goes to the log and is shown only
# when it fails.
step() {
    local text=$1 before
    shift
    echo "==> $text"
    echo "==> $text" >>"$setup_log"
    before=$(wc -l <"$setup_log")
    "$@" >>"$setup_log" 2>&1 </dev/null && return
    tail -n "+$((before + 1))" "$setup_log" | tail -n 20 >&2
    echo "hostbench: this step failed: $text (all of its output: $setup_log)" >&2
    return 1
}

# install_wheel TEXT REQUIREMENTS DIRECTORY OPTION...: pip installs what the file names into
# DIRECTORY, with an environment of its own (DIRECTORY/../python), for a program is built before
# .venv is there.
install_wheel() {
    local text=$1 requirements=$2 directory=$3 environment
    shift 3
    environment=$(dirname "$directory")/python
    # Not left to `set -e`, which does not hold where a caller tells whether this fails.
    rm -rf "$directory" "$environment" && mkdir -p "$directory" || exit
    step "virtual environment $environment" "$(scripts/find-python.sh)" -m venv "$environment" ||
        exit
    step "$text" "$environment/bin/python" -m pip --disable-pip-version-check --no-input install \
        --no-deps --require-hashes "$@" --target "$directory" -r "$requirements"
}
