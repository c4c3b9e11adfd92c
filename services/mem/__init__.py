"""The mem service."""
