"""The page of a job: its sections, and where it is written."""
