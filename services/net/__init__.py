"""The net service."""
