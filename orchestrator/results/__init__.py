"""Stored results: the archive, its catalogue, the page of a job."""
