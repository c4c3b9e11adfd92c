"""The calls of the orchestrator, one module a resource: docs/api.md."""
