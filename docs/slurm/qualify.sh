#!/bin/sh
# qualify.sh CAMPAIGN BASELINE [RESULTS]: qualifies the nodes of a campaign that are as expected,
# and takes the others' qualification away, also that of nodes that were not measured. Call it after
# `hostbench fleet results CAMPAIGN`. HOSTBENCH_SHARED names the directory of campaigns.
set -eu
qualified=${HOSTBENCH_QUALIFIED:-/shared/hostbench/qualified}
campaign=$1 baseline=$2 results=${3:-results}
mkdir -p "$qualified"
for document in "$results/$campaign"/*/*/result.json; do
    node=$(basename "$(dirname "$(dirname "$document")")")
    code=0
    hostbench baseline check "$document" --baseline "$baseline" >/dev/null || code=$?
    if [ "$code" = 0 ]; then
        python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["host"]["kernel"])' \
            "$document" >"$qualified/.$node"
        mv "$qualified/.$node" "$qualified/$node"
        echo "$node: qualified"
    else
        rm -f "$qualified/$node"
        echo "$node: not qualified (hostbench baseline check: exit code $code)"
    fi
done
hostbench fleet status "$campaign" --engine slurm --json | python3 -c '
import json, sys
for node in json.load(sys.stdin)["nodes"]:
    if node["state"] != "measured":
        print(node["node"], node["state"])
' | while read -r node state; do
    rm -f "$qualified/$node"
    echo "$node: not qualified ($state)"
done
