#!/usr/bin/env bash
# How often decisions are right: measures what is left of the jobs and of the tests of settings, in
# two hours on two quiet CPUs, then prints the tables of README. What was measured is kept and
# counts when this is started again. --short: a part of it, half an hour; other options are those of
# fresh.py and settings.py, such as --again and --minutes.
set -o errexit -o nounset
cd "$(dirname "$0")/../.."
short=()
case " $* " in *" --short "*) short=(--short) ;; esac
python() { .venv/bin/python -m benchmarks.decisions."$1" "${@:2}"; }

python fresh "$@"
python settings "$@"
python resampled
python settings --table
python histories "${short[@]}"
python hosts "${short[@]}"
python cost
