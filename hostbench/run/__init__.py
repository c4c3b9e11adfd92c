"""Measure: jobs, rounds of trials, resumption."""
