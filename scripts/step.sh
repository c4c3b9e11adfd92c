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
# DIRECTORY, with an environment of its own (build/python), for a program is built before .venv is
# there.
install_wheel() {
    local text=$1 requirements=$2 directory=$3 environment=build/python
    shift 3
    # Not left to `set -e`, which does not hold where a caller tells whether this fails.
    rm -rf "$directory" && mkdir -p "$directory" || exit
    exec 8>build/python.lock
    flock 8 # make runs several of these at once
    "$environment/bin/python" -m pip --version >/dev/null 2>&1 ||
        step "virtual environment $environment" \
            "$(scripts/find-python.sh)" -m venv --clear "$environment" || exit
    exec 8>&-
    step "$text" "$environment/bin/python" -m pip --disable-pip-version-check --no-input install \
        --no-deps --require-hashes "$@" --target "$directory" -r "$requirements"
}
