"""The course report: published tables, row by row beside what this host gives."""
