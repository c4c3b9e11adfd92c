"""The GPU service."""
