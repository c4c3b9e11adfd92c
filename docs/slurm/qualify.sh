#!/bin/sh
# qualify.sh CAMPAIGN BASELINE [RESULTS]: qualifies the nodes of a campaign that are as expected,
# and takes the others' qualification away, also that of nodes that were not measured. Call it after
# `hostbench fleet results CAMPAIGN`. HOSTBENCH_SHARED names the directory of campaigns.
set -eu
qualified=${HOSTBENCH_QUALIFIED:-/shared/hostbench/qualified}
campaign=$1 baseline=$2 results=${3:-results}
mkdir -p "$qualified"
# Not in the pipe: if it fails, nothing is qualified or taken away.
status=$(hostbench fleet status "$campaign" --engine slurm --json)
printf '%s\n' "$status" | python3 -c '
import json, sys
for one in json.load(sys.stdin)["nodes"]:
    print(one["node"], one["state"], one["result"]["job"] if one["result"] else "-")
' | while read -r node state job; do
    document=$results/$campaign/$node/$job/result.json
    why=$state
    if [ "$state" = measured ]; then
        code=0
        hostbench baseline check "$document" --baseline "$baseline" </dev/null >/dev/null ||
            code=$?
        why="hostbench baseline check: exit code $code"
        if [ "$code" = 0 ]; then
            python3 -c '
import json, sys
host = json.load(open(sys.argv[1]))["host"]
print(host["kernel"], host.get("firmware") or "", sep="\n")
' "$document" >"$qualified/.$node"
            mv "$qualified/.$node" "$qualified/$node"
            echo "$node: qualified"
            continue
        fi
    fi
    rm -f "$qualified/$node"
    echo "$node: not qualified ($why)"
done
