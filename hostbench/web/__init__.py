"""What the HTTP APIs of the services and of the orchestrator share."""
