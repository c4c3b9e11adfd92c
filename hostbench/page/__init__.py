"""The page of a job: which sections it has, and where it is written."""
