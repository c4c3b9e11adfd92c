#!/usr/bin/env bash
# manual.sh SHARE PYTHON: writes hostbench(1) and completion for bash below SHARE, made by the code of
# this checkout. PYTHON has the packages of requirements/cli.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

man=$1/man/man1
completions=$1/bash-completion/completions
mkdir -p "$man" "$completions"
"$2" -m hostbench.cli.man_page >"$man/hostbench.1"
_HOSTBENCH_COMPLETE=source_bash "$2" -m hostbench >"$completions/hostbench"
