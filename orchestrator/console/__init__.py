"""The console: the pages of the orchestrator for people, below /ui/. docs/console.md shows it, and
docs/architecture.md, "The console", says how to add a page."""
