"""What the orchestrator says of itself: health, metrics, its own use of the host."""
