"""The disk service."""
