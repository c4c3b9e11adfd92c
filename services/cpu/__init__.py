"""The cpu service."""
