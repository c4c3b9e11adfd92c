"""Trials and far ends through the services of other hosts."""
