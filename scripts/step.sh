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
