"""Decisions from the figures of several jobs: did it change, and what else did."""
