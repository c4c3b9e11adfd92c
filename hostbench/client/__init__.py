"""The orchestrator's client: what `hostbench submit` and the other commands of the stack do."""
